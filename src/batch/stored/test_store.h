// For tests: jobs, and their effect on a model and on a stored table.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>

#include "batch/stored/test_device_store.h"
#include "storage/backends/memory.h"
#include "storage/testing/test_fail_device.h"

namespace batch {

inline uint64_t number_of(const std::byte* value, size_t bytes = 8) {
  uint64_t number = 0;
  memcpy(&number, value, bytes);
  return number;
}

// Values are numbers of 8 bytes: one function adds what is given, another keeps the larger one.
inline void add_test_functions(StoredTable& table) {
  table.add_function({.function = [](void*, void* value, const void* given) {
    uint64_t sum = 0, more = 0;
    memcpy(&sum, value, 8);
    memcpy(&more, given, 8);
    sum += more;
    memcpy(value, &sum, 8);
  }});
  table.add_function({.function = [](void*, void* value, const void* given) {
    uint64_t most = 0, other = 0;
    memcpy(&most, value, 8);
    memcpy(&other, given, 8);
    most = std::max(most, other);
    memcpy(value, &most, 8);
  }});
}

// Small slots, so that a few thousand records are many regions.
inline StoredOptions small_options(uint32_t key_bytes = 8) {
  return {.shape = {.key_bytes = key_bytes, .value_bytes = 8},
          .records = 1000,
          .staging_bytes = 64 << 10,
          .makers = 1,
          .slot_pages = 2,
          .log_buffer_bytes = 8 << 10};
}

// What a table should contain.
using Model = std::map<std::string, uint64_t>;

// Some keys with the same action.
struct Batch {
  Code code;
  bool wants_outcomes = false;
  std::vector<std::string> keys = {};
  std::vector<uint64_t> given = {};
  // Results.
  std::vector<Outcome> outcomes = {};
  std::vector<uint64_t> read = {};
};

// Does the batch in the model, and sets its outcomes and the values that reads find.
inline void make_in(Model& model, Batch& batch) {
  batch.outcomes.clear();
  batch.read.clear();
  for (size_t i = 0; i < batch.keys.size(); ++i) {
    const auto found = model.find(batch.keys[i]);
    const bool was_there = found != model.end();
    Outcome outcome = was_there ? Outcome::kDone : Outcome::kAbsent;
    batch.read.push_back(was_there ? found->second : 0);
    switch (batch.code.action) {
      case Action::kRead: break;
      case Action::kRemove:
        if (was_there) model.erase(found);
        break;
      case Action::kUpdate:
      case Action::kUpsert:
      case Action::kChange:
      case Action::kMerge:
        if (!was_there && may_insert(batch.code.action)) {
          model[batch.keys[i]] = batch.given[i];
          outcome = Outcome::kInserted;
        } else if (was_there && !calls_function(batch.code.action)) {
          found->second = batch.given[i];
        } else if (was_there) {
          found->second = batch.code.function == 0 ? found->second + batch.given[i]
                                                   : std::max(found->second, batch.given[i]);
        }
    }
    batch.outcomes.push_back(outcome);
  }
}

// Some random keys, and what to do with them. `key(random)` makes a key.
template <class MakeKey>
Batch random_batch(std::mt19937_64& random, size_t most, const MakeKey& key) {
  constexpr Action kActions[] = {Action::kRead,   Action::kUpdate, Action::kChange, Action::kUpsert,
                                 Action::kUpsert, Action::kMerge,  Action::kMerge,  Action::kRemove};
  Batch batch = {.code = {.action = kActions[random() % std::size(kActions)]},
                 .wants_outcomes = random() % 4 == 0};
  if (calls_function(batch.code.action)) batch.code.function = static_cast<uint8_t>(random() % 2);
  const size_t count = 1 + random() % most;
  for (size_t i = 0; i < count; ++i) {
    batch.keys.push_back(key(random));
    batch.given.push_back(random() % 1000);
  }
  return batch;
}

// Returns the error's message, or "".
inline std::string run(StoredSession& session, Batch& batch) {
  std::string keys;
  for (const std::string& key : batch.keys) keys += key;
  batch.read.assign(batch.keys.size(), 0);
  batch.outcomes.assign(batch.keys.size(), Outcome::kDone);
  const bool reads = batch.code.action == Action::kRead;
  Job job{.code = batch.code,
          .count = batch.keys.size(),
          .keys = reinterpret_cast<const std::byte*>(keys.data()),
          .given = takes_values(batch.code.action) ? reinterpret_cast<const std::byte*>(batch.given.data())
                                                   : nullptr,
          .read = reads ? reinterpret_cast<std::byte*>(batch.read.data()) : nullptr,
          .outcomes = reads || batch.wants_outcomes ? batch.outcomes.data() : nullptr};
  auto ran = session.run(job);
  return ran ? "" : ran.error().message;
}

inline Model content_of(StoredSession& session, uint32_t key_bytes) {
  Model found;
  auto visited = session.for_each([&](const std::byte* key, const std::byte* value) {
    const auto [at, is_new] =
        found.emplace(std::string(reinterpret_cast<const char*>(key), key_bytes), number_of(value));
    EXPECT_TRUE(is_new);
    return true;
  });
  EXPECT_TRUE(visited) << visited.error().message;
  return found;
}

}  // namespace batch
