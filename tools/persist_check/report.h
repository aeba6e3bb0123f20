// What a check found, for people and for programs.
#pragma once
#include <string>
#include <vector>

#include "checker.h"
#include "findings.h"

namespace persist_check {

struct Report {
  const History* history = nullptr;
  std::vector<Finding> findings;
  bool has_recovery = false;
  CheckOptions options;
  CheckResult checked;  // without meaning if there was no recovery

  bool has_bugs() const;
};

// Lines, each ended.
std::string as_text(const Report& report);
// One JSON object, pretty, ended by a newline.
std::string as_json(const Report& report);

}  // namespace persist_check
