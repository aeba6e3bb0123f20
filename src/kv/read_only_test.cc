// Stores that are open for reading only: everything is there, as after any start, and nothing is written.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "kv/snapshot.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_cut_device.h"
#include "storage/testing/test_fail_device.h"

namespace kv {
namespace {

constexpr uint64_t kBytes = 16 << 20;

// The whole medium, read to memory that the device accepts.
std::string content_of(storage::Device& device) {
  storage::BufferPool pool;
  Channel channel;
  EXPECT_TRUE(channel.open_for_threads(device));
  const std::span memory = pool.reserve(kBytes);
  EXPECT_EQ(channel.read(0, memory), 0);
  channel.close();
  return std::string(text_of(memory));
}

void write_content(storage::Device& device, Bytes content) {
  storage::BufferPool pool;
  Channel channel;
  ASSERT_TRUE(channel.open_for_threads(device));
  const std::span memory = pool.reserve(kBytes);
  std::ranges::copy(content, memory.begin());
  ASSERT_EQ(channel.write(0, memory), 0);
  channel.close();
}

// A store that has been written to, open for reading only; with `is_cut`, its process had ended in the middle. Writes to the device fail.
class ReadOnlyTest : public testing::TestWithParam<bool> {
 protected:
  ReadOnlyTest() : device(new storage::FailDevice(*storage::make_memory_device(kBytes))) {}
  ~ReadOnlyTest() override {
    device->fail(storage::FailDevice::Failing::kNothing, 0);
    device->close();
  }
  void SetUp() override {
    auto* const first = new storage::CutDevice(std::vector<std::byte>(kBytes), ~uint64_t{0});
    ASSERT_TRUE(Store::make(*first, {.segment_bytes = 1 << 20}));
    store = *Store::open(*first, {.durability = Durability::kNone, .stream_count = 1});
    ASSERT_TRUE(session.open(*store));
    for (int i = 0; i < 700; ++i)
      put("key" + std::to_string(i % 500), std::string(2000, static_cast<char>('a' + i % 26)));
    put("large", std::string(1'000'000, 'l'));
    ASSERT_TRUE(session.remove("key7"));
    expected.erase("key7");
    std::vector<std::byte> content = first->medium(1, 100);
    session.close();
    ASSERT_TRUE(store->close());
    if (!GetParam()) content = first->medium(1, 100);
    first->close();
    write_content(*device, content);
    before = content_of(*device);
    device->fail(storage::FailDevice::Failing::kWrites, EROFS);
    open();
  }
  void TearDown() override {
    session.close();
    const auto closed = store->close();
    EXPECT_TRUE(closed) << closed.error().message;
    EXPECT_FALSE(device->has_failed()) << "nobody has tried to write";
    EXPECT_TRUE(content_of(*device) == before);
  }
  void open() {
    auto opened = Store::open(*device, {.read_only = true});
    ASSERT_TRUE(opened) << opened.error().message;
    store = *opened;
    ASSERT_TRUE(session.open(*store));
  }
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(session.put(key, bytes_of(value)));
    expected[key] = value;
  }

  storage::FailDevice* device;
  Store* store = nullptr;
  Session session;
  std::map<std::string, std::string> expected;
  std::string before;
};

TEST_P(ReadOnlyTest, AllIsThere) {
  EXPECT_EQ(store->recovery().scanned_segments != 0, GetParam());
  for (const auto& [key, value] : expected) {
    auto found = session.get(key);
    ASSERT_TRUE(found && found->found()) << key;
    ASSERT_EQ(whole_value(session, *found), value) << key;
  }
  EXPECT_FALSE(session.get("key7")->found());
  Snapshot snapshot;
  ASSERT_TRUE(snapshot.open(session));
  size_t count = 0;
  for (Snapshot::Entry entry; *snapshot.next(entry);) ++count;
  snapshot.close();
  EXPECT_EQ(count, expected.size());
  store->verify();
  EXPECT_EQ(store->counts().use.latency(CallKind::kGet).count, expected.size() + 1);
}

TEST_P(ReadOnlyTest, NothingIsChanged) {
  const auto refused = [](const auto& done) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().number, EROFS);
    EXPECT_STREQ(done.error().message, "store: failing is open for reading only; open it for writing");
  };
  refused(session.put("key", bytes_of("value")));
  refused(session.put("key1", bytes_of("value"), {.when = When::kIfPresent}));
  refused(session.put("other", bytes_of(std::string(1'000'000, 'o'))));
  refused(session.remove("key1"));
  refused(session.put("key1", bytes_of("value"), {.when = When::kIfAbsent}));
  refused(session.remove("none"));
  ValueWriter writer;
  refused(writer.open(session, "key1"));
  store->compact();
  EXPECT_EQ(text_of(session.get("key1")->value()), expected["key1"]);
}

INSTANTIATE_TEST_SUITE_P(Closed, ReadOnlyTest, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Killed, ReadOnlyTest, testing::Values(true));

}  // namespace
}  // namespace kv
