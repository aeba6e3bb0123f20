// For tests: a store and a map that get the same changes, and snapshots of both.
#pragma once
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "kv/snapshot.h"
#include "kv/testing/test_store.h"

namespace kv {

using Model = std::map<std::string, std::string>;

// A snapshot, the entries that it must have, and those that it has returned so far.
struct Watched {
  Snapshot snapshot;
  Model expected, seen;
  bool has_ended = false;
};

class SnapshotTest : public StoreTest {
 protected:
  explicit SnapshotTest(uint64_t bytes = 25 << 20) : StoreTest(bytes) {}
  void SetUp() override {
    make({.segment_bytes = 1 << 20});
    ASSERT_TRUE(reader.open(*store));
  }
  void TearDown() override { reader.close(); }

  void change(uint64_t keys, uint64_t most_bytes) {
    const std::string key = "key" + std::to_string(random() % keys);
    if (random() % 5 == 0) {
      EXPECT_EQ(remove(key) == Outcome::kDone, model.erase(key) == 1);
      return;
    }
    std::string value = key + "=" + std::to_string(number++);
    value.resize(value.size() + random() % most_bytes, static_cast<char>('a' + random() % 26));
    ASSERT_EQ(put(key, value), Outcome::kDone);
    model[key] = value;
  }
  std::unique_ptr<Watched> watch() {
    auto watched = std::make_unique<Watched>();
    auto opened = watched->snapshot.open(reader);
    EXPECT_TRUE(opened) << opened.error().message;
    watched->expected = model;
    return watched;
  }
  // Takes the next entry. False: the snapshot has ended, or was cancelled.
  bool step(Watched& watched) {
    Snapshot::Entry entry;
    auto next = watched.snapshot.next(entry);
    if (!next) {
      EXPECT_EQ(next.error().number, ECANCELED) << next.error().message;
      return false;
    }
    watched.has_ended = !*next;
    if (!*next) return false;
    std::string value(entry.value_bytes, '\0');
    auto read = watched.snapshot.read_value(0, std::as_writable_bytes(std::span(value)));
    if (!read) EXPECT_EQ(read.error().number, ECANCELED) << read.error().message;
    if (!read) return false;
    EXPECT_EQ(*read, value.size());
    if (!entry.is_large) EXPECT_TRUE(text_of(entry.value) == value);
    EXPECT_TRUE(watched.seen.emplace(entry.key, std::move(value)).second)
        << entry.key << " for the second time";
    return true;
  }
  static void expect_whole(const Watched& watched) {
    EXPECT_EQ(watched.seen.size(), watched.expected.size());
    for (const auto& [key, value] : watched.expected) {
      const auto at = watched.seen.find(key);
      ASSERT_TRUE(at != watched.seen.end()) << key;
      ASSERT_TRUE(at->second == value)
          << key << " is " << at->second.substr(0, 20) << ", not " << value.substr(0, 20);
    }
  }
  uint64_t kept() { return store->counts().log.kept_segments; }

  Session reader;
  Model model;
  std::mt19937_64 random{1};
  uint64_t number = 0;
};

}  // namespace kv
