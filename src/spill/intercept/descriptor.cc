// Closing and replacing descriptors: the runtime's own (sys/files.h) look closed to the program, which
// closes what it did not open in loops and ranges. Exported under their own names, since libraries do
// the same. When a program closes or replaces its standard error, the runtime follows. Descriptor tables for only some of the
// threads are refused: the runtime's threads use what any thread of the program opens, and the other way round.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "spill/fork.h"
#include "spill/intercept/intercept.h"
#include "spill/last_thread.h"
#include "spill/next.h"
#include "sys/files.h"

namespace spill {
namespace {

// For kernels before 5.9.
int close_one_by_one(unsigned first, unsigned last) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  const auto end = static_cast<unsigned>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
  for (unsigned descriptor = first; descriptor <= last && descriptor < end; ++descriptor)
    LIBC_VERSION(close, "GLIBC_2.2.5")(static_cast<int>(descriptor));
  return 0;
}

int close_part(unsigned first, unsigned last, int flags) {
  const int result = LIBC_VERSION(close_range, "GLIBC_2.34")(first, last, flags);
  if (result != 0 && errno == ENOSYS && flags == 0) return close_one_by_one(first, last);
  return result;
}

// [first, last] but for the runtime's own.
int close_around_own(unsigned first, unsigned last, int flags) {
  const unsigned begin = first;
  int own[sys::kMaxOwnDescriptors];
  const size_t count = sys::own_descriptors(own);
  for (size_t i = 0; i < count && first <= last; ++i) {
    const auto keep = static_cast<unsigned>(own[i]);
    if (keep < first || keep > last) continue;
    if (keep > first && close_part(first, keep - 1, flags) != 0) return -1;
    first = keep + 1;
  }
  const int result = first <= last ? close_part(first, last, flags) : 0;
  if (begin <= 2) look_at_error_output();
  return result;
}

// Removes the flag that gives the calling thread a descriptor table of its own, if that makes no difference because the program has no
// other thread; else returns false. In a child of vfork, which may part with its parent's table, the flag stays.
bool stay_in_table(int& flags, int own_table) {
  if ((flags & own_table) == 0 || is_sharing_child()) return true;
  flags &= ~own_table;
  return is_only_thread();
}

}  // namespace

void look_at_error_output() {
  // A child of vfork has descriptors of its own.
  if (!is_sharing_child()) sys::error_output_replaced();
}

}  // namespace spill

SPILL_EXPORT int __spill_close(int descriptor) {
  if (sys::is_own_descriptor(descriptor)) return spill::fail(EBADF);
  const int result = LIBC_VERSION(close, "GLIBC_2.2.5")(descriptor);
  if (descriptor == 2) spill::look_at_error_output();
  return result;
}

// A number that the runtime holds cannot be freed in the middle of its I/O.
SPILL_EXPORT int __spill_dup2(int from, int to) {
  if (sys::is_own_descriptor(from) || sys::is_own_descriptor(to)) return spill::fail(EBADF);
  const int result = LIBC_VERSION(dup2, "GLIBC_2.2.5")(from, to);
  if (to == 2) spill::look_at_error_output();
  return result;
}

SPILL_EXPORT int __spill_dup3(int from, int to, int flags) {
  if (sys::is_own_descriptor(from) || sys::is_own_descriptor(to)) return spill::fail(EBADF);
  const int result = LIBC_VERSION(dup3, "GLIBC_2.9")(from, to, flags);
  if (to == 2) spill::look_at_error_output();
  return result;
}

SPILL_EXPORT int __spill_close_range(unsigned first, unsigned last, int flags) {
  // CLOSE_RANGE_CLOEXEC does not affect the runtime's descriptors.
  constexpr int kOwnTable = 2, kOnlyMark = 4;
  if (!spill::stay_in_table(flags, kOwnTable)) return spill::fail(ENOTSUP);
  if (first > last || (flags & kOnlyMark) != 0) return spill::close_part(first, last, flags);
  return spill::close_around_own(first, last, flags);
}

SPILL_EXPORT void __spill_closefrom(int first) {
  spill::close_around_own(first > 0 ? static_cast<unsigned>(first) : 0, ~0U, 0);
}

SPILL_EXPORT int __spill_unshare(int flags) {
  if (!spill::stay_in_table(flags, CLONE_FILES)) return spill::fail(ENOTSUP);
  return LIBC(unshare)(flags);
}
