// Turns errors into statuses and lines.
#include <cerrno>

#include "capi/batch/objects.h"

namespace capi::batching {

int status_of(const base::Error& error) {
  if (error.number == ENOSYS) return SPILLWAY_BATCH_NO_MEMORY;
  switch (error_kind(error)) {
    case ErrorKind::kInvalid: return SPILLWAY_BATCH_INVALID;
    case ErrorKind::kNoMemory: return SPILLWAY_BATCH_NO_MEMORY;
    case ErrorKind::kFull: return SPILLWAY_BATCH_FULL;
    case ErrorKind::kDamaged: return SPILLWAY_BATCH_DAMAGED;
    case ErrorKind::kInUse: return SPILLWAY_BATCH_IN_USE;
    case ErrorKind::kNotFound: return SPILLWAY_BATCH_NOT_FOUND;
    case ErrorKind::kDenied: return SPILLWAY_BATCH_DENIED;
    case ErrorKind::kIo: break;
  }
  return SPILLWAY_BATCH_IO;
}

int refuse(spillway_batch_session* session, const base::Error& error) {
  keep_line(error, session != nullptr ? session->error : nullptr);
  return status_of(error);
}

int answer(spillway_batch_session& session, batch::Session::Ran ran) {
  using Ran = batch::Session::Ran;
  switch (ran) {
    case Ran::kAll: return SPILLWAY_BATCH_OK;
    case Ran::kOutside:
      return refuse_invalid(&session, "table: a key is not below the key space, ",
                            session.table->table.options().key_space);
    case Ran::kFull:
      return refuse(
          &session,
          base::Error::of(ENOSPC, "table: no room for a record near its place; make it for more records"));
    case Ran::kNoMemory:
      return refuse(&session, base::Error::of(ENOMEM, "table: no memory to grow or to stage"));
  }
  return SPILLWAY_BATCH_INVALID;
}

int answer(spillway_batch_session& session, const base::Expected<void>& ran) {
  return ran ? SPILLWAY_BATCH_OK : refuse(&session, ran.error());
}

}  // namespace capi::batching

extern "C" {

const char* spillway_batch_version(void) { return capi::version(); }

const char* spillway_batch_status_text(int status) {
  switch (status) {
    case SPILLWAY_BATCH_OK: return "done";
    case SPILLWAY_BATCH_ABSENT: return "no such record";
    case SPILLWAY_BATCH_TOO_SMALL: return "the buffer is too small";
    case SPILLWAY_BATCH_STOPPED: return "stopped";
    case SPILLWAY_BATCH_INVALID: return "invalid argument";
    case SPILLWAY_BATCH_NO_MEMORY: return "no memory or threads left";
    case SPILLWAY_BATCH_FULL: return "no room left";
    case SPILLWAY_BATCH_IN_USE: return "in use";
    case SPILLWAY_BATCH_IO: return "input or output error";
    case SPILLWAY_BATCH_NOT_FOUND: return "no such file or device";
    case SPILLWAY_BATCH_DENIED: return "permission denied";
    case SPILLWAY_BATCH_DAMAGED: return "damaged";
    default: return "unknown status";
  }
}

const char* spillway_batch_error_text(const spillway_batch_session* session) {
  return session != nullptr ? session->error : capi::thread_error();
}

}  // extern "C"
