// Turns errors into statuses and lines.
#include <cerrno>

#include "capi/persist/objects.h"

namespace capi::persisting {

int status_of(const base::Error& error) {
  switch (error.number) {
    case EEXIST: return SPILLWAY_PERSIST_INVALID;
    case ENOSYS: return SPILLWAY_PERSIST_NO_MEMORY;
    case ENODEV:
    case ENOTSUP: return SPILLWAY_PERSIST_UNSUPPORTED;
    default: break;
  }
  switch (error_kind(error)) {
    case ErrorKind::kInvalid: return SPILLWAY_PERSIST_INVALID;
    case ErrorKind::kNoMemory: return SPILLWAY_PERSIST_NO_MEMORY;
    case ErrorKind::kFull: return SPILLWAY_PERSIST_FULL;
    case ErrorKind::kInUse: return SPILLWAY_PERSIST_IN_USE;
    case ErrorKind::kNotFound: return SPILLWAY_PERSIST_NOT_FOUND;
    case ErrorKind::kDenied: return SPILLWAY_PERSIST_DENIED;
    case ErrorKind::kDamaged:
    case ErrorKind::kIo: break;
  }
  return SPILLWAY_PERSIST_IO;
}

int refuse(const base::Error& error) {
  keep_line(error, nullptr);
  return status_of(error);
}

int answer(const base::Expected<void>& ended) { return ended ? SPILLWAY_PERSIST_OK : refuse(ended.error()); }

int answer_written(const base::Expected<void>& ended) {
  const int status = answer(ended);
  return status == SPILLWAY_PERSIST_OK || status == SPILLWAY_PERSIST_FULL ? status : SPILLWAY_PERSIST_IO;
}

}  // namespace capi::persisting

extern "C" {

const char* spillway_persist_version(void) { return capi::version(); }

const char* spillway_persist_status_text(int status) {
  switch (status) {
    case SPILLWAY_PERSIST_OK: return "done";
    case SPILLWAY_PERSIST_ABSENT: return "no such domain";
    case SPILLWAY_PERSIST_TOO_SMALL: return "the buffer is too small";
    case SPILLWAY_PERSIST_INVALID: return "invalid argument";
    case SPILLWAY_PERSIST_NO_MEMORY: return "no memory or threads left";
    case SPILLWAY_PERSIST_FULL: return "no room left";
    case SPILLWAY_PERSIST_IN_USE: return "in use";
    case SPILLWAY_PERSIST_IO: return "input or output error";
    case SPILLWAY_PERSIST_NOT_FOUND: return "no such file or folder";
    case SPILLWAY_PERSIST_DENIED: return "permission denied";
    case SPILLWAY_PERSIST_UNSUPPORTED: return "not supported here";
    default: return "unknown status";
  }
}

const char* spillway_persist_error_text(void) { return capi::thread_error(); }

}  // extern "C"
