// What the objects behind the batched update table's C API are made of, and how its calls answer. (include/spillway/batch.h is the contract)
//
// Invariants
//  1 no C++ type, exception or symbol but spillway_batch_* leaves the library: it is built as the runtime is
//  2 every call checks what it is given: a mistake of the caller is SPILLWAY_BATCH_INVALID, and no CHECK of the layers below; but for handles
//    that are gone
//  3 a table is closed when it has no sessions
#pragma once
#include <optional>

#include "batch/table.h"
#include "capi/batch/stored.h"
#include "capi/common.h"
#include "spillway/batch.h"

namespace capi::batching {

int status_of(const base::Error& error);
// Keeps the error's line, for the session or, null, for the calling thread, and returns its status.
int refuse(spillway_batch_session* session, const base::Error& error);
// The same of a mistake of the caller.
template <class... Parts>
int refuse_invalid(spillway_batch_session* session, const Parts&... parts) {
  return refuse(session, base::Error::of(EINVAL, parts...));
}
// Of how a session's call has ended, OK or with a line.
int answer(spillway_batch_session& session, batch::Session::Ran ran);
int answer(spillway_batch_session& session, const base::Expected<void>& ran);

}  // namespace capi::batching

struct spillway_batch {
  batch::Table table;  // closed, where it is one in a file
  std::unique_ptr<capi::batching::Stored> stored;
  sys::Mutex lock;  // of what follows, and of what the table's sessions and functions are
  uint32_t session_count = 0;
  uint32_t function_count = 0;
};

struct spillway_batch_session {
  explicit spillway_batch_session(spillway_batch& of) : table(&of) {}

  spillway_batch* const table;
  // One of them.
  std::optional<batch::Session> session;
  std::optional<batch::StoredSession> stored;
  char error[sizeof(base::Error::message)] = {};
};
