// What a service manager (systemd) gives a server, and is told by it: sockets that it listens on already (sd_listen_fds(3)), and that the server
// is ready (sd_notify(3)). Both by variables of the environment; without them nothing happens.
//
// Thread contract: take_sockets() before there are threads.
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
// Those that are for this process, close-on-exec from now on; the variables go, so that no child takes them for its own. Errors: EINVAL for
// what is no listening stream socket.
base::Expected<std::vector<GivenSocket>> take_sockets();

// "READY=1", "STOPPING=1". What cannot be told is left untold.
void tell_manager(std::string_view state);

}  // namespace server
