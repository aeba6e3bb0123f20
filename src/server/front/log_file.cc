#include "server/front/log_file.h"

#include <fcntl.h>
#include <unistd.h>

namespace server {

base::Expected<void> log_to(const std::string& path) {
  constexpr mode_t kMode = 0640;
  // Non-blocking: lines for a full pipe are lost, so that the server does not wait for its reader.
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, kMode);
  const bool is_taken = file >= 0 && dup2(file, STDERR_FILENO) >= 0;
  const int error = errno;
  if (file >= 0 && file != STDERR_FILENO) close(file);
  if (is_taken) return {};
  return base::failure(error, "cannot write to ", path, ": ", base::error_name(error));
}

}  // namespace server
