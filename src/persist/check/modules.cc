#include "persist/check/modules.h"

#include "sys/mappings.h"

namespace persist {

bool Modules::knows(uint64_t site) {
  if (last_ < count_ && site - ranges_[last_].begin < ranges_[last_].end - ranges_[last_].begin) return true;
  for (uint32_t i = 0; i < count_; ++i)
    if (site - ranges_[i].begin < ranges_[i].end - ranges_[i].begin) {
      last_ = i;
      return true;
    }
  return false;
}

void Modules::note(const void* site, LogWriter& log) {
  const uint64_t address = reinterpret_cast<uint64_t>(site);
  if (address == 0 || knows(address) || scans_ == kMaxScans) return;
  ++scans_;
  scan(log);
}

void Modules::scan(LogWriter& log) {
  sys::visit_mappings([&](const sys::Mapping& mapping) {
    if (count_ == kMaxCount) return false;
    if (!mapping.is_executable || !mapping.path.starts_with('/') || knows(mapping.begin)) return true;
    ranges_[count_++] = {mapping.begin, mapping.end};
    log.write({.kind = RecordKind::kModule,
               .site = mapping.offset_bytes,
               .address = mapping.begin,
               .length = mapping.end - mapping.begin},
              nullptr, 0, mapping.path);
    return true;
  });
}

}  // namespace persist
