// Statuses, and the lines of errors.
#include <cerrno>

#include "capi/batch/objects.h"

namespace capi::batching {

int status_of(const base::Error& error) {
  switch (error.number) {
    case ENOMEM:
    case EAGAIN:
    case ENOSYS: return SPILLWAY_BATCH_NO_MEMORY;
    case ENOSPC: return SPILLWAY_BATCH_FULL;
    case EBUSY: return SPILLWAY_BATCH_IN_USE;
    default: return SPILLWAY_BATCH_INVALID;
  }
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
    default: return "unknown status";
  }
}

const char* spillway_batch_error_text(const spillway_batch_session* session) {
  return session != nullptr ? session->error : capi::thread_error();
}

}  // extern "C"
