// Children, signal sets, limits, and information about the system: small structures, copied when they are spilled.
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spill/intercept/call.h"
#include "spill/intercept/filter.h"
#include "spill/intercept/plain_mask.h"

using spill::PlainMask;

// Children. Only what a call has found is stored: a handler that ran while it waited may have found the child itself, and stored its status there.
template <class Wait>
static pid_t wait_for_child(int* status, rusage* usage, Wait wait) {
  const bool copies_status = !spill::all_plain(status, sizeof *status);
  const bool copies_usage = !spill::all_plain(usage, sizeof *usage);
  int plain_status = 0;
  rusage plain_usage = {};
  spill::clear_slots();
  const pid_t child = wait(copies_status ? &plain_status : status, copies_usage ? &plain_usage : usage);
  if (child > 0 && copies_status) spill::copy(status, &plain_status, sizeof plain_status);
  if (child > 0 && copies_usage) spill::copy(usage, &plain_usage, sizeof plain_usage);
  return child;
}
SPILL_EXPORT pid_t __spill_wait(int* status) {
  return wait_for_child(status, nullptr, [](int* s, rusage*) { return wait(s); });
}
SPILL_EXPORT pid_t __spill_waitpid(pid_t child, int* status, int options) {
  return wait_for_child(status, nullptr, [=](int* s, rusage*) { return waitpid(child, s, options); });
}
SPILL_EXPORT pid_t __spill_wait3(int* status, int options, rusage* usage) {
  return wait_for_child(status, usage, [=](int* s, rusage* u) { return wait3(s, options, u); });
}
SPILL_EXPORT pid_t __spill_wait4(pid_t child, int* status, int options, rusage* usage) {
  return wait_for_child(status, usage, [=](int* s, rusage* u) { return wait4(child, s, options, u); });
}
SPILL_EXPORT int __spill_waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  const bool copies = !spill::all_plain(info, sizeof *info);
  siginfo_t plain_info;
  spill::clear_slots();
  if (copies) spill::copy(&plain_info, info, sizeof plain_info);
  const int result = waitid(type, id, copies ? &plain_info : info, options);
  if (result == 0 && copies) spill::copy(info, &plain_info, sizeof plain_info);
  return result;
}

// Signal sets.
SPILL_CALL(int, sigemptyset, (sigset_t * set), (PlainObject<sigset_t>(set)))
SPILL_CALL(int, sigfillset, (sigset_t * set), (PlainObject<sigset_t>(set)))
SPILL_CALL(int, sigaddset, (sigset_t * set, int number), (PlainObject<sigset_t>(set), number))
SPILL_CALL(int, sigdelset, (sigset_t * set, int number), (PlainObject<sigset_t>(set), number))
SPILL_CALL(int, sigismember, (const sigset_t* set, int number), (PlainIn<sigset_t>(set), number))
SPILL_WAIT(int, sigsuspend, (const sigset_t* set), (PlainMask(set)))

// The kernel does not know of a fault signal that waits (signals.h).
template <class Wait>
static int wait_for_signal(const sigset_t* set, siginfo_t* info, Wait wait) {
  const PlainIn<sigset_t> plain_set(set);
  siginfo_t kept;
  if (spill::take_kept_fault(spill::mask_of(*plain_set), kept)) {
    if (info != nullptr) spill::store(info, kept);
    return kept.si_signo;
  }
  PlainObject<siginfo_t> plain_info(info);
  spill::clear_slots();
  return wait(plain_set, plain_info);
}
SPILL_EXPORT int __spill_sigwait(const sigset_t* set, int* number) {
  int error = 0;
  const int found = wait_for_signal(set, nullptr, [&](const sigset_t* s, siginfo_t*) {
    int plain_number = 0;
    error = sigwait(s, &plain_number);
    return plain_number;
  });
  if (error == 0) spill::store(number, found);
  return error;
}
SPILL_EXPORT int __spill_sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return wait_for_signal(set, info, [](const sigset_t* s, siginfo_t* i) { return sigwaitinfo(s, i); });
}
SPILL_EXPORT int __spill_sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  const PlainIn<timespec> plain_timeout(timeout);
  return wait_for_signal(set, info,
                         [&](const sigset_t* s, siginfo_t* i) { return sigtimedwait(s, i, plain_timeout); });
}

