// Request: a get, put or remove with all that it needs and how it ended. What the calls of a session and those of a queue have in common.
#pragma once
#include <span>

#include "capi/capi.h"
#include "task/lanes.h"

namespace capi {

struct Request : task::Work {
  enum class Kind : uint8_t { kGet, kPut, kRemove };

  Kind kind = Kind::kGet;
  std::string_view key;
  // Of a put: the value's pieces, and the options; of a remove `when` and `version` of these.
  std::span<const iovec> pieces;
  kv::PutOptions options;
  // Of a get: where the value goes. Null with buffer_bytes ~0: to memory of malloc's, which becomes the caller's.
  void* buffer = nullptr;
  size_t buffer_bytes = 0;

  // How it ended. Of an error `error` is the line.
  spillway_kv_value value = {};
  base::Error error;

  void (*ended)(Request& request) = nullptr;  // of Workers
};

inline constexpr size_t kAnySize = ~size_t{0};

// Errors: EINVAL for what the caller has given.
base::Expected<void> set_key(Request& request, const void* key, size_t key_bytes);
base::Expected<void> set_pieces(Request& request, const iovec* pieces, size_t count);
base::Expected<void> set_options(Request& request, const spillway_kv_change_options* options);

// Carries it out. Blocks the thread or the task.
void perform(kv::Session& session, Request& request);
// How a change ended becomes the request's.
void end_change(Request& request, const base::Expected<kv::Changed>& changed);
// What a get found, but for its data.
spillway_kv_value describe(const kv::Found& found);

}  // namespace capi
