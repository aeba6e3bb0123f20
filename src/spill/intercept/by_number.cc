// syscall(2) with numbers other than those of futexes and of copying the process (syscall.cc): for calls that the C library
// has no function for, and for programs that bypass its functions.
//
//   SPILL_SAME_CALLS   calls that the C library passes on as they are: its function's interceptor is called
//   kByKernel          others: arguments in spilled memory are copied, as the list says
//
// Arguments of a number in neither list are passed as they are, and the kernel refuses spilled addresses (EFAULT); it also
// does so if a structure holds further addresses (bpf, io_submit, keyctl).
#include <asm/prctl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/quota.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <type_traits>
#include <utility>

#include "spill/address_space.h"
#include "spill/intercept/filter.h"
#include "spill/intercept/io.h"
#include "spill/signals.h"

// Numbers whose arguments and results are those of the C library's function.
// clang-format off
#define SPILL_SAME_CALLS(CALL) \
  CALL(accept) CALL(accept4) CALL(access) CALL(acct) CALL(adjtimex) CALL(bind) CALL(capget) \
  CALL(capset) CALL(chdir) CALL(chmod) \
  CALL(chown) CALL(chroot) CALL(clock_adjtime) CALL(clock_getres) CALL(clock_gettime) CALL(clock_settime) \
  CALL(close) CALL(close_range) CALL(connect) CALL(copy_file_range) CALL(creat) CALL(dup2) CALL(dup3) \
  CALL(epoll_ctl) CALL(epoll_wait) CALL(execve) CALL(execveat) CALL(fanotify_mark) CALL(fchownat) \
  CALL(fgetxattr) CALL(flistxattr) CALL(fremovexattr) CALL(fsconfig) CALL(fsetxattr) CALL(fsopen) CALL(fspick) CALL(fstat) \
  CALL(fstatfs) CALL(futimesat) CALL(getcpu) CALL(getdents64) CALL(getgroups) CALL(getitimer) \
  CALL(getpeername) CALL(getrandom) CALL(getresgid) CALL(getresuid) CALL(getrlimit) CALL(getrusage) \
  CALL(getsockname) CALL(getsockopt) CALL(gettimeofday) CALL(getxattr) CALL(inotify_add_watch) CALL(lchown) \
  CALL(lgetxattr) CALL(link) CALL(linkat) CALL(listxattr) CALL(llistxattr) CALL(lremovexattr) \
  CALL(lseek) CALL(lsetxattr) CALL(lstat) CALL(madvise) CALL(memfd_create) CALL(mincore) CALL(mkdir) CALL(mkdirat) \
  CALL(mknod) CALL(mknodat) CALL(mlock) CALL(mlock2) CALL(mlockall) CALL(mmap) CALL(mount) CALL(mount_setattr) \
  CALL(move_mount) CALL(mprotect) CALL(mq_timedreceive) CALL(mq_timedsend) CALL(msgctl) CALL(msgrcv) \
  CALL(msgsnd) CALL(msync) CALL(munlock) CALL(munmap) CALL(name_to_handle_at) CALL(nanosleep) \
  CALL(open_by_handle_at) CALL(open_tree) CALL(pipe) CALL(pipe2) CALL(pivot_root) CALL(pkey_mprotect) CALL(poll) CALL(pread64) \
  CALL(preadv) CALL(prlimit64) CALL(process_madvise) CALL(process_vm_readv) CALL(process_vm_writev) CALL(pwrite64) CALL(pwritev) \
  CALL(quotactl) CALL(read) CALL(readlink) CALL(readlinkat) CALL(readv) CALL(recvfrom) CALL(recvmmsg) \
  CALL(recvmsg) CALL(removexattr) CALL(rename) CALL(renameat) CALL(renameat2) CALL(rmdir) \
  CALL(sched_getparam) CALL(sched_rr_get_interval) CALL(sched_setaffinity) CALL(sched_setparam) \
  CALL(sched_setscheduler) CALL(select) CALL(semop) CALL(semtimedop) CALL(sendfile) CALL(sendmmsg) CALL(sendmsg) \
  CALL(sendto) CALL(setdomainname) CALL(sethostname) CALL(setitimer) CALL(setrlimit) \
  CALL(setsockopt) CALL(settimeofday) CALL(setxattr) CALL(shmat) CALL(shmctl) CALL(sigaltstack) CALL(socketpair) \
  CALL(splice) CALL(stat) CALL(statfs) CALL(statx) CALL(swapoff) CALL(swapon) CALL(symlink) CALL(symlinkat) \
  CALL(sysinfo) CALL(time) CALL(timerfd_gettime) CALL(timerfd_settime) CALL(times) CALL(truncate) \
  CALL(umount2) CALL(uname) CALL(unlink) CALL(unlinkat) CALL(unshare) CALL(utime) CALL(utimes) \
  CALL(vmsplice) CALL(wait4) CALL(write) CALL(writev)
