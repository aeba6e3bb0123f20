// What the objects behind the batched update table's C API are made of, and how its calls answer. (include/spillway/batch.h is the contract)
//
// Invariants
//  1 no C++ type, exception or symbol but spillway_batch_* leaves the library: it is built as the runtime is
//  2 every call checks what it is given: a mistake of the caller is SPILLWAY_BATCH_INVALID, and never reaches a CHECK of the layers below. Only
//    handles that are gone are not recognized
//  3 a table is closed only when it has no sessions
#pragma once
#include <optional>

#include "batch/table.h"
#include "capi/batch/stored.h"
#include "capi/common.h"
#include "spillway/batch.h"

namespace capi::batching {

int status_of(const base::Error& error);
// Keeps the error's line, for the session or, if that is null, for the calling thread, and returns its status.
int refuse(spillway_batch_session* session, const base::Error& error);
// The same for a mistake of the caller.
template <class... Parts>
int refuse_invalid(spillway_batch_session* session, const Parts&... parts) {
  return refuse(session, base::Error::of(EINVAL, parts...));
}
// Answers for how a session's call has ended: OK, or a line and its status.
int answer(spillway_batch_session& session, batch::Session::Ran ran);
int answer(spillway_batch_session& session, const base::Expected<void>& ran);

}  // namespace capi::batching

struct spillway_batch {
  batch::Table table;                              // not open if the table is in a file
  std::unique_ptr<capi::batching::Stored> stored;  // null if the table is in memory
  sys::Mutex lock;  // of the members below; held while sessions are opened and closed, and functions added
  uint32_t session_count = 0;
  uint32_t function_count = 0;
};

struct spillway_batch_session {
  explicit spillway_batch_session(spillway_batch& of) : table(&of) {}

  spillway_batch* const table;
  // One of the two.
  std::optional<batch::Session> session;
  std::optional<batch::StoredSession> stored;
  char error[sizeof(base::Error::message)] = {};
};
