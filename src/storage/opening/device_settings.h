// Parsing of settings in device strings: what device_string.cc and device_settings.cc share, and the settings that device_settings.cc parses.
#pragma once
#include <string_view>

#include "base/error.h"
#include "storage/backends/spdk.h"
#include "storage/decorators/fault_schedule.h"
#include "storage/decorators/latency_model.h"

namespace storage {

// User input as an error message shows it: printable, and short enough to leave room for the rest.
class Shown {
 public:
  explicit Shown(std::string_view text) {
    for (char c : text.substr(0, 60)) text_ << (c >= ' ' && c <= '~' ? c : '?');
    if (text.size() > 60) text_ << "...";
  }
  friend base::TextRef& operator<<(base::TextRef& to, const Shown& shown) { return to << shown.text_.view(); }

 private:
  base::Text<80> text_;
};

struct Split {
  std::string_view before;
  std::string_view after;
  bool found;
};

inline Split split_at(std::string_view text, std::string_view separator) {
  size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}, false};
  return {text.substr(0, at), text.substr(at + separator.size()), true};
}

// A whole number from `least` to `most`. Errors: EINVAL, with a message that says what should be one.
base::Expected<uint64_t> parse_count(std::string_view what, std::string_view text, uint64_t least,
                                     uint64_t most);

// "seed=7,read_eio=1/1000,any_delay_polls=%3x8". Errors: EINVAL.
base::Expected<void> parse_faults(std::string_view text, FaultSchedule& schedule);
// "us=80,channels=8,mbps=2000,dist=exp,seed=7,sleep=1". Errors: EINVAL.
base::Expected<void> parse_latency_settings(std::string_view text, LatencyParameters& latency);
// "tcp=127.0.0.1:4420,nqn=nqn.2016-06.io.spdk:cnode1,ns=1,qd=64". Errors: EINVAL.
base::Expected<void> parse_spdk_settings(std::string_view text, SpdkParameters& spdk, size_t& depth);
// Does `text` begin with a setting of spdk?
bool begins_with_spdk_setting(std::string_view text);

}  // namespace storage
