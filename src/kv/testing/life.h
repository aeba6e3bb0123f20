// For tests: the parts of a store, driven step by step by one thread from a start to a sudden end, on a device in memory whose failures the
// test chooses.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kv/collection/collector.h"
#include "kv/index/entry.h"
#include "kv/testing/medium_device.h"
#include "kv/testing/test_identity.h"

namespace kv {

// A device in memory that calls the test's functions at chosen requests, and fails requests that the test chooses.
class CallingDevice final : public MediumDevice {
 public:
  using MediumDevice::MediumDevice;
  // Calls once, before the next read of the byte at `offset`.
  void call_at_read(uint64_t offset, std::function<void()> call) {
    offset_ = offset;
    call_ = std::move(call);
  }
  // Calls before each flush.
  void call_at_flush(std::function<void()> call) { at_flush_ = std::move(call); }
  // The next such operation ends with EIO, although it is done. Nothing: none fails.
  void fail_next(std::optional<storage::Operation> operation) { failing_ = operation; }
  // Writes that begin at these offsets are not done, and end with EIO.
  void refuse_writes(std::vector<uint64_t> offsets) { refused_ = std::move(offsets); }
  // Reads of the byte at `in_segment` of any segment end with EIO. Null: none do.
  void fail_reads(const Geometry* geometry, uint64_t in_segment = 0) {
    geometry_ = geometry;
    in_segment_ = in_segment;
  }

 private:
  int before(const storage::Io& io) override {
    if (failing_ == io.operation) {
      failing_.reset();
      return EIO;
    }
    if (io.operation == storage::Operation::kFlush && at_flush_) at_flush_();
    const bool reads = io.operation == storage::Operation::kRead;
    if (reads && call_ && io.offset_bytes <= offset_ && offset_ < io.offset_bytes + io.length_bytes)
      std::exchange(call_, nullptr)();
    return 0;
  }

  bool takes(const storage::Io& io) override {
    if (io.operation == storage::Operation::kWrite)
      return std::ranges::find(refused_, io.offset_bytes) == refused_.end();
    if (io.operation != storage::Operation::kRead || geometry_ == nullptr) return true;
    const uint64_t begin = io.offset_bytes - kSegmentsOffset, end = begin + io.length_bytes;
    const uint64_t place = begin / geometry_->segment_bytes * geometry_->segment_bytes + in_segment_;
    return place < begin || place >= end;
  }

  uint64_t offset_ = 0;
  std::function<void()> call_, at_flush_;
  std::optional<storage::Operation> failing_;
  std::vector<uint64_t> refused_;
  const Geometry* geometry_ = nullptr;
  uint64_t in_segment_ = 0;
};

inline constexpr uint32_t kSegments = 16;

inline std::vector<std::byte> empty_medium(const Identity& identity) {
  std::vector<std::byte> medium(identity.geometry.capacity_bytes);
  for (uint32_t i = 0; i < kSegments; ++i) free_segment(identity, i, 1, medium);
  return medium;
}

// The parts of a store: the constructor starts them on a medium, and the destructor ends them as a crash does, without a checkpoint.
struct Life {
  explicit Life(std::vector<std::byte> medium, const Identity& of = test_identity(kSegments))
      : identity(of), device(new CallingDevice(std::move(medium))) {
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
                                .snapshots = &snapshots,
                                .lifetimes = &lifetimes},
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
  // Seals the segments that were written, and opens others.
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
    alignas(4096) std::byte memory[4096] = {};
    const std::span record = std::span(memory).first(identity.geometry.grain_bytes);
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
  // Removes the key, whose record is at `address`. Returns the tombstone's extent.
  Extent remove(const std::string& key, uint64_t address) {
    const Extent extent = write(key, RecordKind::kTombstone);
    EXPECT_TRUE(index->remove(hash_key(identity.secret, key).low, address));
    log.release(address, size_code::of(1));
    log.finish(extent, true);
    return extent;
  }
  Segment::State state_of(const Extent& extent) { return log.segment(extent.segment).state.load(); }
  // Empties one victim. Returns 0 or an errno value.
  int empty_one() {
    bool did = false;
    const Collector::AllWanted all(collector);
    return collector.step(did).error;
  }
  // Empties one victim, and gives it back.
  void collect() {
    bool did = false;
    ASSERT_EQ(empty_one(), 0);
    ASSERT_EQ(collector.step(did).error, 0);
    ASSERT_EQ(log.counts().emptied_segments, 0u);
  }
  // Would the key be there if the process were killed now?
  bool is_there_again(const std::string& key) {
    const Life next(device->medium(), identity);
    return next.index->find(hash_key(identity.secret, key).low).found;
  }

  const Identity identity;
  CallingDevice* device;
  Log log;
  Index* index = nullptr;
  Readers readers, changes;
  LargeValues large_values;
  Snapshots snapshots;
  Lifetimes lifetimes{kMachineClock};
  Channel channel;
  Collector collector;
};

}  // namespace kv
