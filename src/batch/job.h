// Job: one action for many keys, one after the other: what a call of a session asks for.
#pragma once
#include <cstddef>
#include <cstdint>

namespace batch {

enum class Action : uint8_t {
  kRead,    // copies the value
  kUpdate,  // the record, if it is there, gets another value
  kChange,  // a function makes a new value of the old one, if the record is there, and what is given
  kUpsert,  // as update; a record that is not there is made
  kRemove,
};

enum class Outcome : uint8_t {
  kDone,
  kAbsent,    // there is no such record, and nothing was done
  kInserted,  // by an upsert
};

// Changes value_bytes at `value`, aligned to nothing, by as many bytes at `given`. Calls nothing of the table, and throws nothing. The bucket is
// locked meanwhile.
struct Change {
  void (*function)(void* context, void* value, const void* given) = nullptr;
  void* context = nullptr;
};

struct Job {
  Action action = Action::kRead;
  size_t count = 0;
  const std::byte* keys = nullptr;   // count * key_bytes
  const std::byte* given = nullptr;  // count * value_bytes; reads and removes: none
  std::byte* read = nullptr;    // of reads: count * value_bytes; of what is absent they are left as they are
  Outcome* outcomes = nullptr;  // count of them; null: nobody asks
  Change change = {};

  // Set by who does it: how many are done, the first ones, and of those
  size_t done_count = 0;
  size_t absent_count = 0;
  size_t inserted_count = 0;
};

}  // namespace batch
