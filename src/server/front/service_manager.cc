#include "server/front/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "server/text.h"

namespace server {
namespace {

constexpr int kFirstDescriptor = 3;
constexpr int kMaxDescriptors = 64;

std::string_view variable(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

int option_of(int descriptor, int option) {
  int value = -1;
  socklen_t bytes = sizeof value;
  return getsockopt(descriptor, SOL_SOCKET, option, &value, &bytes) == 0 ? value : -1;
}

}  // namespace

base::Expected<std::vector<GivenSocket>> take_sockets() {
  std::vector<GivenSocket> sockets;
  const auto process = parse_number<int>(variable("LISTEN_PID"));
  const auto count = parse_number<int>(variable("LISTEN_FDS"));
  std::string names(variable("LISTEN_FDNAMES"));
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  if (!process || *process != getpid() || !count || *count <= 0) return sockets;
  if (*count > kMaxDescriptors)
    return base::failure(EINVAL, "LISTEN_FDS says that there are ", *count, " sockets; give at most ",
                         kMaxDescriptors);
  for (int i = 0; i < *count; ++i) {
    const size_t end = std::min(names.find(':'), names.size());
    GivenSocket socket = {.descriptor = kFirstDescriptor + i, .name = names.substr(0, end)};
    names.erase(0, std::min(end + 1, names.size()));
    if (option_of(socket.descriptor, SO_ACCEPTCONN) != 1 ||
        option_of(socket.descriptor, SO_TYPE) != SOCK_STREAM)
      return base::failure(EINVAL, "descriptor ", socket.descriptor, " (", socket.name.c_str(),
                           ") of LISTEN_FDS is not a listening stream socket");
    fcntl(socket.descriptor, F_SETFD, FD_CLOEXEC);
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

void tell_manager(std::string_view state) {
  const std::string_view path = variable("NOTIFY_SOCKET");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const bool is_path = path.starts_with('/') || path.starts_with('@');
  if (!is_path || path.size() >= sizeof address.sun_path) return;
  memcpy(address.sun_path, path.data(), path.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = 0;  // an abstract name
  const int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return;
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  sendto(descriptor, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
         bytes);
  close(descriptor);
}

}  // namespace server