// Limits and usage.
SPILL_CALL(int, getrusage, (__rusage_who_t who, rusage* to), (who, PlainObject<rusage>(to)))
SPILL_CALL(int, getrlimit, (__rlimit_resource_t resource, rlimit* to), (resource, PlainObject<rlimit>(to)))
SPILL_CALL(int, getrlimit64, (__rlimit_resource_t resource, rlimit64* to),
           (resource, PlainObject<rlimit64>(to)))
SPILL_CALL(int, setrlimit, (__rlimit_resource_t resource, const rlimit* from),
           (resource, PlainIn<rlimit>(from)))
SPILL_CALL(int, setrlimit64, (__rlimit_resource_t resource, const rlimit64* from),
           (resource, PlainIn<rlimit64>(from)))
SPILL_CALL(int, prlimit, (pid_t process, __rlimit_resource resource, const rlimit* from, rlimit* old),
           (process, resource, PlainIn<rlimit>(from), PlainObject<rlimit>(old)))
SPILL_CALL(int, getloadavg, (double* to, int count),
           (reinterpret_cast<double*>(PlainBytes(to,
                                                 count > 0 ? static_cast<size_t>(count) * sizeof(double) : 0,
                                                 PlainBytes::kInOut)
                                          .data()),
            count))
SPILL_CALL(int, sched_getaffinity, (pid_t process, size_t n, cpu_set_t* to),
           (process, n, reinterpret_cast<cpu_set_t*>(PlainBytes(to, n, PlainBytes::kInOut).data())))
SPILL_CALL(int, sched_setaffinity, (pid_t process, size_t n, const cpu_set_t* from),
           (process, n, reinterpret_cast<cpu_set_t*>(PlainBytes(from, n, PlainBytes::kIn).data())))
SPILL_CALL(int, getgroups, (int count, gid_t* to),
           (count,
            reinterpret_cast<gid_t*>(
                PlainBytes(to, count > 0 ? static_cast<size_t>(count) * sizeof(gid_t) : 0, PlainBytes::kInOut)
                    .data())))

// The system.
SPILL_CALL(int, sysinfo, (struct sysinfo * to), (PlainObject<struct sysinfo>(to)))
SPILL_CALL(int, uname, (utsname * to), (PlainObject<utsname>(to)))
SPILL_CALL(int, gethostname, (char* to, size_t n), (PlainBytes(to, n, PlainBytes::kInOut).data(), n))
SPILL_CALL(int, getdomainname, (char* to, size_t n), (PlainBytes(to, n, PlainBytes::kInOut).data(), n))
SPILL_CALL(int, getlogin_r, (char* to, size_t n), (PlainBytes(to, n, PlainBytes::kInOut).data(), n))
#define SPILL_CHECKED_ROOM(name, checked, T)               \
  SPILL_EXPORT int checked(T* to, size_t n, size_t room) { \
    if (n > room) spill::buffer_overflow();                \
    return name(to, n);                                    \
  }
