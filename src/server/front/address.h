// Where a server listens: addresses as people write them, and listening sockets.
//
//   11211, :11211             the loopback interfaces, IPv4 and, if there is one, IPv6
//   10.0.0.1:11211  [::1]:11211  localhost:11211
//   *:11211                   all interfaces, IPv4 and IPv6
//   /run/spillway.sock        a socket in the file system; also unix:NAME
//   0 as the port             one that is free
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace server {

struct Address {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  bool is_optional = false;  // nobody misses it where the machine has none such

  uint16_t port() const;  // 0: of none that has ports
  void set_port(uint16_t port);
  // "127.0.0.1:11211", "[::1]:11211", a path.
  std::string text() const;
};

// Errors: EINVAL for what is no address, with what is wrong and the forms that there are; what names cannot be found.
base::Expected<std::vector<Address>> parse_address(std::string_view text);
// Of a socket that listens.
Address address_of(int descriptor);
// That of the peer of a connection, "unix" if it has no port, or its own end's; what cannot be told is "".
std::string peer_of(int descriptor);
std::string own_end_of(int descriptor);

// A listening socket. What it is bound to is written back: the port that was free. A socket in the file system that nobody listens at any more
// is replaced. Errors: EADDRINUSE, EACCES, EADDRNOTAVAIL and others of bind, with the address and what to do.
base::Expected<int> listen_at(Address& address, unsigned unix_mode = 0700);
// Removes its file, if it has one.
void forget(const Address& address);

}  // namespace server
