// For tests: items over a store in memory, whose clock stands until it is moved.
#pragma once
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

#include "kv/store.h"
#include "server/items/items.h"
#include "storage/backends/memory.h"

namespace server {

using kv::bytes_of;

class ItemsTest : public testing::Test {
 protected:
  explicit ItemsTest(storage::Device* own_device = *storage::make_memory_device(128 << 20))
      : device(own_device) {
    clock.stop();
  }
  ~ItemsTest() override {
    if (store != nullptr) close();
    device->close();
  }
  void SetUp() override {
    auto made = kv::Store::make(*device, {.segment_bytes = 1 << 20});
    ASSERT_TRUE(made) << made.error().message;
    open();
  }
  void open() {
    auto opened =
        kv::Store::open(*device, {.durability = kv::Durability::kNone, .stream_count = 2, .clock = &clock});
    ASSERT_TRUE(opened) << opened.error().message;
    store = *opened;
    auto shared_opened = shared.open(*store, options);
    ASSERT_TRUE(shared_opened) << shared_opened.error().message;
    ASSERT_TRUE(items.open(shared));
  }
  void close() {
    items.close();
    shared.close();
    auto closed = store->close();
    store = nullptr;
    ASSERT_TRUE(closed) << closed.error().message;
  }
  void reopen() {
    close();
    open();
  }

  // The result of a call that must not fail.
  template <class Result>
  static Result of(base::Expected<Result> result) {
    EXPECT_TRUE(result) << result.error().message;
    return result ? std::move(*result) : Result();
  }
  static std::string whole_value(Items& reader, Item& item) {
    std::string value(item.value_bytes(), '\0');
    auto read = reader.read(item, 0, std::as_writable_bytes(std::span(value)));
    EXPECT_TRUE(read) << read.error().message;
    EXPECT_EQ(read.value_or(0), value.size());
    return value;
  }
  std::string get(const std::string& key) {
    Item item = of(items.get(key));
    return item.found() ? whole_value(items, item) : "(none)";
  }
  // Returns how many of the keys now have their result.
  size_t get_some(std::span<const std::string_view> keys, std::span<base::Expected<Item>> results) {
    size_t count = 0;
    EXPECT_EQ(items.get_some(keys, [&](base::Expected<Item>& item) { results[count++] = std::move(item); }),
              count);
    return count;
  }
  void get_all(std::span<const std::string_view> keys, std::span<base::Expected<Item>> results) {
    for (size_t at = 0; at < keys.size();) at += get_some(keys.subspan(at), results.subspan(at));
  }
  Outcome set(const std::string& key, const std::string& value, const SetOptions& set_options = {}) {
    return of(items.set(key, bytes_of(value), set_options)).outcome;
  }
  uint64_t cas_of(const std::string& key) { return of(items.get(key)).cas(); }
  uint64_t now_ms() const { return clock.now_ms(); }

  kv::Clock clock;
  storage::Device* device;
  ItemsOptions options;
  kv::Store* store = nullptr;
  SharedItems shared;
  Items items;
};

}  // namespace server
