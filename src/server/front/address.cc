#include "server/front/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "server/text.h"

namespace server {
namespace {

constexpr int kBacklog = 4096;
constexpr const char* kForms = "give PORT, HOST:PORT, [IPV6]:PORT, *:PORT or the path of a socket";

template <class... Parts>
std::unexpected<base::Error> refuse(std::string_view text, const Parts&... parts) {
  return base::failure(EINVAL, "'", text, "' is not an address to listen at: ", parts..., "; ", kForms);
}

Address address_of(const sockaddr* bytes, size_t size) {
  Address address;
  memcpy(&address.bytes, bytes, size);
  address.size = static_cast<socklen_t>(size);
  return address;
}

bool is_same(const Address& a, const Address& b) {
  return a.size == b.size && memcmp(&a.bytes, &b.bytes, a.size) == 0;
}

Address of_ipv4(uint32_t host, uint16_t port) {
  sockaddr_in bytes = {};
  bytes.sin_family = AF_INET;
  bytes.sin_addr.s_addr = htonl(host);
  bytes.sin_port = htons(port);
  return address_of(reinterpret_cast<const sockaddr*>(&bytes), sizeof bytes);
}

Address of_ipv6(const in6_addr& host, uint16_t port) {
  sockaddr_in6 bytes = {};
  bytes.sin6_family = AF_INET6;
  bytes.sin6_addr = host;
  bytes.sin6_port = htons(port);
  Address address = address_of(reinterpret_cast<const sockaddr*>(&bytes), sizeof bytes);
  address.is_optional = true;
  return address;
}

base::Expected<std::vector<Address>> parse_path(std::string_view text) {
  sockaddr_un bytes = {};
  bytes.sun_family = AF_UNIX;
  if (text.empty()) return refuse(text, "a path is missing");
  if (text.size() >= sizeof bytes.sun_path)
    return refuse(text, "a socket's path has at most ", sizeof bytes.sun_path - 1, " bytes");
  memcpy(bytes.sun_path, text.data(), text.size());
  return std::vector{address_of(reinterpret_cast<const sockaddr*>(&bytes),
                                offsetof(sockaddr_un, sun_path) + text.size() + 1)};
}

base::Expected<std::vector<Address>> look_up(std::string_view text, const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    return refuse(text, gai_strerror(error));
  std::vector<Address> all;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Address address = address_of(at->ai_addr, at->ai_addrlen);
    // A name that stands in two lines of /etc/hosts has an address twice.
    if (std::ranges::any_of(all, [&](const Address& other) { return is_same(other, address); })) continue;
    // One of a name's addresses is enough.
    address.is_optional = !all.empty();
    all.push_back(address);
  }
  freeaddrinfo(found);
  return all;
}

// An address of no family if it cannot be found out.
template <class Call>
Address address_by(Call call, int descriptor) {
  Address address;
  address.size = sizeof address.bytes;
  return call(descriptor, reinterpret_cast<sockaddr*>(&address.bytes), &address.size) == 0 ? address
                                                                                           : Address();
}

// Removes a socket at which nobody listens any more. False: there was none.
bool remove_stale(const Address& address) {
  const auto* of = reinterpret_cast<const sockaddr_un*>(&address.bytes);
  struct stat status;
  if (address.bytes.ss_family != AF_UNIX || lstat(of->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode))
    return false;
  // Non-blocking, so that it does not wait for a server that hangs and accepts no connections.
  const int asks = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool is_stale = asks >= 0 &&
                        connect(asks, reinterpret_cast<const sockaddr*>(of), address.size) != 0 &&
                        errno == ECONNREFUSED;
  if (asks >= 0) close(asks);
  return is_stale && unlink(of->sun_path) == 0;
}

const char* advice_for(int error, const Address& address) {
  switch (error) {
    case EADDRINUSE:
      if (address.bytes.ss_family == AF_UNIX)
        return "; another server is there, or a file: end it, remove that, or give another path";
      return "; another server is there: end it, or give another address";
    case EACCES: return "; give a port from 1024 on, a directory that you may write to, or start it as root";
    case EADDRNOTAVAIL: return "; no interface of this machine has that address";
    case EAFNOSUPPORT: return "; the kernel has no such addresses: is IPv6 switched off?";
    default: return "";
  }
}

// 0, or an errno value.
int bind_and_listen(int descriptor, Address& address, unsigned unix_mode) {
  const int on = 1;
  const auto* bytes = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (address.bytes.ss_family == AF_INET6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (address.bytes.ss_family != AF_UNIX) setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // So that the file has the right mode from the beginning.
  const mode_t before = umask(0777 & ~unix_mode);
  int error = bind(descriptor, bytes, address.size) == 0 ? 0 : errno;
  if (error == EADDRINUSE && remove_stale(address))
    error = bind(descriptor, bytes, address.size) == 0 ? 0 : errno;
  umask(before);
  if (error == 0 && listen(descriptor, kBacklog) != 0) error = errno;
  if (error == 0 && address.bytes.ss_family != AF_UNIX) {
    address.size = sizeof address.bytes;
    getsockname(descriptor, reinterpret_cast<sockaddr*>(&address.bytes), &address.size);
  }
  return error;
}

}  // namespace

uint16_t Address::port() const {
  if (bytes.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&bytes)->sin_port);
  if (bytes.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&bytes)->sin6_port);
  return 0;
}

