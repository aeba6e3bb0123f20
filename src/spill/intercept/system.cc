// Waiting for descriptors and children, signal sets, limits, the environment, and what the system tells
// about itself: small structures, copied when they are spilled.
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/fsmap.h>
#include <linux/if_tun.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "spill/intercept/call.h"
#include "spill/intercept/filter.h"
#include "spill/signals.h"

namespace {

// A mask for the time of a call, under which handlers run: without the signals that are never blocked.
class PlainMask {
 public:
  explicit PlainMask(const sigset_t* mask) : given_(mask != nullptr) {
    if (!given_) return;
    mask_ = spill::load(mask);
    *reinterpret_cast<uint64_t*>(&mask_) &= ~spill::kFaultSignals;
  }
  operator const sigset_t*() const { return given_ ? &mask_ : nullptr; }

 private:
  bool given_;
  sigset_t mask_;
};

}  // namespace

// Descriptors.
// Only what came is stored: other threads may change what is waited for meanwhile.
template <class Wait>
static int wait_for_descriptors(pollfd* descriptors, nfds_t count, Wait wait) {
  PlainBytes memory(descriptors, count * sizeof(pollfd), PlainBytes::kIn);
  auto* copies = reinterpret_cast<pollfd*>(memory.data());
  spill::clear_slots();
  const int ready = wait(copies);
  // Of calls that were interrupted the kernel tells as well.
  if (plain(descriptors) || copies == nullptr || (ready < 0 && errno != EINTR)) return ready;
  for (nfds_t i = 0; i < count; ++i) spill::store(&descriptors[i].revents, copies[i].revents);
  return ready;
}
SPILL_EXPORT int __spill_poll(pollfd* descriptors, nfds_t count, int timeout) {
  return wait_for_descriptors(descriptors, count, [=](pollfd* d) { return poll(d, count, timeout); });
}
SPILL_EXPORT int __spill_ppoll(pollfd* descriptors, nfds_t count, const timespec* timeout,
                               const sigset_t* mask) {
  PlainIn<timespec> plain_timeout(timeout);
  PlainMask plain_mask(mask);
  return wait_for_descriptors(descriptors, count,
                              [&](pollfd* d) { return ppoll(d, count, plain_timeout, plain_mask); });
}
SPILL_EXPORT int __spill___ppoll_chk(pollfd* descriptors, nfds_t count, const timespec* timeout,
                                     const sigset_t* mask, size_t room) {
  if (room / sizeof(pollfd) < count) spill::buffer_overflow();
  return __spill_ppoll(descriptors, count, timeout, mask);
}
SPILL_EXPORT int __spill___poll_chk(pollfd* descriptors, nfds_t count, int timeout, size_t room) {
  if (room / sizeof(pollfd) < count) spill::buffer_overflow();
  return __spill_poll(descriptors, count, timeout);
}

namespace {

// Sets as large as the call says, which may be larger than an fd_set.
struct PlainSet : PlainBytes {
  PlainSet(fd_set* set, int count)
      : PlainBytes(set, count > 0 ? (static_cast<size_t>(count) + 63) / 64 * 8 : 0, PlainBytes::kInOut) {}
  operator fd_set*() { return reinterpret_cast<fd_set*>(data()); }
};

}  // namespace

SPILL_WAIT(int, select, (int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout),
           (count, PlainSet(reads, count), PlainSet(writes, count), PlainSet(errors, count),
            PlainObject<timeval>(timeout)))
SPILL_WAIT(int, pselect,
           (int count, fd_set* reads, fd_set* writes, fd_set* errors, const timespec* timeout,
            const sigset_t* mask),
           (count, PlainSet(reads, count), PlainSet(writes, count), PlainSet(errors, count),
            PlainIn<timespec>(timeout), PlainMask(mask)))

SPILL_EXPORT int __spill_epoll_ctl(int epoll, int operation, int descriptor, epoll_event* event) {
  return epoll_ctl(epoll, operation, descriptor, PlainObject<epoll_event>(event));
}

