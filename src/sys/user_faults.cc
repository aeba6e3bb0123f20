#include "sys/user_faults.h"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/userfaultfd.h>

#include "base/check.h"
#include "base/ids.h"
#include "sys/kernel.h"

namespace sys {
namespace {

// Of newer kernels than the system's headers may be.
constexpr uint64_t kFeatureMove = uint64_t{1} << 16;  // UFFD_FEATURE_MOVE
struct Move {                                         // struct uffdio_move
  uint64_t to, from, bytes, mode;
  int64_t moved;
};
constexpr unsigned long kMove = _IOWR(UFFDIO, 0x05, Move);  // UFFDIO_MOVE
constexpr unsigned long kNew = _IO(UFFDIO, 0x00);           // USERFAULTFD_IOC_NEW
constexpr size_t kMaxEvents = 16;

base::Expected<void> refused(long result) {
  const int number = static_cast<int>(-result);
  if (number == EPERM || number == EACCES)
    return base::failure(number, "this user may not serve page faults of system calls (userfaultfd: ",
                         base::error_name(number),
                         "); be root, or sysctl vm.unprivileged_userfaultfd=1, or allow /dev/userfaultfd");
  return base::failure(number, "the kernel offers no userfaultfd (", base::error_name(number), ")");
}

// How many bytes were done, or -errno, if the kernel returned `result` and `done`.
long outcome(long result, int64_t done) {
  if (!failed(result)) return static_cast<long>(done);
  return result == -EAGAIN && done > 0 ? static_cast<long>(done) : result;
}

}  // namespace

base::Expected<void> UserFaults::open() {
  // Without UFFD_USER_MODE_ONLY: a system call on a missing page must wait, not fail.
  long opened = syscall(SYS_userfaultfd, O_CLOEXEC);
  if (opened == -EPERM) {
    const long device = syscall(SYS_openat, AT_FDCWD, "/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (!failed(device)) {
      opened = syscall(SYS_ioctl, device, kNew, O_CLOEXEC);
      syscall(SYS_close, device);
    }
  }
  if (failed(opened)) return refused(opened);
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = kFeatureMove;
  if (const long agreed = syscall(SYS_ioctl, opened, UFFDIO_API, &api); failed(agreed)) {
    syscall(SYS_close, opened);
    return base::failure(ENOTSUP, "the kernel cannot move pages (userfaultfd: ",
                         base::error_name(static_cast<int>(-agreed)), "); it needs Linux 6.8");
  }
  descriptor_ = static_cast<int>(opened);
  return {};
}

void UserFaults::close() {
  if (descriptor_ >= 0) syscall(SYS_close, descriptor_);
  descriptor_ = -1;
}

base::Expected<void> UserFaults::add(uint64_t address, uint64_t bytes) {
  uffdio_register range = {};
  range.range = {address, bytes};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  const long result = syscall(SYS_ioctl, descriptor_, UFFDIO_REGISTER, &range);
  if (!failed(result)) return {};
  return base::failure(static_cast<int>(-result), "cannot watch ", base::Bytes{bytes}, " at ",
                       base::Hex{address},
                       " for missing pages: ", base::error_name(static_cast<int>(-result)));
}

size_t UserFaults::wait(std::span<uint64_t> to) {
  uffd_msg messages[kMaxEvents];
  const size_t most = to.size() < kMaxEvents ? to.size() : kMaxEvents;
  const long bytes = syscall(SYS_read, descriptor_, messages, most * sizeof messages[0]);
  CHECK(!failed(bytes) || bytes == -EINTR || bytes == -EAGAIN);
  size_t count = 0;
  for (size_t i = 0; !failed(bytes) && i < static_cast<size_t>(bytes) / sizeof messages[0]; ++i)
    if (messages[i].event == UFFD_EVENT_PAGEFAULT)
      to[count++] = base::round_down(messages[i].arg.pagefault.address, base::kOsPageBytes);
  return count;
}

long UserFaults::copy(uint64_t to, const void* from, uint64_t bytes) {
  uffdio_copy range = {};
  range.dst = to;
  range.src = reinterpret_cast<uint64_t>(from);
  range.len = bytes;
  const long result = syscall(SYS_ioctl, descriptor_, UFFDIO_COPY, &range);
  return outcome(result, range.copy);
}

long UserFaults::move(uint64_t to, uint64_t from, uint64_t bytes) {
  Move range = {to, from, bytes, 0, 0};
  const long result = syscall(SYS_ioctl, descriptor_, kMove, &range);
  return outcome(result, range.moved);
}

void UserFaults::wake(uint64_t address, uint64_t bytes) {
  uffdio_range range = {address, bytes};
  syscall(SYS_ioctl, descriptor_, UFFDIO_WAKE, &range);
}

}  // namespace sys
