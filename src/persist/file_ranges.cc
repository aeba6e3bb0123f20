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

base::Expected<void> write_range(uintptr_t begin, uintptr_t end) {
  begin = base::round_down(begin, base::kOsPageBytes);
  return answer(call(SYS_msync, begin, base::round_up(end, base::kOsPageBytes) - begin, MS_SYNC));
}

void FileRanges::add(const Domain& domain, uintptr_t begin, uintptr_t end) {
  begin = base::round_down(begin, base::kOsPageBytes);
  end = base::round_up(end, base::kOsPageBytes);
  Range* last = nullptr;  // of the domain
  for (size_t i = 0; i < count_; ++i) {
    Range& range = ranges_[i];
    if (range.domain_begin != domain.begin) continue;
    last = &range;
    if (range.begin <= end && begin <= range.end) break;
    if (count_ < kRangesMax) last = nullptr;
  }
  if (last != nullptr) {
    last->begin = std::min(last->begin, begin);
    last->end = std::max(last->end, end);
    return;
  }
  if (count_ == kRangesMax) {
    const int error = write_all(nullptr);
    if (error_ == 0) error_ = error;
  }
  ranges_[count_++] = {
      .begin = begin, .end = end, .domain_begin = domain.begin, .descriptor = domain.descriptor};
}

int FileRanges::write_all(SharedSyncs* shared) {
  int error = 0;
  const size_t count = count_;
  count_ = 0;
  for (size_t i = 0; i < count; ++i) {
    Range& range = ranges_[i];
    if (range.begin == range.end) continue;  // written with another
    bool is_alone = true;
    for (size_t k = i + 1; k < count; ++k) {
      if (ranges_[k].domain_begin != range.domain_begin) continue;
      is_alone = false;
      if (range.descriptor >= 0) ranges_[k].end = ranges_[k].begin;
    }
    SharedSync* const together =
        shared != nullptr && range.descriptor >= 0 ? shared->of(range.descriptor) : nullptr;
    const auto sync = [&] { return call(SYS_fdatasync, range.descriptor); };
    int result;
    if (together != nullptr)
      result = together->run(sync);
    else if (range.descriptor >= 0 && !is_alone)
      result = sync();
    else
      result = call(SYS_msync, range.begin, range.end - range.begin, MS_SYNC);
    if (error == 0) error = result;
  }
  return error;
}

void FileRanges::drop_removed(const Domains& domains) {
  size_t kept = 0;
  for (size_t i = 0; i < count_; ++i) {
    const Domains::Found found = domains.find(ranges_[i].domain_begin);
    if (found.is_inside && found.domain.kind == DomainKind::kFile &&
        found.domain.begin == ranges_[i].domain_begin &&
        ranges_[i].end <= base::round_up(found.domain.end, base::kOsPageBytes))
      ranges_[kept++] = ranges_[i];
  }
  count_ = kept;
}

base::Expected<void> FileRanges::write(SharedSyncs* shared) {
  const int error = write_all(shared);
  const int first = error_ != 0 ? error_ : error;
  error_ = 0;
  return answer(first);
}

}  // namespace persist
