// What tests of tables share: keys with values for a job, and tables of numbers.
#pragma once
#include <string.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "batch/table.h"

namespace batch {

class Keys {
 public:
  explicit Keys(const Shape& shape) : shape_(shape) {}
  void add(const std::string& key, const std::string& value = {}) {
    keys_ += key;
    given_ += value.empty() ? std::string(shape_.value_bytes, 0) : value;
    ++count_;
  }
  Job job(Action action) {
    read_.assign(given_.size(), '?');
    outcomes_.assign(count_, Outcome::kDone);
    return {.code = {action},
            .count = count_,
            .keys = reinterpret_cast<const std::byte*>(keys_.data()),
            .given = reinterpret_cast<const std::byte*>(given_.data()),
            .read = reinterpret_cast<std::byte*>(read_.data()),
            .outcomes = outcomes_.data()};
  }
  std::string read(size_t i) const { return read_.substr(i * shape_.value_bytes, shape_.value_bytes); }
  Outcome outcome(size_t i) const { return outcomes_[i]; }

 private:
  const Shape shape_;
  std::string keys_, given_, read_;
  std::vector<Outcome> outcomes_;
  size_t count_ = 0;
};

inline std::string bytes_of(uint64_t number, uint32_t bytes) {
  std::string text(bytes, 0);
  memcpy(text.data(), &number, std::min<size_t>(bytes, sizeof number));
  // The bytes after the number differ between keys, too.
  for (uint32_t i = sizeof number; i < bytes; ++i) text[i] = static_cast<char>(number >> (i - sizeof number));
  return text;
}

// The first byte of the value becomes the sum of both first bytes.
inline void add_first(void* context, void* value, const void* given) {
  *static_cast<uint8_t*>(value) =
      static_cast<uint8_t>(*static_cast<uint8_t*>(value) + *static_cast<const uint8_t*>(given));
  static_cast<std::atomic<size_t>*>(context)->fetch_add(
      1, std::memory_order_relaxed);  // threads of the table call it too
}

// A table whose keys are all of these, in buckets of 8.
inline Options numbers(uint64_t key_space, Engine engine = Engine::kPrefetch) {
  return {.shape = {.key_bytes = 8, .value_bytes = 8, .bucket_bytes = 128},
          .records = key_space,
          .key_space = key_space,
          .engine = engine};
}

}  // namespace batch
