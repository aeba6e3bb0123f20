// Sockets: messages bounce through Scratch, in one piece where a message must stay whole, piece by piece on a stream;
// addresses and options are small and copied.
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "spill/intercept/filter.h"
#include "spill/intercept/io.h"
#include "spill/next.h"

namespace spill {
namespace {

// A stream has no messages to keep whole. (SCTP has, in streams too.)
bool is_stream(int socket) {
  const int error = errno;
  int type = 0, protocol = 0;
  socklen_t bytes = sizeof type;
  const bool answered = getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
                        getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) == 0;
  errno = error;
  return answered && type == SOCK_STREAM && protocol != IPPROTO_SCTP;
}

}  // namespace

size_t socket_bounce_bytes(int socket, size_t n) {
  n = std::min(n, kCallBytes);
  return n <= kSocketBounceBytes || !is_stream(socket) ? n : kSocketBounceBytes;
}

namespace {

// call(part, flags, first) sends a part: all of a message, or on a stream a piece, as write() does.
template <class Call>
ssize_t send_memory(int socket, const PlainVector& memory, int flags, Call call) {
  const bool whole = memory.bytes() <= kBounceBytes || !is_stream(socket);
  const size_t n = std::min(memory.bytes(), kCallBytes);
  Scratch buffer(whole ? n : kBounceBytes);
  // With MSG_ZEROCOPY the kernel reads the memory after the call, and notifies the program once for each such call: so only one
  // piece has the flag, and memory that nothing else uses.
  const bool lends = (flags & MSG_ZEROCOPY) != 0;
  Scratch lent(lends ? std::min(n, buffer.size()) : 0, Scratch::kOwn);
  if (n > 0 && (buffer.data() == nullptr || (lends && lent.data() == nullptr))) return fail(ENOMEM);
  size_t done = 0;
  do {
    char* bytes = lends && done == 0 ? lent.data() : buffer.data();
    iovec part = {bytes, std::min(n - done, buffer.size())};
    memory.gather(done, bytes, part.iov_len);
    clear_slots();
    int part_flags = flags;
    // The urgent byte is the very last one. An error after a part was sent is reported, and signalled, by the program's next call.
    if (done + part.iov_len < n) part_flags &= ~MSG_OOB;
    if (done > 0) part_flags = (part_flags & ~(MSG_FASTOPEN | MSG_ZEROCOPY)) | MSG_NOSIGNAL;
    const ssize_t sent = call(&part, part_flags, done == 0);
    if (sent < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
    done += static_cast<size_t>(sent);
    if (static_cast<size_t>(sent) < part.iov_len) break;
  } while (done < n);
  return static_cast<ssize_t>(done);
}

// How much of an address the kernel may read or fill in, whatever length the program gives.
size_t address_bytes(socklen_t given) { return std::min<size_t>(given, sizeof(sockaddr_storage)); }

ssize_t send_spilled(int socket, const void* from, size_t n, int flags, const sockaddr* to,
                     socklen_t to_bytes) {
  PlainBytes address(to, address_bytes(to_bytes), PlainBytes::kIn);
  auto* plain_address = reinterpret_cast<sockaddr*>(address.data());
  if (all_plain(from, n)) {
    clear_slots();
    return LIBC(sendto)(socket, from, n, flags, plain_address, to_bytes);
  }
  const iovec one = {const_cast<void*>(from), n};
  return send_memory(socket, PlainVector(&one, 1), flags, [=](const iovec* part, int part_flags, bool first) {
    return LIBC(sendto)(socket, part->iov_base, part->iov_len, part_flags, first ? plain_address : nullptr,
                        first ? to_bytes : 0);
  });
}

// MSG_WAITALL promises all bytes in one call. On a stream they may be received by several calls of the kernel, until one
// brings less. (With MSG_PEEK it is one: the kernel shows no more than its buffer holds.)
bool goes_on(int socket, size_t n, int flags) {
  constexpr int kOneCall = MSG_PEEK | MSG_TRUNC;
  return (flags & (MSG_WAITALL | kOneCall)) == MSG_WAITALL && n > kSocketBounceBytes && is_stream(socket);
}
size_t receive_capacity(int socket, size_t n, int flags, bool goes_on) {
  return (flags & MSG_WAITALL) != 0 && !goes_on ? std::min(n, kCallBytes) : socket_bounce_bytes(socket, n);
}
// With MSG_TRUNC the bytes of a TCP stream are dropped, and the memory keeps its content.
void keep_what_is_dropped(const PlainVector& memory, int flags, const Scratch& buffer) {
  if ((flags & MSG_TRUNC) != 0) memory.gather(0, buffer.data(), buffer.size());
}

// Receives what follows the first `done` bytes, up to an error, which the next call finds.
ssize_t receive_rest(int socket, const PlainVector& memory, size_t done, const Scratch& buffer, int flags) {
  const size_t begin = done, n = std::min(memory.bytes(), kCallBytes);
  while (done < n) {
    clear_slots();
    const size_t room = std::min(n - done, buffer.size());
    const ssize_t received = LIBC(recvfrom)(socket, buffer.data(), room, flags, nullptr, nullptr);
    if (received <= 0) break;
    memory.scatter(done, buffer.data(), static_cast<size_t>(received));
    done += static_cast<size_t>(received);
    if (static_cast<size_t>(received) < room) break;
  }
  return static_cast<ssize_t>(done - begin);
}

// A source address or name that the kernel fills in, at most as long as the caller's room. Nothing beyond that is read or stored:
// there may be less room than the caller says.
class PlainAddress {
 public:
  PlainAddress(sockaddr* address, socklen_t* bytes)
      : size_(bytes), memory_(address, bytes != nullptr ? address_bytes(load(bytes)) : 0, PlainBytes::kOut) {}
  sockaddr* address() { return reinterpret_cast<sockaddr*>(memory_.data()); }
  socklen_t* size() { return size_; }
  // Passes on what the call returned; stores the address if it succeeded.
  template <class Result>
  Result stored(Result result) {
    if (result >= 0 && size() != nullptr) memory_.store(*size());
    return result;
  }

 private:
  PlainObject<socklen_t> size_;
  PlainBytes memory_;
};

ssize_t receive_spilled(int socket, void* to, size_t n, int flags, sockaddr* from, socklen_t* from_bytes) {
  PlainAddress address(from, from_bytes);
  if (all_plain(to, n)) {
    clear_slots();
    return address.stored(LIBC(recvfrom)(socket, to, n, flags, address.address(), address.size()));
  }
  const iovec one = {to, n};
  const PlainVector memory(&one, 1);
  const bool all = goes_on(socket, n, flags);
  Scratch buffer(receive_capacity(socket, n, flags, all));
  if (n > 0 && buffer.data() == nullptr) return fail(ENOMEM);
  keep_what_is_dropped(memory, flags, buffer);
  clear_slots();
  const ssize_t received = address.stored(
      LIBC(recvfrom)(socket, buffer.data(), buffer.size(), flags, address.address(), address.size()));
  if (received < 0) return received;
  // With MSG_TRUNC the result may be larger than what was stored.
  const size_t stored = std::min(static_cast<size_t>(received), buffer.size());
  memory.scatter(0, buffer.data(), stored);
  return all && stored == buffer.size() ? received + receive_rest(socket, memory, stored, buffer, flags)
                                        : received;
}

ssize_t send_message(int socket, const msghdr* original, int flags) {
  msghdr header = load(original);
  PlainVector vector(header.msg_iov, header.msg_iovlen);
  PlainBytes name(header.msg_name, address_bytes(header.msg_namelen), PlainBytes::kIn);
  PlainBytes control(header.msg_control, header.msg_controllen, PlainBytes::kIn);
  header.msg_name = name.data();
  header.msg_control = control.data();
  header.msg_iov = const_cast<iovec*>(vector.buffers().data());
  if (!vector.is_valid() || vector.is_plain()) {
    clear_slots();
    return LIBC(sendmsg)(socket, &header, flags);
  }
  header.msg_iovlen = 1;
  return send_memory(socket, vector, flags, [&](iovec* part, int part_flags, bool first) {
    header.msg_iov = part;
    if (!first)
      header.msg_name = header.msg_control = nullptr, header.msg_namelen = header.msg_controllen = 0;
    return LIBC(sendmsg)(socket, &header, part_flags);
  });
}

ssize_t receive_message(int socket, msghdr* original, int flags) {
  msghdr header = load(original);
  PlainVector vector(header.msg_iov, header.msg_iovlen);
  PlainBytes name(header.msg_name, address_bytes(header.msg_namelen), PlainBytes::kOut);
  PlainBytes control(header.msg_control, header.msg_controllen, PlainBytes::kIn);
  const bool bounces = vector.is_valid() && !vector.is_plain();
  // Control messages, such as descriptors, belong to certain bytes, so all must be received by one call.
  const bool all = bounces && header.msg_control == nullptr && goes_on(socket, vector.bytes(), flags);
  Scratch message(bounces ? receive_capacity(socket, vector.bytes(), flags, all) : 0);
  iovec whole = {message.data(), message.size()};
  msghdr call = header;
  call.msg_name = name.data();
  call.msg_control = control.data();
  call.msg_iov = bounces ? &whole : const_cast<iovec*>(vector.buffers().data());
  if (bounces) call.msg_iovlen = 1;
  if (bounces && message.size() > 0 && message.data() == nullptr) return fail(ENOMEM);
  if (bounces) keep_what_is_dropped(vector, flags, message);
  clear_slots();
  ssize_t received = LIBC(recvmsg)(socket, &call, flags);
  if (received < 0) return received;
  name.store(call.msg_namelen);
  control.store(call.msg_controllen);
  if (bounces) vector.scatter(0, message.data(), std::min(static_cast<size_t>(received), message.size()));
  if (all && static_cast<size_t>(received) == message.size())
    received += receive_rest(socket, vector, static_cast<size_t>(received), message, flags);
  header.msg_namelen = call.msg_namelen;
  header.msg_controllen = call.msg_controllen;
  header.msg_flags = call.msg_flags;
  store(original, header);
  return received;
}

}  // namespace
}  // namespace spill

