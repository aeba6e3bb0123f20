// The log in a file: standard error is that file from then on, and so is whatever the process says, also when it can go on no longer.
//
//   log_to("/var/log/spillway.log");    and the same once more: somebody (logrotate) has moved the file away, and there is to be a new one
//
// Thread contract: by any; others may log meanwhile, and each of their lines is in the one file or the other.
#pragma once
#include <string>

#include "base/error.h"

namespace server {

// Lines go to the end of the file, which is made if there is none. Errors: those of open(2), with the path; then everything stays as it was.
base::Expected<void> log_to(const std::string& path);

}  // namespace server
