// What has been read from and written to the device, by purpose.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/single_writer.h"
#include "storage/device.h"

namespace kv {

enum class IoFor : uint8_t {
  kGets,        // and reading large values, by snapshots too
  kChanges,     // what puts and removes read, write and flush
  kSnapshots,   // the records that snapshots visit
  kCollection,  // victims, copies, and giving segments back
  kCheckpoints,
  kKeeper,  // headers and summaries of segments, and the flushes of batches
};
inline constexpr const char* kIoForNames[] = {"gets",       "changes",     "snapshots",
                                              "collection", "checkpoints", "keeper"};
inline constexpr size_t kIoForCount = std::size(kIoForNames);

// I/O that has ended without an error. Discards do not count.
struct IoCounts {
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  uint64_t writes = 0;
  uint64_t written_bytes = 0;
  uint64_t flushes = 0;

  void add(const IoCounts& other) {
    reads += other.reads;
    read_bytes += other.read_bytes;
    writes += other.writes;
    written_bytes += other.written_bytes;
    flushes += other.flushes;
  }
};

// Thread contract: one thread at a time counts; any may read meanwhile. Relaxed, since counts order nothing.
class IoCounter {
 public:
  // REQUIRES: the Io has ended.
  void count(const storage::Io& io) {
    if (io.error != 0) return;
    switch (io.operation) {
      case storage::Operation::kRead:
        base::increase(reads_, uint64_t{1});
        base::increase(read_bytes_, uint64_t{io.transferred_bytes});
        break;
      case storage::Operation::kWrite:
        base::increase(writes_, uint64_t{1});
        base::increase(written_bytes_, uint64_t{io.transferred_bytes});
        break;
      case storage::Operation::kFlush: base::increase(flushes_, uint64_t{1}); break;
      case storage::Operation::kDiscard: break;
    }
  }
  // REQUIRES: nobody reads meanwhile.
  void reset() {
    for (auto* count : {&reads_, &read_bytes_, &writes_, &written_bytes_, &flushes_})
      count->store(0, std::memory_order_relaxed);
  }
  IoCounts counts() const {
    const auto get = [](const std::atomic<uint64_t>& count) { return count.load(std::memory_order_relaxed); };
    return {get(reads_), get(read_bytes_), get(writes_), get(written_bytes_), get(flushes_)};
  }

 private:
  std::atomic<uint64_t> reads_{0}, read_bytes_{0}, writes_{0}, written_bytes_{0}, flushes_{0};
};

}  // namespace kv
