// What a service manager (systemd) and a server tell each other: the manager passes sockets that listen already (sd_listen_fds(3)), and the server
// says when it is ready (sd_notify(3)). Variables of the environment say how; without them nothing happens.
//
// Thread contract: take_sockets() before there are other threads.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace server {

struct GivenSocket {
  int descriptor = -1;
  std::string name;  // FileDescriptorName= of its unit
};
// Returns the sockets for this process, and makes them close-on-exec. The variables are removed, so that no child takes the sockets for its own.
// Errors: EINVAL for a descriptor that is not a listening stream socket.
base::Expected<std::vector<GivenSocket>> take_sockets();

// `state` is "READY=1" or "STOPPING=1". Errors are ignored.
void tell_manager(std::string_view state);

}  // namespace server
