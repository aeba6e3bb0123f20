// For tests: the other end of a connection, plainly.
#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace server {

// False: nobody reads it any more.
inline bool say(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t said = ::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
    if (said <= 0) return false;
    text.remove_prefix(static_cast<size_t>(said));
  }
  return true;
}

// Has the kernel buffer little of what is said.
inline void keep_little(int descriptor) {
  const int bytes = 32 << 10;
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

// Reads so many bytes, or all up to the end.
inline std::string hear(int descriptor, size_t bytes = SIZE_MAX) {
  std::string text;
  char part[4096];
  while (text.size() < bytes) {
    const ssize_t got = ::read(descriptor, part, std::min(sizeof part, bytes - text.size()));
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace server