// clang-format on

extern "C" {
int capget(cap_user_header_t header, cap_user_data_t data);
int capset(cap_user_header_t header, cap_user_data_t data);
int pivot_root(const char* root, const char* old);
#define SPILL_DECLARE(name) decltype(::name) __spill_##name;
SPILL_SAME_CALLS(SPILL_DECLARE)
int __spill_open(const char* path, int flags, ...);
int __spill_openat(int folder, const char* path, int flags, ...);
int __spill_fcntl(int descriptor, int command, ...);
int __spill_ioctl(int descriptor, unsigned long request, ...);
int __spill_prctl(int option, ...);
int __spill_semctl(int id, int index, int command, ...);
int __spill_faccessat(int folder, const char* path, int mode, int flags);
int __spill_fchmodat(int folder, const char* path, mode_t mode, int flags);
int __spill_fstatat(int folder, const char* path, struct stat* to, int flags);
void* __spill_mremap(void* old_address, size_t old_bytes, size_t new_bytes, int flags, ...);
ssize_t __spill_preadv2(int file, const iovec* vector, int count, off_t offset, int flags);
ssize_t __spill_pwritev2(int file, const iovec* vector, int count, off_t offset, int flags);
}

namespace spill {
namespace {

// Calls the function with as many of the six arguments as it takes, each as syscall() got it.
template <class T>
T argument(long value) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<T>(value);
  else
    return static_cast<T>(value);
}
template <class Result, class... Parameters>
long call(Result (*function)(Parameters...), const long* a) {
  return [&]<size_t... n>(std::index_sequence<n...>) {
    if constexpr (std::is_pointer_v<Result>)
      return reinterpret_cast<long>(function(argument<Parameters>(a[n])...));
    else
      return static_cast<long>(function(argument<Parameters>(a[n])...));
  }(std::index_sequence_for<Parameters...>());
}

// What the kernel finds at an argument's address: text; `bytes` times the argument `count`; a mask of memory nodes, of which the kernel reads
// one bit less than `count` says; or a signal mask, from which the signals that the fault path needs are removed.
struct Memory {
  enum Kind : uint8_t { kNone, kText, kIn, kInOut, kMask };
  Kind kind = kNone;
  uint8_t position = 0;
  uint16_t bytes = 0;
  int8_t count = -1;
  bool is_of_nodes = false;
};
struct ByKernel {
  long number;
  Memory memory[4];
};

constexpr Memory text(uint8_t position) { return {Memory::kText, position, 0, -1}; }
constexpr Memory in(uint8_t position, uint16_t bytes, int8_t count = -1) {
  return {Memory::kIn, position, bytes, count};
}
constexpr Memory in_out(uint8_t position, uint16_t bytes, int8_t count = -1) {
  return {Memory::kInOut, position, bytes, count};
}

constexpr Memory nodes_in(uint8_t position, int8_t count) { return {Memory::kIn, position, 0, count, true}; }
constexpr Memory nodes_out(uint8_t position, int8_t count) {
  return {Memory::kInOut, position, 0, count, true};
}

constexpr uint16_t kTime = sizeof(timespec), kSet = sizeof(uint64_t), kInfo = sizeof(siginfo_t);

constexpr Memory mask(uint8_t position) { return {Memory::kMask, position, kSet, -1}; }

constexpr ByKernel kByKernel[] = {
    {SYS_add_key, {text(0), text(1), in(2, 1, 3)}},
    {SYS_clock_nanosleep, {in(2, kTime), in_out(3, kTime)}},
    {SYS_delete_module, {text(0)}},
    {SYS_epoll_pwait, {in_out(1, sizeof(epoll_event), 2), mask(4)}},
    {SYS_epoll_pwait2, {in_out(1, sizeof(epoll_event), 2), in(3, kTime), mask(4)}},
    {SYS_finit_module, {text(1)}},
    {SYS_get_mempolicy, {in_out(0, sizeof(int)), nodes_out(1, 2)}},
    {SYS_get_robust_list, {in_out(1, 8), in_out(2, 8)}},
    {SYS_getcwd, {in_out(0, 1, 1)}},
    {SYS_getdents, {in_out(1, 1, 2)}},
    {SYS_init_module, {in(0, 1, 1), text(2)}},
    {SYS_io_getevents, {in_out(3, 32, 2), in_out(4, kTime)}},
    {SYS_io_setup, {in_out(1, 8)}},
    {SYS_io_uring_setup, {in_out(1, 120)}},
    {SYS_landlock_add_rule, {in(2, 16)}},
    {SYS_landlock_create_ruleset, {in(0, 1, 1)}},
    {SYS_mbind, {nodes_in(3, 4)}},
    {SYS_migrate_pages, {nodes_in(2, 1), nodes_in(3, 1)}},
    {SYS_move_pages, {in(2, 8, 1), in(3, 4, 1), in_out(4, 4, 1)}},
    {SYS_mq_getsetattr, {in(1, sizeof(mq_attr)), in_out(2, sizeof(mq_attr))}},
    {SYS_mq_notify, {in(1, sizeof(sigevent))}},
    {SYS_mq_open, {text(0), in(3, sizeof(mq_attr))}},
    {SYS_mq_unlink, {text(0)}},
    {SYS_openat2, {text(1), in(2, 1, 3)}},
    {SYS_pidfd_send_signal, {in(2, kInfo)}},
    {SYS_ppoll, {in_out(0, sizeof(pollfd), 1), in_out(2, kTime), mask(3)}},
    {SYS_request_key, {text(0), text(1), text(2)}},
    {SYS_rt_sigpending, {in_out(0, kSet)}},
    {SYS_rt_sigqueueinfo, {in(2, kInfo)}},
    {SYS_rt_sigsuspend, {mask(0)}},
    {SYS_rt_sigtimedwait, {in(0, kSet), in_out(1, kInfo), in(2, kTime)}},
    {SYS_rt_tgsigqueueinfo, {in(3, kInfo)}},
    {SYS_sched_getaffinity, {in_out(2, 1, 1)}},
    {SYS_sched_getattr, {in_out(1, 1, 2)}},
    {SYS_set_mempolicy, {nodes_in(1, 2)}},
    // For this thread alone; the C library's function changes all threads.
    {SYS_setgroups, {in(1, sizeof(gid_t), 0)}},
    {SYS_signalfd4, {in(1, kSet)}},
    {SYS_syslog, {in_out(1, 1, 2)}},
    {SYS_timer_create, {in(1, sizeof(sigevent)), in_out(2, 4)}},
    {SYS_timer_gettime, {in_out(1, sizeof(itimerspec))}},
    {SYS_timer_settime, {in(2, sizeof(itimerspec)), in_out(3, sizeof(itimerspec))}},
    // Allows no path, which the C library's function refuses.
    {SYS_utimensat, {text(1), in(2, 2 * kTime)}},
    {SYS_waitid, {in_out(2, kInfo), in_out(4, sizeof(rusage))}},
};

const ByKernel* find(long number) {
  for (const ByKernel& entry : kByKernel)
    if (entry.number == number) return &entry;
  return nullptr;
}

size_t bytes_of(const Memory& memory, const long* a) {
  const auto* address = reinterpret_cast<const char*>(a[memory.position]);
  if (memory.kind == Memory::kMask) return address != nullptr ? memory.bytes : 0;
  if (memory.kind == Memory::kNone) return 0;
  if (memory.kind == Memory::kText) return spilled_string_bytes(address);
  // A larger count is a mistake, which the kernel refuses.
  constexpr long kMax = 16 << 20;
  const long count = memory.count < 0 ? 1 : a[memory.count];
  const size_t whole = count > 0 && count <= kMax ? static_cast<size_t>(count) : 0;
  const size_t n = memory.is_of_nodes ? (whole + 62) / 64 * sizeof(uint64_t) : whole * memory.bytes;
  return all_plain(address, n) ? 0 : n;
}

long with_copies(const ByKernel& entry, const long* arguments) {
  long a[6];
  memcpy(a, arguments, sizeof a);
  size_t total = 0;
  for (const Memory& memory : entry.memory) total += base::round_up(bytes_of(memory, arguments), 16);
  Scratch copies(total);
  if (total > 0 && copies.data() == nullptr) return fail(ENOMEM);
  size_t at = 0;
  for (const Memory& memory : entry.memory) {
    const size_t n = bytes_of(memory, arguments);
    if (n == 0) continue;
    copy(copies.data() + at, reinterpret_cast<const char*>(arguments[memory.position]), n);
    if (memory.kind == Memory::kMask) *reinterpret_cast<uint64_t*>(copies.data() + at) &= ~kFaultSignals;
    a[memory.position] = reinterpret_cast<long>(copies.data() + at);
    at += base::round_up(n, 16);
  }
  clear_slots();
  const long result = syscall(entry.number, a[0], a[1], a[2], a[3], a[4], a[5]);
  for (const Memory& memory : entry.memory) {
    if (memory.kind != Memory::kInOut || a[memory.position] == arguments[memory.position]) continue;
    copy(reinterpret_cast<char*>(arguments[memory.position]),
         reinterpret_cast<const char*>(a[memory.position]), bytes_of(memory, arguments));
  }
  return result;
}

// The first argument says how large the sets are. The last one points to the mask's address and size.
long pselect6(const long* a) {
  struct Mask {
    const uint64_t* signals;
    size_t bytes;
  } mask = {};
  const int count = descriptors_looked_at(static_cast<int>(a[0]));
  const size_t n = static_cast<size_t>(std::max(count, 0) + 63) / 64 * 8;
  PlainBytes reads(argument<char*>(a[1]), n, PlainBytes::kInOut);
  PlainBytes writes(argument<char*>(a[2]), n, PlainBytes::kInOut);
  PlainBytes errors(argument<char*>(a[3]), n, PlainBytes::kInOut);
  PlainObject<timespec> timeout(argument<timespec*>(a[4]));
  uint64_t signals;
  if (a[5] != 0) mask = load(argument<const Mask*>(a[5]));
  if (mask.signals != nullptr && mask.bytes == sizeof signals) {
    signals = load(mask.signals) & ~kFaultSignals;
    mask.signals = &signals;
  }
  clear_slots();
  return syscall(SYS_pselect6, count, reads.data(), writes.data(), errors.data(),
                 static_cast<timespec*>(timeout), a[5] != 0 ? &mask : nullptr);
}

// A call with a structure, argument number `position`, that contains its own length in the 32 bits at `at`: 0 means the length of its first version.
long with_sized(long number, const long* arguments, unsigned position, uint32_t at, uint32_t first_bytes) {
  long a[6];
  memcpy(a, arguments, sizeof a);
  const auto* address = reinterpret_cast<const char*>(a[position]);
  constexpr uint32_t kMax = 4096;
  const auto given = load(reinterpret_cast<const uint32_t*>(address + at));
  const uint32_t least = at + uint32_t{sizeof given};
  const uint32_t size = given == 0 ? first_bytes : std::clamp(given, least, kMax);
  PlainBytes memory(address, size, PlainBytes::kInOut);
  a[position] = reinterpret_cast<long>(memory.data());
  return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// Whether a futex operation takes a time limit. Others have a number there, or nothing: then the word may look like any pointer.
bool has_time_limit(long operation) {
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2: return true;
    default: return false;
  }
}

// Whether spilled memory lies at the address and may be read.
bool can_load(const void* address) {
  const auto at = reinterpret_cast<uint64_t>(address);
  return in_range(at) && is_allocated(at) && allows(protection_at(at), Need::kRead);
}

// The function by which a handler returns is the runtime's, whatever the program gives.
struct sigaction from_kernel(const KernelAction& action) {
  struct sigaction result = {};
  result.sa_sigaction = action.handler;
  result.sa_flags = static_cast<int>(action.flags & ~kFlagRestorer);
  *reinterpret_cast<uint64_t*>(&result.sa_mask) = action.mask;
  return result;
}
KernelAction to_kernel(const struct sigaction& action) {
  return {action.sa_sigaction, static_cast<unsigned>(action.sa_flags), nullptr, mask_of(action.sa_mask)};
}

}  // namespace

