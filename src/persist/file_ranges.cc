#include "persist/file_ranges.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/ids.h"
#include "sys/kernel.h"

namespace persist {

namespace {

// Repeats what a signal has interrupted. Returns 0 or an errno value.
template <class... Arguments>
int call(long number, Arguments... arguments) {
  long result;
  do {
    result = sys::syscall(number, arguments...);
  } while (result == -EINTR);
  return sys::failed(result) ? static_cast<int>(-result) : 0;
}

base::Expected<void> answer(int error) {
  if (error == 0) return {};
  return base::failure(error,
                       "what was flushed of a file's mapping cannot be written: ", base::error_name(error));
}

}  // namespace

base::Expected<void> write_range(FileFailures& failures, const Domain& domain, uintptr_t begin,
                                 uintptr_t end) {
  begin = base::round_down(begin, base::kOsPageBytes);
  const int error = call(SYS_msync, begin, base::round_up(end, base::kOsPageBytes) - begin, MS_SYNC);
  if (error != 0) failures.note(domain.descriptor, error);
  return answer(error);
}

bool FileRanges::has_room(const Domain& domain) const {
  for (size_t i = 0; i < count_; ++i)
    if (ranges_[i].is_of(domain.begin, domain.descriptor)) return true;
  return count_ < kMaxRanges;
}

void FileRanges::add(const Domain& domain, uintptr_t begin, uintptr_t end) {
  begin = base::round_down(begin, base::kOsPageBytes);
  end = base::round_up(end, base::kOsPageBytes);
  Range* last = nullptr;  // of the domain
  for (size_t i = 0; i < count_; ++i) {
    Range& range = ranges_[i];
    if (!range.is_of(domain.begin, domain.descriptor)) continue;
    last = &range;
    if (range.begin <= end && begin <= range.end) break;
    if (count_ < kMaxRanges) last = nullptr;
  }
  if (last != nullptr) {
    last->begin = std::min(last->begin, begin);
    last->end = std::max(last->end, end);
    return;
  }
  ranges_[count_++] = {
      .begin = begin, .end = end, .domain_begin = domain.begin, .descriptor = domain.descriptor};
}

bool FileRanges::is_alone(size_t number) const {
  const Range& range = ranges_[number];
  for (size_t i = number + 1; i < count_; ++i)
    if (ranges_[i].is_of(range.domain_begin, range.descriptor) && ranges_[i].begin < ranges_[i].end)
      return false;
  return true;
}

void FileRanges::skip_others(size_t number) {
  const Range& range = ranges_[number];
  for (size_t i = number + 1; i < count_; ++i)
    if (ranges_[i].is_of(range.domain_begin, range.descriptor)) ranges_[i].end = ranges_[i].begin;
}

// The domain may have been removed since, or a part of it. That memory must not be touched; whoever removed it has had it written.
int FileRanges::write_one(const Domains& domains, size_t number, SharedSyncs* shared) {
  const Range& range = ranges_[number];
  for (uintptr_t address = range.begin; address < range.end;) {
    const Domains::Found found = domains.find(address);
    const uintptr_t piece_end = std::min(range.end, found.domain.end);
    if (found.is_inside && found.domain.kind == DomainKind::kFile) {
      const bool has_file = range.descriptor >= 0 && range.descriptor == found.domain.descriptor;
      SharedSync* const together = has_file && shared != nullptr ? shared->of(range.descriptor) : nullptr;
      if (together != nullptr || (has_file && !is_alone(number))) {
        skip_others(number);
        const auto sync = [&] {
          const int error = call(SYS_fdatasync, range.descriptor);
          if (error != 0) failures_.note(range.descriptor, error);
          return error;
        };
        return together != nullptr ? together->run(sync) : sync();
      }
      if (auto written = write_range(failures_, found.domain, address, piece_end); !written)
        return written.error().number;
    }
    address = piece_end;
  }
  return 0;
}

int FileRanges::write_all(const Domains& domains, SharedSyncs* shared) {
  int error = 0;
  for (size_t i = 0; i < count_; ++i) {
    const int result = write_one(domains, i, shared);
    const int told = seen_.take(ranges_[i].descriptor);  // its own included
    if (error == 0) error = result != 0 ? result : told;
  }
  count_ = 0;
  return error;
}

void FileRanges::write_early(const Domains& domains) {
  const int error = write_all(domains, nullptr);
  if (error_ == 0) error_ = error;
}

base::Expected<void> FileRanges::write(const Domains& domains, SharedSyncs* shared) {
  const int error = write_all(domains, shared);
  const int first = error_ != 0 ? error_ : error;
  error_ = 0;
  return answer(first);
}

}  // namespace persist
