#include "spill/leases.h"

#include <asm/statfs.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>

#include <atomic>

#include "base/text.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/nap.h"

namespace spill {
namespace {

constexpr uint64_t kRetryNs = 50'000;
constexpr int kComing = -1;
constinit std::atomic<int> watcher{0};  // the background thread's number

// The number of the thread that watches leases, 0 if there is none.
int wait_for_watcher() {
  int told;
  while ((told = watcher.load(std::memory_order_acquire)) == kComing) sys::nap(kRetryNs);
  return told;
}

}  // namespace

bool is_disk_file(int descriptor) {
  struct stat facts;
  struct statfs system = {};
  if (sys::failed(sys::syscall(SYS_fstat, descriptor, &facts)) || !S_ISREG(facts.st_mode)) return false;
  if (sys::failed(sys::syscall(SYS_fstatfs, descriptor, &system))) return false;
  constexpr long kF2fs = 0xf2f52010, kXfs = 0x58465342;
  for (long known :
       {long{EXT4_SUPER_MAGIC}, kXfs, long{BTRFS_SUPER_MAGIC}, kF2fs, long{OVERLAYFS_SUPER_MAGIC}})
    if (system.f_type == known) return true;
  return false;
}

bool has_record_locks(int descriptor) {
  // A lock of an open file description conflicts with those of all processes, its own included.
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  return !sys::failed(sys::syscall(SYS_fcntl, descriptor, F_OFD_GETLK, &lock)) && lock.l_type != F_UNLCK;
}

int open_again(int descriptor) {
  base::Text<48> path;
  path << "/proc/self/fd/" << descriptor;
  long opened = sys::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (opened == -EINVAL) opened = sys::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC);
  if (sys::failed(opened)) return -1;
  auto own = sys::own_descriptor(static_cast<int>(opened));
  if (own) return *own;
  sys::syscall(SYS_close, opened);
  return -1;
}

int open_leased(int descriptor) {
  const int told = wait_for_watcher();
  const long mode = sys::syscall(SYS_fcntl, descriptor, F_GETFL);
  if (told == 0 || sys::failed(mode) || (mode & (O_ACCMODE | O_PATH)) != O_RDONLY) return -1;
  if (!is_disk_file(descriptor) || has_record_locks(descriptor)) return -1;
  const int own = open_again(descriptor);
  if (own < 0) return -1;
  // Before the lease is taken: otherwise the kernel would signal the whole process, and end it.
  const f_owner_ex owner = {F_OWNER_TID, told};
  if (!sys::failed(sys::syscall(SYS_fcntl, own, F_SETOWN_EX, &owner)) &&
      !sys::failed(sys::syscall(SYS_fcntl, own, F_SETLEASE, F_RDLCK)))
    return own;
  sys::close_own_descriptor(own);
  return -1;
}

void give_lease_back(int descriptor) { sys::syscall(SYS_fcntl, descriptor, F_SETLEASE, F_UNLCK); }

bool is_lease_asked_back(int descriptor) {
  return sys::syscall(SYS_fcntl, descriptor, F_GETLEASE) != F_RDLCK;
}

void will_watch_leases() { watcher.store(kComing, std::memory_order_release); }

void cannot_watch_leases() { watcher.store(0, std::memory_order_release); }

void watch_leases() { watcher.store(static_cast<int>(sys::syscall(SYS_gettid)), std::memory_order_release); }

}  // namespace spill
