// A relocation that comes too late: its record is removed while the collector reads it. The copy is younger, by its segment's generation,
// than the tombstone's segment, and a start after a crash would believe it. One thread does all, the device calls it back.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kv/collection/collector.h"
#include "kv/index/entry.h"
#include "kv/testing/medium_device.h"
#include "kv/testing/test_identity.h"

namespace kv {
namespace {

// A device in memory that calls a function before it reads a byte, once, and fails when it is told to.
class CallingDevice final : public MediumDevice {
 public:
  using MediumDevice::MediumDevice;
  void call_at_read(uint64_t offset, std::function<void()> call) {
    offset_ = offset;
    call_ = std::move(call);
  }
  void fail_next(storage::Operation operation) { failing_ = operation; }

 private:
  int before(const storage::Io& io) override {
    if (failing_ == io.operation) {
      failing_.reset();
      return EIO;
    }
    const bool reads = io.operation == storage::Operation::kRead;
    if (reads && call_ && io.offset_bytes <= offset_ && offset_ < io.offset_bytes + io.length_bytes)
      std::exchange(call_, nullptr)();
    return 0;
  }

  uint64_t offset_ = 0;
  std::function<void()> call_;
  std::optional<storage::Operation> failing_;
};

constexpr uint32_t kSegments = 16;

std::vector<std::byte> empty_medium(const Identity& identity) {
  std::vector<std::byte> medium(identity.geometry.capacity_bytes);
  for (uint32_t i = 0; i < kSegments; ++i) free_segment(identity, i, 1, medium);
  return medium;
}

// What a store is made of, from its start to its sudden end.
struct Life {
  explicit Life(std::vector<std::byte> medium) : device(new CallingDevice(std::move(medium))) {
    EXPECT_TRUE(log.open(identity, 1));
    auto recovered = recover(*device, identity, log, index);
    EXPECT_TRUE(recovered);
    snapshots.open(log, large_values, identity.geometry);
    EXPECT_TRUE(channel.open_for_threads(*device));
    EXPECT_TRUE(collector.open({.device = device,
                                .identity = &identity,
                                .index = index,
                                .log = &log,
                                .readers = &readers,
                                .changes = &changes,
                                .large_values = &large_values,
                                .snapshots = &snapshots},
                               0, *recovered));
    keep();
  }
  ~Life() {
    collector.close();
    channel.close();
    index->close();
    log.close();
    device->close();
  }
  void keep() {
    for (bool did = true; did;) ASSERT_EQ(log.keep(channel, did), 0);
  }
  // What has been written is sealed, and there are segments for more.
  void seal() {
    ASSERT_EQ(log.seal_all(channel), 0);
    keep();
  }
  Extent write(const std::string& key, RecordKind kind) {
    const uint64_t sequence = with_kind(log.next_sequence(), kind);
    Log::Request request = {.grains = 1,
                            .entry = {.hash = hash_key(identity.secret, key), .sequence_and_kind = sequence}};
    Extent extent;
    EXPECT_EQ(log.allocate(request, extent), Log::Room::kDone);
    alignas(512) std::byte record[512] = {};
    write_record(identity.secret,
                 {.generation = extent.generation, .sequence_and_kind = sequence, .expiry_and_key = 0}, key,
                 0, record);
    EXPECT_EQ(channel.write(identity.geometry.offset_of(extent.address), record), 0);
    return extent;
  }
  Extent put(const std::string& key) {
    const Extent extent = write(key, RecordKind::kValue);
    EXPECT_EQ(index->insert(hash_key(identity.secret, key).low, extent.address, size_code::of(1), {}),
              Index::Inserted::kDone);
    log.finish(extent, true);
    return extent;
  }
  // Returns the tombstone.
  Extent remove(const std::string& key, uint64_t address) {
    const Extent extent = write(key, RecordKind::kTombstone);
    EXPECT_TRUE(index->remove(hash_key(identity.secret, key).low, address));
    log.release(address, size_code::of(1));
    log.finish(extent, true);
    return extent;
  }
  Segment::State state_of(const Extent& extent) { return log.segment(extent.segment).state.load(); }
  // One victim is emptied. Returns how that ended.
  int empty_one() {
    bool did = false;
    collector.wants_all(true);
    const int error = collector.step(did).error;
    collector.wants_all(false);
    return error;
  }
  // And then it is given back.
  void collect() {
    bool did = false;
    ASSERT_EQ(empty_one(), 0);
    ASSERT_EQ(collector.step(did).error, 0);
    ASSERT_EQ(log.counts().emptied_segments, 0u);
  }
  // Is the key there after a crash?
  bool is_there_again(const std::string& key) {
    const Life next(device->medium());
    return next.index->find(hash_key(identity.secret, key).low).found;
  }

