// Credentials: how clients of memcached's protocols authenticate, where a server asks for it.
//
//   text     set ANY ANY ANY BYTES\r\nUSER PASSWORD\r\n      before anything else; as memcached's -Y
//   binary   SASL auth with the mechanism PLAIN: AUTHORITY \0 USER \0 PASSWORD (RFC 4616)
#pragma once
#include <string_view>

#include "server/memcache/parsed.h"

namespace server::memcache {

// Parts of the input.
struct Credentials {
  std::string_view user, password;
};

inline constexpr size_t kMaxCredentialsBytes = 1 << 10;  // of both together
inline constexpr std::string_view kSaslMechanisms = "PLAIN";

// Parses the text command that the input begins with; after kCommand `credentials` holds what it says. As in memcached, any command but a set of
// credentials is refused, and a line that is too long closes the connection. Unlike in 1.6.18, all behind the first blank is the password, which may
// have blanks; and a value of more than kMaxCredentialsBytes is refused, and swallowed.
Parsed parse_credentials(std::string_view input, Credentials& credentials);

// Parses a message of the mechanism PLAIN. False: it is malformed.
bool parse_plain(std::string_view message, Credentials& credentials);

}  // namespace server::memcache
