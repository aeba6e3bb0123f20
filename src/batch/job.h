// Job: one action for many keys, one after the other: what a call of a session asks for.
#pragma once
#include <cstddef>
#include <cstdint>

#include "batch/key.h"
#include "batch/shape.h"

namespace batch {

enum class Action : uint8_t {
  kRead,    // copies the value
  kUpdate,  // the record, if it is there, gets another value
  kChange,  // a function makes a new value of the old one, if the record is there, and what is given
  kUpsert,  // as update; a record that is not there is made
  kRemove,
  kMerge,  // as change; a record that is not there is made, with what is given
};
constexpr bool may_insert(Action action) { return action == Action::kUpsert || action == Action::kMerge; }
constexpr bool calls_function(Action action) { return action == Action::kChange || action == Action::kMerge; }
constexpr bool takes_values(Action action) { return action != Action::kRead && action != Action::kRemove; }

enum class Outcome : uint8_t {
  kDone,
  kAbsent,    // there is no such record, and nothing was done
  kInserted,  // by an upsert or a merge
};

// Changes value_bytes at `value`, aligned to nothing, by as many bytes at `given`. Calls nothing of the table, and throws nothing. The bucket is
// locked meanwhile.
struct Change {
  void (*function)(void* context, void* value, const void* given) = nullptr;
  void* context = nullptr;
};

// What is done with a key, in a byte: an action, and of those that call a function its number.
struct Code {
  static constexpr uint32_t kFunctionsMax = 32;

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
  const std::byte* keys = nullptr;   // of key_bytes each
  const std::byte* given = nullptr;  // of value_bytes each; reads and removes: none
  std::byte* read = nullptr;    // of reads: count * value_bytes; of what is absent they are left as they are
  Outcome* outcomes = nullptr;  // count of them; null: nobody asks
  const Change* own_function = nullptr;  // instead of one of the table's; then nothing is staged
  // Set by the session that is asked: keys, and what is given, at so many bytes from the next, in arrays without gaps.
  uint32_t key_stride = 0;
  uint32_t given_stride = 0;
  const uint8_t* codes = nullptr;     // for each key; null: `code` is for all
  const Change* functions = nullptr;  // by their numbers

  // Set by who does it: how many are done, the first ones, and of those
  size_t done_count = 0;
  size_t absent_count = 0;
  size_t inserted_count = 0;
  size_t removed_count = 0;

  // Of the session that is asked: sets what it sets. False: a key is not below the key space, and done_count says which it is.
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
  // Is an outcome or a value asked for, or a function of its own called?
  bool wants_answers() const {
    return code.action == Action::kRead || outcomes != nullptr || own_function != nullptr;
  }
};

}  // namespace batch
