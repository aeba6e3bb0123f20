// Statuses, and the lines of errors.
#include "capi/pages/objects.h"

namespace capi::pages {

int status_of(const base::Error& error) {
  switch (error_kind(error)) {
    case ErrorKind::kInvalid: return SPILLWAY_PAGECACHE_INVALID;
    case ErrorKind::kNoMemory: return SPILLWAY_PAGECACHE_NO_MEMORY;
    case ErrorKind::kFull: return SPILLWAY_PAGECACHE_FULL;
    case ErrorKind::kDamaged: return SPILLWAY_PAGECACHE_DAMAGED;
    case ErrorKind::kInUse: return SPILLWAY_PAGECACHE_IN_USE;
    case ErrorKind::kNotFound: return SPILLWAY_PAGECACHE_NOT_FOUND;
    case ErrorKind::kDenied: return SPILLWAY_PAGECACHE_DENIED;
    case ErrorKind::kIo: break;
  }
  return SPILLWAY_PAGECACHE_IO;
}

int refuse(spillway_pagecache_session* session, const base::Error& error) {
  keep_line(error, session != nullptr ? session->error : nullptr);
  return status_of(error);
}

}  // namespace capi::pages

extern "C" {

const char* spillway_pagecache_version(void) { return capi::version(); }

const char* spillway_pagecache_status_text(int status) {
  switch (status) {
    case SPILLWAY_PAGECACHE_OK: return "done";
    case SPILLWAY_PAGECACHE_TOO_SMALL: return "the buffer is too small";
    case SPILLWAY_PAGECACHE_BUSY: return "the queue is full";
    case SPILLWAY_PAGECACHE_INVALID: return "invalid argument";
    case SPILLWAY_PAGECACHE_NO_MEMORY: return "no memory, descriptors or threads left";
    case SPILLWAY_PAGECACHE_FULL: return "no room left";
    case SPILLWAY_PAGECACHE_IO: return "input or output failed";
    case SPILLWAY_PAGECACHE_IN_USE: return "in use";
    case SPILLWAY_PAGECACHE_NOT_FOUND: return "no such file or device";
    case SPILLWAY_PAGECACHE_DENIED: return "permission denied";
    case SPILLWAY_PAGECACHE_DAMAGED: return "damaged";
    default: return "unknown status";
  }
}

const char* spillway_pagecache_error_text(const spillway_pagecache_session* session) {
  return session != nullptr ? session->error : capi::thread_error();
}

}  // extern "C"
