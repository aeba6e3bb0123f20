// What the programs of `spillway bench kv` share: their words, keys, values and choices. run.h does the work.
//
//   PROGRAM PLACE fill|get|put|update|mixed|overwrite [NAME=VALUE]...
//
// | operation | is                                                                                                           |
// |-----------|--------------------------------------------------------------------------------------------------------------|
// | fill      | nothing: what `make` does is all                                                                             |
// | get       | one of KEYS keys, at random                                                                                  |
// | put       | a new key, numbered from KEYS on; numbers say nothing about where a key is                                   |
// | update    | a put of one of KEYS keys                                                                                    |
// | mixed     | 70 % get, else update                                                                                        |
// | overwrite | update, of a store that was filled to FILL of the keys that it took before it was full; KEYS is not given     |
//
// | name       | is                                                               | default    |
// |------------|------------------------------------------------------------------|------------|
// | make       | 1: a new store, and KEYS keys are put into it first              | 0          |
// | capacity   | bytes of a store that is made                                    | the place's |
// | grain      | of it                                                            | 4096       |
// | keys       | in the store before the operations begin                         | 0          |
// | value      | bytes of a value                                                 | 4024       |
// | depth      | operations at a time                                             | 1          |
// | by         | `tasks`, of workers, or `threads`, which block                   | threads    |
// | workers    | of tasks, which are dealt to them                                | 1          |
// | durability | `none`, `batch`, `sync`: of puts and updates, not of `make`      | none       |
// | seconds    | how long; 0: until `most`                                        | 1          |
// | most       | operations; 0: any number                                        | 0          |
// | theta      | 0: all keys alike; else Zipf's law with this exponent, below 1   | 0          |
// | fill       | of overwrite                                                     | 0.9        |
// | rounds     | of overwrite: so many times the capacity is written               | 10         |
//
// Prints one object of JSON (run.h). Wrong words: one line and status 2. What fails, and a value that is not its key's, or older than
// one that was acknowledged: one line and status 1.
//
// 1 a key has 8 to 32 bytes, all lengths alike often, and is a function of its number; no two are the same
// 2 a value begins with its key's number and a generation, and ends with a seal over both. All else of it is random, and the same in
//   all values of a task or thread: no device can compress it
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../random.h"
#include "../words.h"

namespace load {

struct Plan {
  std::string place;
  std::string operation;
  bool make = false;
  uint64_t capacity_bytes = 0;
  uint64_t grain_bytes = 4096;
  uint64_t keys = 0;
  uint64_t value_bytes = 4024;
  uint64_t depth = 1;
  std::string by = "threads";
  uint64_t workers = 1;
  std::string durability = "none";
  double seconds = 1;
  uint64_t most = 0;
  double theta = 0;
  double fill = 0.9;
  double rounds = 10;

  bool is(std::string_view name) const { return operation == name; }
};

inline constexpr uint64_t kMinKeyBytes = 8, kMaxKeyBytes = 32;
inline constexpr uint64_t kMinValueBytes = 24, kMaxValueBytes = 1 << 20;
inline constexpr uint64_t kMaxDepth = 4096, kMaxWorkers = 64, kMaxCount = uint64_t{1} << 40;
inline constexpr uint64_t kMixedGetPercent = 70;

class Key {
 public:
  explicit Key(uint64_t number) {
    uint64_t words[kMaxKeyBytes / 8];
    for (uint64_t i = 0; i < kMaxKeyBytes / 8; ++i) words[i] = mix(number + (i << 56));
    std::memcpy(bytes_, words, sizeof words);
    size_ = kMinKeyBytes + ((words[0] ^ words[1]) >> 32) % (kMaxKeyBytes - kMinKeyBytes + 1);
  }
  std::string_view view() const { return {bytes_, size_}; }