using spill::all_plain;
using spill::PlainObject;
using spill::PlainString;

SPILL_EXPORT ssize_t __spill_send(int socket, const void* from, size_t n, int flags) {
  if (all_plain(from, n)) {
    spill::clear_slots();
    return LIBC(send)(socket, from, n, flags);
  }
  return spill::send_spilled(socket, from, n, flags, nullptr, 0);
}
SPILL_EXPORT ssize_t __spill_sendto(int socket, const void* from, size_t n, int flags, const sockaddr* to,
                                    socklen_t to_bytes) {
  return spill::send_spilled(socket, from, n, flags, to, to_bytes);
}
SPILL_EXPORT ssize_t __spill_recv(int socket, void* to, size_t n, int flags) {
  if (all_plain(to, n)) {
    spill::clear_slots();
    return LIBC(recv)(socket, to, n, flags);
  }
  return spill::receive_spilled(socket, to, n, flags, nullptr, nullptr);
}
SPILL_EXPORT ssize_t __spill_recvfrom(int socket, void* to, size_t n, int flags, sockaddr* from,
                                      socklen_t* from_bytes) {
  return spill::receive_spilled(socket, to, n, flags, from, from_bytes);
}
SPILL_EXPORT ssize_t __spill___recv_chk(int socket, void* to, size_t n, size_t room, int flags) {
  if (n > room) spill::buffer_overflow();
  return __spill_recv(socket, to, n, flags);
}
SPILL_EXPORT ssize_t __spill___recvfrom_chk(int socket, void* to, size_t n, size_t room, int flags,
                                            sockaddr* from, socklen_t* from_bytes) {
  if (n > room) spill::buffer_overflow();
  return spill::receive_spilled(socket, to, n, flags, from, from_bytes);
}
SPILL_EXPORT ssize_t __spill_sendmsg(int socket, const msghdr* header, int flags) {
  return spill::send_message(socket, header, flags);
}
SPILL_EXPORT ssize_t __spill_recvmsg(int socket, msghdr* header, int flags) {
  return spill::receive_message(socket, header, flags);
}