long call_by_number(long number, const long* a) {
  switch (number) {
#define SPILL_SAME(name) \
  case SYS_##name: return call(__spill_##name, a);
    SPILL_SAME_CALLS(SPILL_SAME)
    // A mode, a command's argument, a new address: passed in registers, whatever they are.
    case SYS_open: return __spill_open(argument<char*>(a[0]), static_cast<int>(a[1]), a[2]);
    case SYS_openat:
      return __spill_openat(static_cast<int>(a[0]), argument<char*>(a[1]), static_cast<int>(a[2]), a[3]);
    case SYS_fcntl: return __spill_fcntl(static_cast<int>(a[0]), static_cast<int>(a[1]), a[2]);
    case SYS_ioctl: return __spill_ioctl(static_cast<int>(a[0]), static_cast<unsigned long>(a[1]), a[2]);
    case SYS_prctl: return __spill_prctl(static_cast<int>(a[0]), a[1], a[2], a[3], a[4]);
    case SYS_semctl:
      return __spill_semctl(static_cast<int>(a[0]), static_cast<int>(a[1]), static_cast<int>(a[2]), a[3]);
    case SYS_mremap:
      return reinterpret_cast<long>(__spill_mremap(argument<void*>(a[0]), static_cast<size_t>(a[1]),
                                                   static_cast<size_t>(a[2]), static_cast<int>(a[3]), a[4]));
    // Either the kernel's call takes no flags, or the C library's has another name.
    case SYS_faccessat:
      return __spill_faccessat(static_cast<int>(a[0]), argument<char*>(a[1]), static_cast<int>(a[2]), 0);
    case SYS_faccessat2: return call(__spill_faccessat, a);
    case SYS_fchmodat:
      return __spill_fchmodat(static_cast<int>(a[0]), argument<char*>(a[1]), static_cast<mode_t>(a[2]), 0);
    case SYS_newfstatat: return call(__spill_fstatat, a);
    case SYS_preadv2:
    case SYS_pwritev2: {
      const long in_order[] = {a[0], a[1], a[2], a[3], a[5]};
      return call(number == SYS_preadv2 ? __spill_preadv2 : __spill_pwritev2, in_order);
    }
    case SYS_seccomp:
      if (a[0] != SECCOMP_SET_MODE_FILTER) break;
      return syscall(number, a[0], a[1], PlainFilter(argument<const sock_fprog*>(a[2])).get());
    // The C library's sets are longer.
    case SYS_rt_sigprocmask: {
      const auto* given = argument<const uint64_t*>(a[1]);
      auto* told = argument<uint64_t*>(a[2]);
      const int how = static_cast<int>(a[0]);
      if (static_cast<size_t>(a[3]) != sizeof(uint64_t)) break;
      // Programs use this to find out whether memory can be read: the kernel copies the set before it refuses an unknown `how`.
      if (given != nullptr && !can_load(given) && (how < SIG_BLOCK || how > SIG_SETMASK)) break;
      sigset_t set = {}, old = {};
      if (given != nullptr) *reinterpret_cast<uint64_t*>(&set) = load(given);
      if (const int error = change_program_mask(how, given != nullptr ? &set : nullptr, &old))
        return fail(error);
      if (told != nullptr) store(told, mask_of(old));
      return 0;
    }
    case SYS_rt_sigaction: {
      const auto* given = argument<const KernelAction*>(a[1]);
      auto* told = argument<KernelAction*>(a[2]);
      if (static_cast<size_t>(a[3]) != sizeof(uint64_t)) break;
      struct sigaction action = {}, old = {};
      if (given != nullptr) action = from_kernel(load(given));
      const int result =
          set_program_action(static_cast<int>(a[0]), given != nullptr ? &action : nullptr, &old);
      if (result == 0 && told != nullptr) store(told, to_kernel(old));
      return result;
    }
    case SYS_perf_event_open:
      if (plain(argument<char*>(a[0]))) break;
      return with_sized(number, a, 0, 4, 64);
    case SYS_sched_setattr:
      if (plain(argument<char*>(a[1]))) break;
      return with_sized(number, a, 1, 0, 48);
    case SYS_arch_prctl:
      if (a[0] != ARCH_GET_FS && a[0] != ARCH_GET_GS) break;
      return syscall(number, a[0], static_cast<uint64_t*>(PlainObject<uint64_t>(argument<uint64_t*>(a[1]))));
    case SYS_pselect6: return pselect6(a);
    // The kernel stores there when the thread ends, and reports to nobody if it cannot.
    case SYS_set_robust_list:
    case SYS_set_tid_address:
      if (!plain(argument<char*>(a[0]))) return fail(ENOTSUP);
      break;
    case SYS_futex:
      if (!has_time_limit(a[1]) || plain(argument<char*>(a[3]))) break;
      return syscall(number, a[0], a[1], a[2],
                     static_cast<const timespec*>(PlainIn<timespec>(argument<timespec*>(a[3]))), a[4], a[5]);
    default:
      if (const ByKernel* entry = find(number)) return with_copies(*entry, a);
  }
  return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // namespace spill
