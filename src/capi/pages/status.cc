// Statuses, and the lines of errors.
#include "capi/pages/objects.h"

namespace capi::pages {

int status_of(const base::Error& error) {
  switch (error.number) {
    case EINVAL:
    case EFBIG:
    case EISDIR:
    case ELOOP:
    case ENOTDIR:
    case ENAMETOOLONG: return SPILLWAY_PAGECACHE_INVALID;
    case ENOMEM:
    case EAGAIN:
    case EMFILE:
    case ENFILE: return SPILLWAY_PAGECACHE_NO_MEMORY;
    case ENOSPC:
    case EDQUOT: return SPILLWAY_PAGECACHE_FULL;
    case EBADMSG: return SPILLWAY_PAGECACHE_DAMAGED;
    case EBUSY: return SPILLWAY_PAGECACHE_IN_USE;
    case ENOENT: return SPILLWAY_PAGECACHE_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS: return SPILLWAY_PAGECACHE_DENIED;
    default: return SPILLWAY_PAGECACHE_IO;
  }
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
