// What INFO and CONFIG tell of the server. Only what is true of it; what Redis has besides is left out.
//
// To add a section: its function and its row in kSections. To add a setting: a row in settings_of().
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "server/clients/hub.h"
#include "server/resp/command.h"

namespace server {

// Clients choose by it what they may ask; the commands are those of this one.
inline constexpr std::string_view kRedisVersion = "7.0.15";

// The sections that are named; without names, and for "default", "all" and "everything", all of them. Names that are not known give
// nothing. Cost: as Hub::counts and kv::Store::counts.
std::string info_text(Hub& hub, resp::Arguments names);

struct Setting {
  std::string_view name;
  std::string value;
  bool is_secret = false;  // not told
};
// All that are known. None can be changed while the server runs.
std::vector<Setting> settings_of(Hub& hub);

}  // namespace server
