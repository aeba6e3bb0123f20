// What the objects behind the key-value store's C API are made of, and how its calls answer. (include/spillway/kv.h is the contract)
//
// Invariants
//  1 no C++ type, exception or symbol but spillway_kv_* leaves the library: it is built as the runtime is
//  2 every call checks what it is given: a mistake of the caller is SPILLWAY_KV_INVALID, and no CHECK of the layers below
//  3 `user_count` counts the open sessions and queues; the store is closed when there are none
#pragma once
#include "capi/common.h"
#include "kv/store.h"
#include "spillway/kv.h"

namespace capi {

class Workers;

// What a zero-copy value lies in.
struct Holder {
  spillway_kv_session* session = nullptr;
  kv::Found found;
  Holder* next = nullptr;  // of the session's free ones
};

int status_of(const base::Error& error);
// Keeps the error's line, for the session or, null, for the calling thread, and returns its status.
int refuse(spillway_kv_session* session, const base::Error& error);
// The same of a mistake of the caller.
template <class... Parts>
int refuse_invalid(spillway_kv_session* session, const Parts&... parts) {
  return refuse(session, base::Error::of(EINVAL, parts...));
}

// Members of a caller's struct that its header has. REQUIRES: to->struct_bytes is set.
void set_value(spillway_kv_value* to, const spillway_kv_value& from);
// At least what the first version of the struct had.
inline bool has_struct_bytes(const spillway_kv_value& value) { return value.struct_bytes >= 56; }
inline bool has_struct_bytes(const spillway_kv_change& change) { return change.struct_bytes >= 64; }
static_assert(sizeof(spillway_kv_value) == 56 && sizeof(spillway_kv_change) == 64);

}  // namespace capi

struct spillway_kv {
  storage::Device* device = nullptr;
  kv::Store* store = nullptr;
  sys::Mutex lock;  // of what follows
  uint32_t user_count = 0;
  capi::Workers* background = nullptr;  // for batches of changes, from the first on

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
  size_t held_count = 0;       // values and writers that are to be released
  size_t iteration_count = 0;  // open
  capi::Holder* free_holders = nullptr;
  char error[sizeof(base::Error::message)] = {};
};