  Identity identity = test_identity(kSegments);
  CallingDevice* device;
  Log log;
  Index* index = nullptr;
  Readers readers, changes;
  LargeValues large_values;
  Snapshots snapshots;
  Channel channel;
  Collector collector;
};

class CollectorLateTest : public testing::Test {
 protected:
  Life life{empty_medium(test_identity(kSegments))};

  // It is removed while the collector reads it, which then moves it. Returns the tombstone.
  Extent remove_while_moved(const std::string& key) {
    const Extent value = life.put(key);
    life.seal();
    Extent tombstone;
    life.device->call_at_read(life.identity.geometry.offset_of(value.address), [&] {
      tombstone = life.remove(key, value.address);
      life.seal();
    });
    life.collect();
    return tombstone;
  }
};

TEST_F(CollectorLateTest, ItsTombstoneStaysUntilTheCopysSegmentIsSealed) {
  const Extent tombstone = remove_while_moved("key");
  ASSERT_EQ(life.state_of(tombstone), Segment::State::kSealed) << "in the middle of that";
  ASSERT_EQ(life.collector.counts().moved_records, 1u);
  // Nothing that is older than the tombstone's segment has a lower generation any more.
  life.collect();
  EXPECT_LE(life.state_of(tombstone), Segment::State::kReady);
  EXPECT_EQ(life.collector.counts().ended_tombstones, 0u);
  EXPECT_FALSE(life.is_there_again("key"));
  // The copy is void for good, and nothing is to be hidden.
  life.seal();
  life.collect();
  EXPECT_EQ(life.collector.counts().ended_tombstones, 1u);
  EXPECT_EQ(life.log.counts().tombstone_bytes, 0u);
  EXPECT_FALSE(life.is_there_again("key"));
}

// The start that finds the copy's segment open seals it.
TEST_F(CollectorLateTest, TheCopyIsVoidAfterACrash) {
  remove_while_moved("key");
  Life next(life.device->medium());
  ASSERT_FALSE(next.is_there_again("key"));
  for (int i = 0; i < 4 && next.collector.counts().ended_tombstones == 0; ++i) next.collect();
  EXPECT_EQ(next.collector.counts().ended_tombstones, 1u);
  EXPECT_FALSE(next.is_there_again("key"));
}

// The copy may be on the medium all the same.
TEST_F(CollectorLateTest, AWriteOfCopiesThatFails) {
  const Extent value = life.put("key");
  life.seal();
  life.device->call_at_read(life.identity.geometry.offset_of(value.address), [&] {
    life.remove("key", value.address);
    life.seal();
    life.device->fail_next(storage::Operation::kWrite);
  });
  ASSERT_EQ(life.empty_one(), EIO);
  life.collect();
  life.collect();
  EXPECT_EQ(life.collector.counts().ended_tombstones, 0u);
  EXPECT_FALSE(life.is_there_again("key"));
}

// What was live in a victim may be on the medium nowhere else.
TEST_F(CollectorLateTest, NothingIsGivenBackAfterAFlushThatFailed) {
  life.put("key");
  life.seal();
  ASSERT_EQ(life.empty_one(), 0);
  ASSERT_EQ(life.log.counts().emptied_segments, 1u);
  life.device->fail_next(storage::Operation::kFlush);
  EXPECT_EQ(life.log.flush(life.channel), EIO);
  bool did = false;
  for (int i = 0; i < 3; ++i) {
    const Collector::Failure failure = life.collector.step(did);
    EXPECT_EQ(failure.error, EIO);
    EXPECT_TRUE(failure.is_of_flush);
  }
  EXPECT_EQ(life.log.counts().emptied_segments, 1u);
}

// For whatever reason.
TEST_F(CollectorLateTest, NothingIsGivenBackAfterAFailure) {
  life.put("key");
  life.seal();
  bool did = false;
  life.collector.wants_all(true);  // there would be more to do
  ASSERT_EQ(life.collector.step(did).error, 0);
  life.log.fail();
  EXPECT_EQ(life.collector.step(did).error, 0);
  EXPECT_FALSE(did);
  EXPECT_EQ(life.log.counts().emptied_segments, 1u);
}

}  // namespace
}  // namespace kv
