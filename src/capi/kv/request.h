// Request: a get, put or remove, with all that it needs and with how it ended. Calls of a session and requests of a queue are both carried out as one.
#pragma once
#include <span>

#include "capi/kv/objects.h"
#include "task/executors.h"

namespace capi {

struct Request : task::Work {
  enum class Kind : uint8_t { kGet, kPut, kRemove };

  Kind kind = Kind::kGet;
  std::string_view key;
  // For a put: the value's pieces, and the options. A remove uses only `when` and `version` of these.
  std::span<const iovec> pieces;
  kv::PutOptions options;
  // For a get: where the value goes. Null with kAnySize: to memory from malloc(), which perform() sets `buffer` to, and whose owner is the caller.
  void* buffer = nullptr;
  size_t buffer_bytes = 0;

  // How it ended; `error` is set if value.status is below 0.
  spillway_kv_value value = {};
  base::Error error;

  void (*ended)(Request& request) = nullptr;  // called by Workers
};

inline constexpr size_t kAnySize = ~size_t{0};

// Set what the caller has given. Errors: EINVAL, E2BIG.
base::Expected<void> set_key(Request& request, const void* key, size_t key_bytes);
base::Expected<void> set_pieces(Request& request, const iovec* pieces, size_t count);
base::Expected<void> set_options(Request& request, const spillway_kv_change_options* options);

// Carries the request out. Blocks the thread or the task.
void perform(kv::Session& session, Request& request);
// Sets how the request ended from how its change did.
void end_change(Request& request, const base::Expected<kv::Changed>& changed);
// What a get has found, without `data` and `holder`.
spillway_kv_value describe(const kv::Found& found);

}  // namespace capi
