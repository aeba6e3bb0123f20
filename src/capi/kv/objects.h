// The objects behind the key-value store's C API, and how its calls answer. (include/spillway/kv.h is the contract)
//
// Invariants
//  1 No C++ type, no exception and no symbol but spillway_kv_* leaves the library, which is built as the runtime is
//  2 Every call checks its arguments: a mistake of the caller ends with SPILLWAY_KV_INVALID, not in a CHECK of the layers below
//  3 `user_count` counts the open sessions and queues: a store is closed only when there are none
#pragma once
#include "capi/common.h"
#include "kv/store.h"
#include "spillway/kv.h"

namespace capi {

class Workers;

// Holds the memory of a value that was not copied.
struct Holder {
  spillway_kv_session* session = nullptr;
  kv::Found found;
  Holder* next = nullptr;  // in the session's list of free ones
};

int status_of(const base::Error& error);
// Keeps the error's line for the session, or if that is null for the calling thread, and returns its status.
int refuse(spillway_kv_session* session, const base::Error& error);
// The same for a mistake of the caller.
template <class... Parts>
int refuse_invalid(spillway_kv_session* session, const Parts&... parts) {
  return refuse(session, base::Error::of(EINVAL, parts...));
}

// Sets those members that the caller's header has. REQUIRES: to->struct_bytes is set.
void set_value(spillway_kv_value* to, const spillway_kv_value& from);
// Has the caller's struct at least the members that its first version had?
inline bool has_struct_bytes(const spillway_kv_value& value) { return value.struct_bytes >= 56; }
inline bool has_struct_bytes(const spillway_kv_change& change) { return change.struct_bytes >= 64; }
static_assert(sizeof(spillway_kv_value) == 56 && sizeof(spillway_kv_change) == 64);

}  // namespace capi

struct spillway_kv {
  storage::Device* device = nullptr;
  kv::Store* store = nullptr;
  sys::Mutex lock;  // guards what follows
  uint32_t user_count = 0;
  capi::Workers* background = nullptr;  // for spillway_kv_change_many; opened by its first call

  void add_user() {
    sys::LockGuard scope(lock);
    ++user_count;
  }
  void remove_user() {
    sys::LockGuard scope(lock);
    --user_count;
  }
};

struct spillway_kv_session {
  spillway_kv* store = nullptr;
  kv::Session session;
  size_t held_count = 0;       // values and writers that have not been released
  size_t iteration_count = 0;  // iterations that are open
  capi::Holder* free_holders = nullptr;
  char error[sizeof(base::Error::message)] = {};
};
