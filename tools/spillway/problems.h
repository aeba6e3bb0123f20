// Problems: lines that say what stands in Spillway's way, and what to do.
#pragma once
#include <nlohmann/json.hpp>

#include "command.h"

namespace tools {

class Problems {
 public:
  template <class... Parts>
  void add(const Parts&... parts) {
    lines_.push_back(concat(parts...));
  }
  nlohmann::ordered_json lines() const { return lines_; }

 private:
  nlohmann::ordered_json lines_ = nlohmann::ordered_json::array();
};

}  // namespace tools
