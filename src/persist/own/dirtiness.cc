#include "persist/own/dirtiness.h"

#include <string.h>

#include <algorithm>

#include "base/ids.h"
#include "sys/mappings.h"
#include "sys/memory.h"

namespace persist {

void Dirtiness::add(const Domain& domain, std::string_view, uint64_t) {
  const size_t bytes = domain.end - domain.begin;
  if (sys::readable_end(base::round_down(domain.begin, base::kOsPageBytes), domain.end) != domain.end) return;
  sys::QuietLockGuard scope(lock_);
  for (Copy& copy : copies_) {
    if (copy.bytes != nullptr) continue;
    const auto memory = sys::map_anonymous(bytes, "a copy of a domain");
    if (!memory) return;
    memcpy(*memory, reinterpret_cast<const void*>(domain.begin), bytes);
    copy = {.begin = domain.begin, .end = domain.end, .bytes = *memory};
    return;
  }
}

void Dirtiness::remove(uintptr_t begin, uintptr_t end) {
  sys::QuietLockGuard scope(lock_);
  for (Copy& copy : copies_) {
    if (copy.bytes == nullptr || copy.begin >= end || begin >= copy.end) continue;
    sys::unmap(copy.bytes, copy.end - copy.begin);
    copy = {};
  }
}

void Dirtiness::flush(uintptr_t address, size_t bytes, bool, const void*) {
  sys::QuietLockGuard scope(lock_);
  for (uintptr_t line = base::round_down(address, base::kLineBytes); line < address + bytes;
       line += base::kLineBytes)
    flush_line(line);
}

void Dirtiness::flush_line(uintptr_t line) {
  for (const Copy& copy : copies_) {
    if (line < copy.begin || line >= copy.end) continue;
    char* const before = copy.bytes + (line - copy.begin);
    const char* const now = reinterpret_cast<const char*>(line);
    uint64_t dirty = 0;
    for (size_t i = 0; i < base::kLineBytes; ++i) dirty += before[i] != now[i];
    memcpy(before, now, base::kLineBytes);
    ++counts_.lines;
    counts_.clean_lines += dirty == 0;
    counts_.dirty_bytes += dirty;
    return;
  }
}

void Dirtiness::fence(const void*) {
  sys::QuietLockGuard scope(lock_);
  ++counts_.fences;
}

Dirtiness::Counts Dirtiness::counts() const {
  sys::QuietLockGuard scope(lock_);
  return counts_;
}

// Without overflow, however many there are.
uint64_t Dirtiness::Counts::dirty_millionths() const {
  constexpr uint64_t kMillion = 1'000'000;
  const uint64_t bytes = lines * base::kLineBytes;
  if (dirty_bytes > ~uint64_t{0} / kMillion) return dirty_bytes / (bytes / kMillion);
  return bytes == 0 ? 0 : dirty_bytes * kMillion / bytes;
}

void Dirtiness::write_statistics(base::TextRef& text) const {
  const Counts all = counts();
  const uint64_t ppm = all.dirty_millionths();
  text << ", \"dirtiness\": {\"lines\": " << all.lines << ", \"clean_lines\": " << all.clean_lines
       << ", \"dirty_bytes\": " << all.dirty_bytes << ", \"fences\": " << all.fences
       << ", \"share\": " << ppm / 1'000'000 << '.';
  for (uint64_t unit = 100'000, rest = ppm % 1'000'000; unit > 0; rest %= unit, unit /= 10)
    text << rest / unit;
  text << '}';
}

}  // namespace persist
