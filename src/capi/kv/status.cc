// Statuses, the lines of errors, and values of other versions.
#include <algorithm>

#include "capi/kv/objects.h"

namespace capi {

int status_of(const base::Error& error) {
  switch (error.number) {
    case E2BIG: return SPILLWAY_KV_TOO_LARGE;
    case EEXIST: return SPILLWAY_KV_EXISTS;
    case EPROTONOSUPPORT: return SPILLWAY_KV_NEWER;
    case ECANCELED: return SPILLWAY_KV_CANCELED;
    default: break;
  }
  switch (error_kind(error)) {
    case ErrorKind::kInvalid: return SPILLWAY_KV_INVALID;
    case ErrorKind::kNoMemory: return SPILLWAY_KV_NO_MEMORY;
    case ErrorKind::kFull: return SPILLWAY_KV_FULL;
    case ErrorKind::kDamaged: return SPILLWAY_KV_DAMAGED;
    case ErrorKind::kInUse: return SPILLWAY_KV_IN_USE;
    case ErrorKind::kNotFound: return SPILLWAY_KV_NOT_FOUND;
    case ErrorKind::kDenied: return SPILLWAY_KV_DENIED;
    case ErrorKind::kIo: break;
  }
  return SPILLWAY_KV_IO;
}

int refuse(spillway_kv_session* session, const base::Error& error) {
  keep_line(error, session != nullptr ? session->error : nullptr);
  return status_of(error);
}

void set_value(spillway_kv_value* to, const spillway_kv_value& from) {
  const size_t bytes = to->struct_bytes;
  memcpy(to, &from, std::min(bytes, sizeof from));
  to->struct_bytes = bytes;
}

}  // namespace capi

extern "C" {

const char* spillway_kv_version(void) { return capi::version(); }

const char* spillway_kv_status_text(int status) {
  switch (status) {
    case SPILLWAY_KV_OK: return "done";
    case SPILLWAY_KV_ABSENT: return "no such key";
    case SPILLWAY_KV_PRESENT: return "there is such a key";
    case SPILLWAY_KV_OTHER_VERSION: return "another version";
    case SPILLWAY_KV_TOO_SMALL: return "the buffer is too small";
    case SPILLWAY_KV_BUSY: return "the queue is full";
    case SPILLWAY_KV_INVALID: return "invalid argument";
    case SPILLWAY_KV_NO_MEMORY: return "no memory, descriptors or threads left";
    case SPILLWAY_KV_FULL: return "no room left";
    case SPILLWAY_KV_TOO_LARGE: return "the value is too large";
    case SPILLWAY_KV_DAMAGED: return "damaged data";
    case SPILLWAY_KV_IO: return "input or output failed";
    case SPILLWAY_KV_IN_USE: return "in use";
    case SPILLWAY_KV_EXISTS: return "holds data that would be lost";
    case SPILLWAY_KV_NOT_FOUND: return "no such file or device";
    case SPILLWAY_KV_DENIED: return "permission denied";
    case SPILLWAY_KV_NEWER: return "made by a later version";
    case SPILLWAY_KV_CANCELED: return "too much has changed";
    default: return "unknown status";
  }
}

const char* spillway_kv_error_text(const spillway_kv_session* session) {
  return session != nullptr ? session->error : capi::thread_error();
}

}  // extern "C"