void Address::set_port(uint16_t port) {
  if (bytes.ss_family == AF_INET) reinterpret_cast<sockaddr_in*>(&bytes)->sin_port = htons(port);
  if (bytes.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(&bytes)->sin6_port = htons(port);
}

std::string Address::text() const {
  char host[INET6_ADDRSTRLEN] = "";
  switch (bytes.ss_family) {
    case AF_INET:
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&bytes)->sin_addr, host, sizeof host);
      return std::string(host) + ":" + std::to_string(port());
    case AF_INET6:
      inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&bytes)->sin6_addr, host, sizeof host);
      return "[" + std::string(host) + "]:" + std::to_string(port());
    case AF_UNIX:
      // A client's end usually has no name.
      if (size <= offsetof(sockaddr_un, sun_path)) return "unix";
      return reinterpret_cast<const sockaddr_un*>(&bytes)->sun_path;
    default: return "";
  }
}

base::Expected<std::vector<Address>> parse_address(std::string_view text) {
  if (text.starts_with("unix:")) return parse_path(text.substr(5));
  if (text.starts_with('/') || text.starts_with('.')) return parse_path(text);
  const size_t colon = text.rfind(':');
  std::string_view host = colon == std::string_view::npos ? "" : text.substr(0, colon);
  const std::string_view digits = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const auto port = parse_number<uint16_t>(digits);
  if (!port) return refuse(text, "'", digits, "' is not a port from 0 to 65535");
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.contains(':'))
    return refuse(text, "the host of an IPv6 address stands in brackets");
  if (host.empty()) return std::vector{of_ipv4(INADDR_LOOPBACK, *port), of_ipv6(in6addr_loopback, *port)};
  if (host == "*") return std::vector{of_ipv4(INADDR_ANY, *port), of_ipv6(in6addr_any, *port)};
  return look_up(text, std::string(host), *port);
}

Address address_of(int descriptor) { return address_by(getsockname, descriptor); }
std::string peer_of(int descriptor) {
  const Address peer = address_by(getpeername, descriptor);
  // The client may have chosen any path for its end, even one with line breaks.
  return peer.bytes.ss_family == AF_UNIX ? "unix" : peer.text();
}
std::string own_end_of(int descriptor) { return address_of(descriptor).text(); }

base::Expected<int> listen_at(Address& address, unsigned unix_mode) {
  const int descriptor = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int error = descriptor < 0 ? errno : bind_and_listen(descriptor, address, unix_mode);
  if (error == 0) return descriptor;
  if (descriptor >= 0) close(descriptor);
  return base::failure(error, "cannot listen at ", address.text(), ": ", base::error_name(error),
                       advice_for(error, address));
}

base::Expected<void> give_to(const Address& address, uid_t user, gid_t group) {
  if (address.bytes.ss_family != AF_UNIX) return {};
  // Gives away a symbolic link that somebody has put in its place, not what that points to.
  if (lchown(reinterpret_cast<const sockaddr_un*>(&address.bytes)->sun_path, user, group) == 0) return {};
  const int error = errno;
  return base::failure(error, "cannot give away ", address.text(), ": ", base::error_name(error));
}

void forget(const Address& address) {
  if (address.bytes.ss_family == AF_UNIX)
    unlink(reinterpret_cast<const sockaddr_un*>(&address.bytes)->sun_path);
}

}  // namespace server