template <class Wait>
static int wait_for_events(epoll_event* events, int count, Wait wait) {
  spill::clear_slots();
  if (plain(events) || count <= 0) return wait(events);
  PlainBytes memory(events, static_cast<size_t>(count) * sizeof(epoll_event), PlainBytes::kOut);
  const int ready = wait(reinterpret_cast<epoll_event*>(memory.data()));
  if (ready > 0) memory.store(static_cast<size_t>(ready) * sizeof(epoll_event));
  return ready;
}
SPILL_EXPORT int __spill_epoll_wait(int epoll, epoll_event* events, int count, int timeout) {
  return wait_for_events(events, count,
                         [=](epoll_event* to) { return epoll_wait(epoll, to, count, timeout); });
}
SPILL_EXPORT int __spill_epoll_pwait(int epoll, epoll_event* events, int count, int timeout,
                                     const sigset_t* mask) {
  PlainMask plain_mask(mask);
  return wait_for_events(events, count,
                         [&](epoll_event* to) { return epoll_pwait(epoll, to, count, timeout, plain_mask); });
}
SPILL_EXPORT int __spill_epoll_pwait2(int epoll, epoll_event* events, int count, const timespec* timeout,
                                      const sigset_t* mask) {
  PlainMask plain_mask(mask);
  PlainIn<timespec> plain_timeout(timeout);
  return wait_for_events(events, count, [&](epoll_event* to) {
    return epoll_pwait2(epoll, to, count, plain_timeout, plain_mask);
  });
}

struct TwoDescriptors {
  int pair[2];
};
SPILL_EXPORT int __spill_pipe(int* ends) {
  return pipe(PlainObject<TwoDescriptors>(reinterpret_cast<TwoDescriptors*>(ends))->pair);
}
SPILL_EXPORT int __spill_pipe2(int* ends, int flags) {
  return pipe2(PlainObject<TwoDescriptors>(reinterpret_cast<TwoDescriptors*>(ends))->pair, flags);
}

// Locks, owners and hints of files are the commands with a structure in memory.
static int control_file(int descriptor, int command, va_list list) {
  void* argument = va_arg(list, void*);
  switch (command) {
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW: {
      PlainObject<struct flock> lock(static_cast<struct flock*>(argument));
      spill::clear_slots();
      return fcntl(descriptor, command, static_cast<struct flock*>(lock));
    }
    case F_GETOWN_EX:
    case F_SETOWN_EX:
      return fcntl(descriptor, command,
                   static_cast<f_owner_ex*>(PlainObject<f_owner_ex>(static_cast<f_owner_ex*>(argument))));
    case F_GET_RW_HINT:
    case F_SET_RW_HINT:
    case F_GET_FILE_RW_HINT:
    case F_SET_FILE_RW_HINT:
      return fcntl(descriptor, command,
                   static_cast<uint64_t*>(PlainObject<uint64_t>(static_cast<uint64_t*>(argument))));
    default: return fcntl(descriptor, command, argument);
  }
}
SPILL_EXPORT int __spill_fcntl(int descriptor, int command, ...) {
  va_list list;
  va_start(list, command);
  const int result = control_file(descriptor, command, list);
  va_end(list);
  return result;
}
SPILL_EXPORT int __spill_fcntl64(int descriptor, int command, ...) {
  va_list list;
  va_start(list, command);
  const int result = control_file(descriptor, command, list);
  va_end(list);
  return result;
}

// What of an ioctl's argument follows the structure: as many elements as one of its fields says.
template <class Structure, class Element, class Count>
static size_t with_elements(const void* argument, Count Structure::* count) {
  return sizeof(Structure) +
         size_t{spill::load(&(static_cast<const Structure*>(argument)->*count))} * sizeof(Element);
}

// Bytes at the argument of an ioctl: newer requests say it, with exceptions; of the older ones these are common.
static size_t ioctl_argument_bytes(unsigned long request, const void* argument) {
  switch (request) {
    case FS_IOC_FIEMAP: return with_elements<fiemap, fiemap_extent>(argument, &fiemap::fm_extent_count);
    case FIDEDUPERANGE:
      return with_elements<file_dedupe_range, file_dedupe_range_info>(argument,
                                                                      &file_dedupe_range::dest_count);
    case FS_IOC_GETFSMAP: return with_elements<fsmap_head, fsmap>(argument, &fsmap_head::fmh_count);
    case TUNSETIFF:
    case TUNGETIFF:
    case TUNSETQUEUE: return sizeof(ifreq);
  }
  if (_IOC_DIR(request) != _IOC_NONE) return _IOC_SIZE(request);
  switch (request) {
    case FIGETBSZ:
    case FIOGETOWN:
    case FIOSETOWN:
    case SIOCGPGRP:
    case SIOCSPGRP:
    case SIOCATMARK:
    case TIOCPKT:
    case TIOCGETD:
    case TIOCSETD:
    case TIOCGSOFTCAR:
    case TIOCSSOFTCAR:
    case TIOCMGET:
    case TIOCMSET:
    case TIOCMBIS:
    case TIOCMBIC:
    case BLKROGET:
    case BLKROSET:
    case BLKSSZGET:
    case BLKPBSZGET:
    case BLKIOMIN:
    case BLKIOOPT:
    case FIONREAD:
    case FIONBIO:
    case FIOASYNC:
    case TIOCOUTQ:
    case TIOCGPGRP:
    case TIOCSPGRP:
    case TIOCGSID: return sizeof(int);
    case TIOCGWINSZ:
    case TIOCSWINSZ: return sizeof(winsize);
    case TCGETS:
    case TCSETS:
    case TCSETSW:
    case TCSETSF:
    case TIOCGLCKTRMIOS:
    case TIOCSLCKTRMIOS: return 36;  // the kernel's termios, without speeds
    case TCGETA:
    case TCSETA:
    case TCSETAW:
    case TCSETAF: return sizeof(termio);
    case BLKGETSIZE: return sizeof(long);
    case SIOCGARP:
    case SIOCSARP:
    case SIOCDARP: return sizeof(arpreq);
    default: return request >= SIOCADDRT && request <= SIOCDEVPRIVATE + 15 ? sizeof(ifreq) : 0;
  }
}