SPILL_CHECKED_ROOM(__spill_gethostname, __spill___gethostname_chk, char)
SPILL_CHECKED_ROOM(__spill_getdomainname, __spill___getdomainname_chk, char)
SPILL_CHECKED_ROOM(__spill_getlogin_r, __spill___getlogin_r_chk, char)
SPILL_EXPORT int __spill___getgroups_chk(int count, gid_t* to, size_t room) {
  if (count > 0 && static_cast<size_t>(count) > room / sizeof(gid_t)) spill::buffer_overflow();
  return __spill_getgroups(count, to);
}
SPILL_NEXT(int, getentropy, (void* to, size_t n), (PlainBytes(to, n, PlainBytes::kInOut).data(), n))
SPILL_EXPORT ssize_t __spill_getrandom(void* to, size_t n, unsigned flags) {
  if (spill::all_plain(to, n)) return LIBC(getrandom)(to, n, flags);
  // Fills all of it, as the kernel does for large requests unless a signal comes: programs consider fewer bytes a failure.
  spill::Scratch buffer(std::min<size_t>(n, 64 << 10));
  if (n > 0 && buffer.data() == nullptr) return spill::fail(ENOMEM);
  size_t done = 0;
  do {
    const size_t length = std::min(n - done, buffer.size());
    const ssize_t filled = LIBC(getrandom)(buffer.data(), length, flags);
    if (filled < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
    spill::copy(static_cast<char*>(to) + done, buffer.data(), static_cast<size_t>(filled));
    done += static_cast<size_t>(filled);
    if (static_cast<size_t>(filled) < length) break;
  } while (done < n);
  return static_cast<ssize_t>(done);
}

SPILL_EXPORT void __spill_arc4random_buf(void* to, size_t n) {
  // The C library's own asks the kernel to fill the buffer, and ends the process when that fails.
  constexpr size_t kBytes = 512;
  char random[kBytes];
  if (spill::all_plain(to, n)) return LIBC(arc4random_buf)(to, n);
  for (size_t done = 0; done < n;) {
    const size_t length = std::min(n - done, kBytes);
    LIBC(arc4random_buf)(random, length);
    spill::copy(static_cast<char*>(to) + done, random, length);
    done += length;
  }
  explicit_bzero(random, sizeof random);
}

SPILL_EXPORT int __spill_prctl(int option, ...) {
  va_list list;
  va_start(list, option);
  unsigned long a[4];
  for (unsigned long& argument : a) argument = va_arg(list, unsigned long);
  va_end(list);
  // The other options with pointers are for debuggers and for checkpointing processes.
  constexpr size_t kNameBytes = 16;
  constexpr int kGetAuxiliaryVector = 0x41555856;  // PR_GET_AUXV of newer headers
  constexpr size_t kVectorBytes = 4096;            // more than there are
  if (option == PR_SET_NAME) {
    const auto* given = reinterpret_cast<const char*>(a[0]);
    if (spill::all_plain(given, kNameBytes)) return prctl(option, given);
    // The kernel takes this much of a longer name, and reads no more.
    char name[kNameBytes] = {};
    spill::copy(name, given, spill::string_length(given, kNameBytes - 1));
    return prctl(option, name);
  }
  if (option == PR_GET_NAME)
    return prctl(option, PlainBytes(reinterpret_cast<char*>(a[0]), kNameBytes, PlainBytes::kInOut).data());
  if (option == PR_GET_TID_ADDRESS)
    return prctl(option, static_cast<void**>(PlainObject<void*>(reinterpret_cast<void**>(a[0]))));
  if (option == kGetAuxiliaryVector) {
    const size_t n = std::min(a[1], kVectorBytes);
    return prctl(option, PlainBytes(reinterpret_cast<char*>(a[0]), n, PlainBytes::kInOut).data(), n, a[2],
                 a[3]);
  }
  if (option == PR_GET_PDEATHSIG || option == PR_GET_TSC || option == PR_GET_CHILD_SUBREAPER)
    return prctl(option, static_cast<int*>(PlainObject<int>(reinterpret_cast<int*>(a[0]))));
  if (option == PR_SET_SECCOMP && a[0] == SECCOMP_MODE_FILTER)
    return prctl(option, a[0], spill::PlainFilter(reinterpret_cast<const sock_fprog*>(a[1])).get());
  if (option == PR_SET_VMA && a[0] == PR_SET_VMA_ANON_NAME)
    return prctl(option, a[0], a[1], a[2],
                 static_cast<const char*>(PlainString(reinterpret_cast<char*>(a[3]))));
  return prctl(option, a[0], a[1], a[2], a[3]);
}
