// For tests: a store in memory, whose keys and values are texts.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "kv/store.h"
#include "storage/backends/memory.h"

namespace kv {

// The whole value, be it large or not.
inline std::string whole_value(Session& session, Found& found) {
  std::string value(found.value_bytes(), '\0');
  auto read = session.read_value(found, 0, std::as_writable_bytes(std::span(value)));
  EXPECT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value_or(0), value.size());
  return value;
}

// A test's open store, and a session of it.
class StoreInUse {
 protected:
  void open(storage::Device& device, const StoreOptions& options) {
    auto opened = Store::open(device, options);
    ASSERT_TRUE(opened) << opened.error().message;
    store = *opened;
    ASSERT_TRUE(session.open(*store));
  }
  void close() {
    session.close();
    auto closed = store->close();
    store = nullptr;
    ASSERT_TRUE(closed) << closed.error().message;
  }

  Store* store = nullptr;
  Session session;
};

class StoreTest : public testing::Test, protected StoreInUse {
 protected:
  explicit StoreTest(uint64_t device_bytes = 128 << 20)
      : device(*storage::make_memory_device(device_bytes)) {}
  ~StoreTest() override {
    if (store != nullptr) close();
    device->close();
  }
  void make(const MakeOptions& options = {}) {
    auto made = Store::make(*device, options);
    ASSERT_TRUE(made) << made.error().message;
    open();
  }
  void open(const StoreOptions& options = {.durability = Durability::kNone, .stream_count = 2}) {
    StoreInUse::open(*device, options);
  }
  void reopen() {
    close();
    open();
  }
  Changed::Outcome put(const std::string& key, const std::string& value, const PutOptions& options = {}) {
    auto done = session.put(key, bytes_of(value), options);
    EXPECT_TRUE(done) << done.error().message;
    return done->outcome;
  }
  Changed::Outcome remove(const std::string& key) {
    auto done = session.remove(key);
    EXPECT_TRUE(done) << done.error().message;
    return done->outcome;
  }
  std::string get(const std::string& key) {
    auto found = session.get(key);
    EXPECT_TRUE(found) << found.error().message;
    return found->found() ? whole_value(session, *found) : "(none)";
  }

  using Outcome = Changed::Outcome;
  storage::Device* device;
};

}  // namespace kv
