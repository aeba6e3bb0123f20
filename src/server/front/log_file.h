// The log in a file. The file becomes standard error, so that it gets everything that the process says, even when it dies of an internal
// error.
//
//   log_to("/var/log/spillway.log");    and again after somebody (logrotate) has moved the file away, to begin a new one
//
// Thread contract: any thread. Others may log meanwhile: each of their lines is in the old file or in the new one.
#pragma once
#include <string>

#include "base/error.h"

namespace server {

// Lines are appended to the file, which is made if there is none. Errors: those of open(2), with the path; then everything stays as it was.
base::Expected<void> log_to(const std::string& path);

}  // namespace server
