// Where a server listens: addresses as people write them, and listening sockets.
//
//   11211, :11211             the loopback interfaces, IPv4 and, if there is one, IPv6
//   10.0.0.1:11211  [::1]:11211  localhost:11211
//   *:11211                   all interfaces, IPv4 and IPv6
//   /run/spillway.sock        a socket in the file system; also unix:NAME
//   0 as the port             one that is free
#pragma once
#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace server {

struct Address {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  bool is_optional = false;  // it may be left out if the machine has no such address

  uint16_t port() const;  // 0: the address has no port
  void set_port(uint16_t port);
  // "127.0.0.1:11211", "[::1]:11211", a path.
  std::string text() const;
};

// Errors: EINVAL, with what is wrong and which forms there are, for text that is no address and for names that cannot be found.
base::Expected<std::vector<Address>> parse_address(std::string_view text);
// The address of a socket that listens.
Address address_of(int descriptor);
// The addresses of both ends of a connection. The peer of one in the file system is "unix"; an address that cannot be found out is "".
std::string peer_of(int descriptor);
std::string own_end_of(int descriptor);

// Returns a socket that listens there, and stores the address that it is bound to, with the port that was chosen, in `address`. A socket in the
// file system at which nobody listens any more is replaced. Errors: EADDRINUSE, EACCES, EADDRNOTAVAIL and others of bind, with the address and what
// to do.
base::Expected<int> listen_at(Address& address, unsigned unix_mode = 0700);
// Gives the file of a socket in the file system to a user and a group; other addresses have none. Errors: those of chown.
base::Expected<void> give_to(const Address& address, uid_t user, gid_t group);
// Removes the file of a socket in the file system.
void forget(const Address& address);

}  // namespace server