 private:
  char bytes_[kMaxKeyBytes];
  size_t size_;
};

// The values of one task or thread, one at a time.
class Value {
 public:
  Value(uint64_t bytes, uint64_t seed) : bytes_(bytes) {
    Random random(seed);
    for (char& byte : bytes_) byte = static_cast<char>(random.next());
  }
  std::string_view of(uint64_t number, uint64_t generation) {
    const uint64_t words[] = {number, generation, seal(number, generation)};
    std::memcpy(bytes_.data(), words, 16);
    std::memcpy(bytes_.data() + bytes_.size() - 8, words + 2, 8);
    return {bytes_.data(), bytes_.size()};
  }
  static bool is_of(uint64_t number, std::string_view value) {
    uint64_t words[2], end;
    if (value.size() < kMinValueBytes) return false;
    std::memcpy(words, value.data(), 16);
    std::memcpy(&end, value.data() + value.size() - 8, 8);
    return words[0] == number && end == seal(words[0], words[1]);
  }

 private:
  static uint64_t seal(uint64_t number, uint64_t generation) { return mix(number ^ mix(generation)); }

  std::vector<char> bytes_;
};

inline void set(Plan& plan, const std::string& name, const char* text) {
  if (name == "make")
    plan.make = count_of(name, text, 1) == 1;
  else if (name == "capacity")
    plan.capacity_bytes = count_of(name, text, kMaxCount);
  else if (name == "grain")
    plan.grain_bytes = count_of(name, text, 4096);
  else if (name == "keys")
    plan.keys = count_of(name, text, kMaxCount);
  else if (name == "value")
    plan.value_bytes = count_of(name, text, kMaxValueBytes);
  else if (name == "depth")
    plan.depth = count_of(name, text, kMaxDepth);
  else if (name == "by")
    plan.by = word_of(name, text, {"tasks", "threads"});
  else if (name == "workers")
    plan.workers = count_of(name, text, kMaxWorkers);
  else if (name == "durability")
    plan.durability = word_of(name, text, {"none", "batch", "sync"});
  else if (name == "seconds")
    plan.seconds = share_of(name, text, 3600);
  else if (name == "most")
    plan.most = count_of(name, text, kMaxCount);
  else if (name == "theta")
    plan.theta = share_of(name, text, 0.999);
  else if (name == "fill")
    plan.fill = share_of(name, text, 1);
  else if (name == "rounds")
    plan.rounds = share_of(name, text, 1000);
  else
    fail(2, "there is no setting '" + name + "'");
}

inline Plan parse(int count, char** words) {
  if (count < 3)
    fail(2, "usage: PLACE fill|get|put|update|mixed|overwrite [NAME=VALUE]... (bench/kv/load.h)");
  Plan plan;
  plan.place = words[1];
  plan.operation = word_of("the operation", words[2], {"fill", "get", "put", "update", "mixed", "overwrite"});
  for (int i = 3; i < count; ++i) {
    const char* const sign = std::strchr(words[i], '=');
    if (sign == nullptr) fail(2, std::string("a setting is NAME=VALUE, not '") + words[i] + "'");
    set(plan, std::string(words[i], static_cast<size_t>(sign - words[i])), sign + 1);
  }
  if (plan.depth == 0) fail(2, "a depth of 0 does nothing");
  if (plan.workers == 0 || plan.workers > plan.depth || (plan.workers > 1 && plan.by != "tasks"))
    fail(2, "workers= is 1 or more, each with a task at least (by=tasks)");
  if (plan.value_bytes < kMinValueBytes)
    fail(2, "values have at least " + std::to_string(kMinValueBytes) + " bytes, which tell what they are");
  const bool needs_keys = plan.is("get") || plan.is("update") || plan.is("mixed") || plan.is("fill");
  if (needs_keys && plan.keys == 0) fail(2, plan.operation + " needs keys=N");
  if (plan.is("overwrite") && (plan.make || plan.keys != 0))
    fail(2, "overwrite makes a store, and finds out how many keys to put into it");
  if (plan.is("fill")) plan.make = true;
  if (!plan.is("overwrite") && plan.seconds == 0 && plan.most == 0 && !plan.is("fill"))
    fail(2, "give seconds or most");
  return plan;
}

}  // namespace load
