// Changes a table in a file until it is killed, or its input ends. What a step does follows from its number, and the number of the last step is in the table
// itself: what is found at a start must be what that many steps make, no fewer than were synced.
//
//   table_changer FILE LOG SYNCED      first prints "STEPS found", then "STEPS" each time that so many are synced
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "../fail.h"
#include "spillway/batch.hpp"

namespace {

using Table = spillway::BatchTable<uint64_t, uint64_t>;
constexpr uint64_t kKeys = 50'000, kStepKeys = 64, kProgress = ~uint64_t{0};

uint64_t mix(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

// A step adds its number to some keys' values, removes another key, and then stores how many steps there are.
struct Step {
  static constexpr uint64_t kChanges = kStepKeys + 2;

  explicit Step(uint64_t step) : number(step) {
    for (uint64_t i = 0; i < kStepKeys; ++i) {
      keys[i] = mix(number * kStepKeys + i) % kKeys;
      given[i] = number;
    }
    removed = mix(number) % kKeys;
  }
  // Makes one of its changes in a model.
  void make(uint64_t change, std::map<uint64_t, uint64_t>& model) const {
    if (change < kStepKeys) {
      const auto [at, is_new] = model.emplace(keys[change], given[change]);
      if (!is_new) at->second += given[change];
    } else if (change == kStepKeys) {
      model.erase(removed);
    } else {
      model[kProgress] = number;
    }
  }
  // Makes its changes in the table, from change `first` on.
  void make(Table::Session& session, Table::Function add, uint64_t first = 0) const {
    if (first < kStepKeys) session.merge(keys + first, add, given + first, kStepKeys - first);
    if (first <= kStepKeys) session.remove(removed);
    session.upsert(kProgress, number);
  }

  const uint64_t number;
  uint64_t keys[kStepKeys], given[kStepKeys], removed;
};

// Checks that the table is what `steps` steps make, and perhaps some changes of the next one. Returns how many of these.
uint64_t check(Table::Session& session, uint64_t steps) {
  std::map<uint64_t, uint64_t> expected, found;
  for (uint64_t number = 1; number <= steps; ++number)
    for (uint64_t change = 0; change < Step::kChanges; ++change) Step(number).make(change, expected);
  session.for_each([&](uint64_t key, uint64_t value) {
    if (!found.emplace(key, value).second) fail("the key %lu is there twice", key);
    return true;
  });
  const Step next(steps + 1);
  for (uint64_t change = 0; change + 1 < Step::kChanges; ++change) {
    if (found == expected) return change;
    next.make(change, expected);
  }
  if (found != expected) fail("what is there is not what %lu steps have made", steps);
  return Step::kChanges - 1;
}

bool is_to_end() {
  pollfd input = {.fd = 0, .events = POLLIN, .revents = 0};
  return poll(&input, 1, 0) > 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) fail("give a file, its log, and how many steps are synced");
  const uint64_t synced = std::strtoull(words[3], nullptr, 10);
  try {
    Table table({.records = 4'000,
                 .staging_bytes = 256 << 10,
                 .file = words[1],
                 .file_bytes = 32 << 20,
                 .memory_bytes = 1 << 20,
                 .log = words[2],
                 .log_bytes = 6 << 20});
    const auto add = table.add_function([](uint64_t& value, uint64_t given) { value += given; });
    {
      auto session = table.session();
      uint64_t steps = session.read(kProgress).value_or(0);
      if (steps < synced) fail("%lu steps were synced, and %lu are there", synced, steps);
      const uint64_t begun = check(session, steps);
      std::printf("%lu found\n", steps);
      std::fflush(stdout);
      Step(++steps).make(session, add, begun);
      while (!is_to_end()) {
        Step(++steps).make(session, add);
        if (steps % 4000 != 0) continue;
        session.sync();
        std::printf("%lu\n", steps);
        std::fflush(stdout);
      }
    }
    table.close();
  } catch (const std::exception& error) {
    fail("%s", error.what());
  }
  return 0;
}