// The names of interfaces, into a buffer of the caller's.
static int list_interfaces(int socket, ifconf* original) {
  ifconf list = spill::load(original);
  char* names = list.ifc_buf;
  PlainBytes memory(names, static_cast<size_t>(std::max(list.ifc_len, 0)), PlainBytes::kInOut);
  list.ifc_buf = memory.data();
  const int result = ioctl(socket, SIOCGIFCONF, &list);
  list.ifc_buf = names;
  if (result == 0) spill::store(original, list);
  return result;
}
// A route of IPv4 may name a device.
static int change_route(int socket, unsigned long request, const void* argument) {
  int domain = 0;
  socklen_t bytes = sizeof domain;
  if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_INET6)
    return ioctl(socket, request,
                 static_cast<const in6_rtmsg*>(PlainIn<in6_rtmsg>(static_cast<const in6_rtmsg*>(argument))));
  rtentry route = spill::load(static_cast<const rtentry*>(argument));
  PlainString device(route.rt_dev);
  route.rt_dev = const_cast<char*>(static_cast<const char*>(device));
  return ioctl(socket, request, &route);
}

SPILL_EXPORT int __spill_ioctl(int descriptor, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  spill::clear_slots();
  request = static_cast<uint32_t>(request);  // as the kernel does
  // What they point to may be spilled when they are not.
  if (request == SIOCGIFCONF && argument != nullptr)
    return list_interfaces(descriptor, static_cast<ifconf*>(argument));
  if ((request == SIOCADDRT || request == SIOCDELRT) && argument != nullptr)
    return change_route(descriptor, request, argument);
  const size_t bytes = plain(argument) ? 0 : ioctl_argument_bytes(request, argument);
  // Of unknown size: as it is, which the kernel refuses when it is spilled.
  if (bytes == 0) return ioctl(descriptor, request, argument);
  return ioctl(descriptor, request, PlainBytes(argument, bytes, PlainBytes::kInOut).data());
}
SPILL_EXPORT int __spill_prctl(int option, ...) {
  va_list list;
  va_start(list, option);
  unsigned long a[4];
  for (unsigned long& argument : a) argument = va_arg(list, unsigned long);
  va_end(list);
  // The other options with pointers are of debuggers and of what saves and restores processes.
  constexpr size_t kNameBytes = 16;
  constexpr int kGetAuxiliaryVector = 0x41555856;  // PR_GET_AUXV of newer headers
  constexpr size_t kVectorBytes = 4096;            // more than there are
  if (option == PR_SET_NAME)
    return prctl(option, static_cast<const char*>(PlainString(reinterpret_cast<char*>(a[0]))));
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

// Terminals.
SPILL_CALL(int, tcgetattr, (int descriptor, termios* to), (descriptor, PlainObject<termios>(to)))
SPILL_CALL(int, tcsetattr, (int descriptor, int when, const termios* from),
           (descriptor, when, PlainIn<termios>(from)))
SPILL_CALL(int, ttyname_r, (int descriptor, char* to, size_t n),
           (descriptor, PlainBytes(to, n, PlainBytes::kInOut).data(), n))

SPILL_EXPORT int __spill___ttyname_r_chk(int descriptor, char* to, size_t n, size_t room) {
  if (n > room) spill::buffer_overflow();
  return __spill_ttyname_r(descriptor, to, n);
}
// What of the arguments the C library fills in itself stays as it is.
SPILL_CALL(int, openpty,
           (int* owner, int* terminal, char* name, const termios* settings, const winsize* size),
           (owner, terminal, name, PlainIn<termios>(settings), PlainIn<winsize>(size)))
SPILL_CALL(int, forkpty, (int* owner, char* name, const termios* settings, const winsize* size),
           (owner, name, PlainIn<termios>(settings), PlainIn<winsize>(size)))

// Children.
SPILL_WAIT(pid_t, wait, (int* status), (PlainObject<int>(status)))
SPILL_WAIT(pid_t, waitpid, (pid_t child, int* status, int options),
           (child, PlainObject<int>(status), options))
SPILL_WAIT(pid_t, wait3, (int* status, int options, rusage* usage),
           (PlainObject<int>(status), options, PlainObject<rusage>(usage)))
SPILL_WAIT(pid_t, wait4, (pid_t child, int* status, int options, rusage* usage),
           (child, PlainObject<int>(status), options, PlainObject<rusage>(usage)))
SPILL_WAIT(int, waitid, (idtype_t type, id_t id, siginfo_t* info, int options),
           (type, id, PlainObject<siginfo_t>(info), options))

// Signal sets.
SPILL_CALL(int, sigemptyset, (sigset_t * set), (PlainObject<sigset_t>(set)))
SPILL_CALL(int, sigfillset, (sigset_t * set), (PlainObject<sigset_t>(set)))
SPILL_CALL(int, sigaddset, (sigset_t * set, int number), (PlainObject<sigset_t>(set), number))
SPILL_CALL(int, sigdelset, (sigset_t * set, int number), (PlainObject<sigset_t>(set), number))
SPILL_CALL(int, sigismember, (const sigset_t* set, int number), (PlainIn<sigset_t>(set), number))
SPILL_WAIT(int, sigsuspend, (const sigset_t* set), (PlainMask(set)))
SPILL_WAIT(int, sigwait, (const sigset_t* set, int* number),
           (PlainIn<sigset_t>(set), PlainObject<int>(number)))
SPILL_WAIT(int, sigwaitinfo, (const sigset_t* set, siginfo_t* info),
           (PlainIn<sigset_t>(set), PlainObject<siginfo_t>(info)))
SPILL_WAIT(int, sigtimedwait, (const sigset_t* set, siginfo_t* info, const timespec* timeout),
           (PlainIn<sigset_t>(set), PlainObject<siginfo_t>(info), PlainIn<timespec>(timeout)))

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
SPILL_CALL(int, getentropy, (void* to, size_t n), (PlainBytes(to, n, PlainBytes::kInOut).data(), n))
SPILL_EXPORT ssize_t __spill_getrandom(void* to, size_t n, unsigned flags) {
  if (plain(to)) return getrandom(to, n, flags);
  // Fewer bytes than asked for are a normal answer to large requests.
  PlainBytes memory(to, std::min<size_t>(n, 64 << 10), PlainBytes::kOut);
  const ssize_t filled = getrandom(memory.data(), std::min<size_t>(n, 64 << 10), flags);
  if (filled > 0) memory.store(static_cast<size_t>(filled));
  return filled;
}

SPILL_EXPORT void __spill_arc4random_buf(void* to, size_t n) {
  // The C library's own asks the kernel to fill the buffer, and ends the process when that fails.
  constexpr size_t kBytes = 512;
  char random[kBytes];
  if (plain(to)) return arc4random_buf(to, n);
  for (size_t done = 0; done < n;) {
    const size_t length = std::min(n - done, kBytes);
    arc4random_buf(random, length);
    spill::copy(static_cast<char*>(to) + done, random, length);
    done += length;
  }
  explicit_bzero(random, sizeof random);
}

// The environment. What the program puts there stays referenced, so it is copied for good.
SPILL_CALL(char*, getenv, (const char* name), (PlainString(name)))
SPILL_CALL(char*, secure_getenv, (const char* name), (PlainString(name)))
SPILL_CALL(int, setenv, (const char* name, const char* value, int overwrite),
           (PlainString(name), PlainString(value), overwrite))
SPILL_CALL(int, unsetenv, (const char* name), (PlainString(name)))
SPILL_EXPORT int __spill_putenv(char* text) {
  if (plain(text)) return putenv(text);
  PlainString plain_text(text);
  auto* name = const_cast<char*>(static_cast<const char*>(plain_text));
  if (name == nullptr) return spill::fail(ENOMEM);
  char* separator = strchr(name, '=');
  if (separator == nullptr) return unsetenv(name);
  if (separator == name) {
    char* nameless = strdup(name);
    return nameless != nullptr ? putenv(nameless) : -1;
  }
  *separator = 0;
  return setenv(name, separator + 1, 1);
}