SPILL_EXPORT int __spill_bind(int socket, const sockaddr* address, socklen_t bytes) {
  spill::PlainBytes memory(address, spill::address_bytes(bytes), spill::PlainBytes::kIn);
  return LIBC(bind)(socket, reinterpret_cast<sockaddr*>(memory.data()), bytes);
}
SPILL_EXPORT int __spill_connect(int socket, const sockaddr* address, socklen_t bytes) {
  spill::PlainBytes memory(address, spill::address_bytes(bytes), spill::PlainBytes::kIn);
  spill::clear_slots();
  return LIBC(connect)(socket, reinterpret_cast<sockaddr*>(memory.data()), bytes);
}
SPILL_EXPORT int __spill_accept(int socket, sockaddr* address, socklen_t* bytes) {
  spill::PlainAddress from(address, bytes);
  spill::clear_slots();
  return from.stored(accept(socket, from.address(), from.size()));
}
SPILL_EXPORT int __spill_accept4(int socket, sockaddr* address, socklen_t* bytes, int flags) {
  spill::PlainAddress from(address, bytes);
  spill::clear_slots();
  return from.stored(accept4(socket, from.address(), from.size(), flags));
}
SPILL_EXPORT int __spill_getsockname(int socket, sockaddr* address, socklen_t* bytes) {
  spill::PlainAddress name(address, bytes);
  return name.stored(LIBC(getsockname)(socket, name.address(), name.size()));
}
SPILL_EXPORT int __spill_getpeername(int socket, sockaddr* address, socklen_t* bytes) {
  spill::PlainAddress name(address, bytes);
  return name.stored(LIBC(getpeername)(socket, name.address(), name.size()));
}
SPILL_EXPORT int __spill_setsockopt(int socket, int level, int option, const void* value, socklen_t bytes) {
  if (level == SOL_SOCKET && (option == SO_ATTACH_FILTER || option == SO_ATTACH_REUSEPORT_CBPF) &&
      bytes == sizeof(sock_fprog)) {
    const spill::PlainFilter filter(static_cast<const sock_fprog*>(value));
    return setsockopt(socket, level, option, filter.get(), bytes);
  }
  spill::PlainBytes memory(value, bytes, spill::PlainBytes::kIn);
  return setsockopt(socket, level, option, memory.data(), bytes);
}
SPILL_EXPORT int __spill_getsockopt(int socket, int level, int option, void* value, socklen_t* bytes) {
  // The length of a filter counts instructions.
  const size_t unit = level == SOL_SOCKET && option == SO_GET_FILTER ? sizeof(sock_filter) : 1;
  PlainObject<socklen_t> size(bytes);
  spill::PlainBytes memory(value, bytes != nullptr ? spill::load(bytes) * unit : 0,
                           spill::PlainBytes::kInOut);
  return getsockopt(socket, level, option, memory.data(), size);
}
SPILL_EXPORT int __spill_socketpair(int domain, int type, int protocol, int* sockets) {
  using Pair = int[2];
  struct Sockets {
    Pair pair;
  };
  PlainObject<Sockets> memory(reinterpret_cast<Sockets*>(sockets));
  return socketpair(domain, type, protocol, memory->pair);
}

SPILL_EXPORT int __spill_getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                                     addrinfo** result) {
  PlainString plain_host(host), plain_service(service);
  spill::PlainIn<addrinfo> plain_hints(hints);
  PlainObject<addrinfo*> plain_result(result);
  spill::clear_slots();
  return getaddrinfo(plain_host, plain_service, plain_hints, plain_result);
}
SPILL_EXPORT int __spill_getnameinfo(const sockaddr* address, socklen_t bytes, char* host,
                                     socklen_t host_room, char* service, socklen_t service_room, int flags) {
  spill::PlainBytes memory(address, bytes, spill::PlainBytes::kIn);
  spill::PlainBytes plain_host(host, host_room, spill::PlainBytes::kInOut);
  spill::PlainBytes plain_service(service, service_room, spill::PlainBytes::kInOut);
  spill::clear_slots();
  return getnameinfo(reinterpret_cast<sockaddr*>(memory.data()), bytes, plain_host.data(), host_room,
                     plain_service.data(), service_room, flags);
}
