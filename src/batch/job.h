// Job: one action for many keys, one after the other. A session's call does one job.
#pragma once
#include <cstddef>
#include <cstdint>

#include "batch/key.h"
#include "batch/shape.h"

namespace batch {

enum class Action : uint8_t {
  kRead,    // copies the value out
  kUpdate,  // replaces the value, if there is a record
  kChange,  // a function makes a new value from the old one and the given one, if there is a record
  kUpsert,  // updates the record, or inserts it if there is none
  kRemove,
  kMerge,  // changes the record as kChange does, or inserts the given value if there is none
};
constexpr bool may_insert(Action action) { return action == Action::kUpsert || action == Action::kMerge; }
constexpr bool calls_function(Action action) { return action == Action::kChange || action == Action::kMerge; }
constexpr bool takes_values(Action action) { return action != Action::kRead && action != Action::kRemove; }

enum class Outcome : uint8_t {
  kDone,
  kAbsent,    // there is no record with this key, and nothing was done
  kInserted,  // by an upsert or a merge
};

// Changes the value_bytes bytes at `value` according to those at `given`; neither need be aligned. The function must not call the table, and must not
// throw. The bucket is locked meanwhile.
struct Change {
  void (*function)(void* context, void* value, const void* given) = nullptr;
  void* context = nullptr;
};

// What to do with a key: an action, and the number of the function if the action calls one. Fits into a byte.
struct Code {
  static constexpr uint32_t kMaxFunctions = 32;

  Action action = Action::kRead;
  uint8_t function = 0;

  static constexpr Code of(uint8_t byte) {
    return {static_cast<Action>(byte & 7), static_cast<uint8_t>(byte >> 3)};
  }
  constexpr uint8_t byte() const {
    return static_cast<uint8_t>(static_cast<uint8_t>(action) | function << 3);
  }
};

struct Job {
  Code code = {};
  size_t count = 0;
  const std::byte* keys = nullptr;   // key_bytes each
  const std::byte* given = nullptr;  // value_bytes each; null for reads and removes
  std::byte* read = nullptr;         // for reads: count * value_bytes; places of absent keys stay unchanged
  Outcome* outcomes = nullptr;       // `count` of them; null: nobody asks for outcomes
  const Change* own_function = nullptr;  // instead of one of the table's; such a job is not staged
  // The distances in bytes from one key to the next, and from one given value to the next. The session sets them; the caller's arrays have no gaps.
  uint32_t key_stride = 0;
  uint32_t given_stride = 0;
  const uint8_t* codes = nullptr;     // for each key; null: `code` is for all
  const Change* functions = nullptr;  // function number i is functions[i]

  // Results: how many keys are done (the first ones), and what happened to them.
  size_t done_count = 0;
  size_t absent_count = 0;
  size_t inserted_count = 0;
  size_t removed_count = 0;

  // A session calls this first: it sets the strides, and clears the results. False: a key is not in the key space; done_count is its index.
  bool begin(const Shape& shape, uint64_t key_space) {
    key_stride = shape.key_bytes;
    given_stride = shape.value_bytes;
    codes = nullptr;
    done_count = absent_count = inserted_count = removed_count = 0;
    if (key_space == 0) return true;
    for (size_t i = 0; i < count; ++i)
      if (load_key(keys + i * key_stride, shape.key_bytes).low >= key_space) return done_count = i, false;
    return true;
  }
  // Does the job ask for outcomes or values, or call a function of its own?
  bool wants_answers() const {
    return code.action == Action::kRead || outcomes != nullptr || own_function != nullptr;
  }
};

}  // namespace batch
