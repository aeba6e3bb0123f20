// What INFO and CONFIG report: only what is true of this server. What else Redis reports is left out.
//
// To add a section: its function and its row in kSections. To add a setting: a row in settings_of().
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "server/clients/hub.h"
#include "server/resp/command.h"

namespace server {

// The version of Redis whose commands are served. Clients tell by it what they may ask for.
inline constexpr std::string_view kRedisVersion = "7.0.15";

// The text of the sections that are named; all of them without names, and for "default", "all" and "everything". Names that are not known are
// ignored. Cost: as Hub::counts and kv::Store::counts.
std::string info_text(Hub& hub, resp::Arguments names);

struct Setting {
  std::string_view name;
  std::string value;
  bool is_secret = false;  // CONFIG GET does not tell it
};
// All settings that CONFIG knows. None can be changed while the server runs.
std::vector<Setting> settings_of(Hub& hub);

}  // namespace server
