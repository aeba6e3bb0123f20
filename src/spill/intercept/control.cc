// Requests on descriptors by number, fcntl and ioctl: the size of the argument follows from the number, and from what is
// known about it here. And the other functions for terminals.
#include "spill/intercept/control.h"

#include <fcntl.h>
#include <linux/blkzoned.h>
#include <linux/dm-ioctl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fsmap.h>
#include <linux/if_tun.h>
#include <linux/perf_event.h>
#include <linux/sockios.h>
#include <linux/usbdevice_fs.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <pty.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "spill/intercept/call.h"

// The commands for locks, owners and hints of files take a structure in memory.
static int control_file(int descriptor, int command, va_list list) {
  void* argument = va_arg(list, void*);
  switch (command) {
    case F_GETLK:
    case F_OFD_GETLK:
      return fcntl(
          descriptor, command,
          static_cast<struct flock*>(PlainObject<struct flock>(static_cast<struct flock*>(argument))));
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW: {
      const PlainIn<struct flock> lock(static_cast<struct flock*>(argument));
      spill::clear_slots();
      return fcntl(descriptor, command, static_cast<const struct flock*>(lock));
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

// Bytes of an ioctl's argument that is a structure followed by an array, whose length is in the field `count`.
template <class Structure, class Element, class Count>
static size_t with_elements(const void* argument, Count Structure::* count) {
  return sizeof(Structure) +
         size_t{spill::load(&(static_cast<const Structure*>(argument)->*count))} * sizeof(Element);
}

// Newer requests have the size in their number, with the exceptions listed first. Of the older ones the common ones are listed.
size_t spill::ioctl_argument_bytes(unsigned long request, const void* argument) {
  switch (request) {
    case BLKREPORTZONE: return with_elements<blk_zone_report, blk_zone>(argument, &blk_zone_report::nr_zones);
    case FS_IOC_ADD_ENCRYPTION_KEY:
      return with_elements<fscrypt_add_key_arg, uint8_t>(argument, &fscrypt_add_key_arg::raw_size);
    case FS_IOC_GET_ENCRYPTION_POLICY_EX: {
      using Policy = fscrypt_get_policy_ex_arg;
      const uint64_t room = load(&static_cast<const Policy*>(argument)->policy_size);
      return offsetof(Policy, policy) + std::min<size_t>(room, sizeof(Policy::policy));
    }
    case FS_IOC_FIEMAP: return with_elements<fiemap, fiemap_extent>(argument, &fiemap::fm_extent_count);
    case FIDEDUPERANGE:
      return with_elements<file_dedupe_range, file_dedupe_range_info>(argument,
                                                                      &file_dedupe_range::dest_count);
    case FS_IOC_GETFSMAP: return with_elements<fsmap_head, fsmap>(argument, &fsmap_head::fmh_count);
    case TUNSETIFF:
    case TUNGETIFF:
    case TUNSETQUEUE: return sizeof(ifreq);
    // Declared with a long, but really an int.
    case FS_IOC_GETFLAGS:
    case FS_IOC_SETFLAGS:
    case FS_IOC_GETVERSION:
    case FS_IOC_SETVERSION:
    case BLKBSZGET:
    case BLKBSZSET: return sizeof(int);
    // A string, of a page at most.
    case PERF_EVENT_IOC_SET_FILTER: {
      constexpr size_t kMaxLength = 4095;
      return string_length(static_cast<const char*>(argument), kMaxLength) + 1;
    }
    // Declared with an address, but really structures; and one that the kernel keeps until it is reaped.
    case PERF_EVENT_IOC_MODIFY_ATTRIBUTES:
    case PERF_EVENT_IOC_QUERY_BPF:
    case USBDEVFS_SUBMITURB: return 0;
  }
  if (_IOC_TYPE(request) == DM_IOCTL)
    return std::max<size_t>(load(&static_cast<const dm_ioctl*>(argument)->data_size),
                            offsetof(dm_ioctl, data));
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
    case SIOCOUTQNSD:
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
    case SIOCGSTAMP:
    case SIOCGSTAMPNS: return sizeof(timespec);
    case SIOCGARP:
    case SIOCSARP:
    case SIOCDARP: return sizeof(arpreq);
    default: return request >= SIOCADDRT && request <= SIOCDEVPRIVATE + 15 ? sizeof(ifreq) : 0;
  }
}

// Stores the names of interfaces in the caller's buffer.
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
// An IPv4 route may name a device.
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

// Faults on spilled memory are the runtime's to handle.
static bool asks_for_spilled_faults(const void* argument) {
  const uffdio_range range = spill::load(static_cast<const uffdio_range*>(argument));
  return !spill::all_plain(reinterpret_cast<const void*>(range.start), range.len);
}

SPILL_EXPORT int __spill_ioctl(int descriptor, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  spill::clear_slots();
  request = static_cast<uint32_t>(request);  // as the kernel does
  // These arguments hold pointers, to memory that may be spilled even where the argument is plain.
  if (request == SIOCGIFCONF && argument != nullptr)
    return list_interfaces(descriptor, static_cast<ifconf*>(argument));
  if ((request == SIOCADDRT || request == SIOCDELRT) && argument != nullptr)
    return change_route(descriptor, request, argument);
  if (request == UFFDIO_REGISTER && argument != nullptr && asks_for_spilled_faults(argument))
    return spill::fail(EINVAL);
  // The most that a number can say. The argument may also be a number instead of an address.
  constexpr size_t kMaxBytes = size_t{1} << _IOC_SIZEBITS;
  const size_t bytes =
      spill::all_plain(argument, kMaxBytes) ? 0 : spill::ioctl_argument_bytes(request, argument);
  // An argument of unknown size is passed as it is: the kernel refuses it if it is spilled.
  if (bytes == 0) return ioctl(descriptor, request, argument);
  return ioctl(descriptor, request, PlainBytes(argument, bytes, PlainBytes::kInOut).data());
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
// The C library itself stores the descriptors and the name, so these need no plain memory.
SPILL_CALL(int, openpty,
           (int* owner, int* terminal, char* name, const termios* settings, const winsize* size),
           (owner, terminal, name, PlainIn<termios>(settings), PlainIn<winsize>(size)))
SPILL_CALL(int, forkpty, (int* owner, char* name, const termios* settings, const winsize* size),
           (owner, name, PlainIn<termios>(settings), PlainIn<winsize>(size)))
