// For tests: a device in memory that loses power. What was written since the last flush is on its medium afterwards, or is not,
// sector by sector. What is discarded is gone at once and for good, without a flush, or it is still there, sector by sector. A flush that fails
// leaves it as a file system does: what was not on the medium may never be, is read as if it were, and is nothing to the next flush.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <vector>

#include "base/text.h"
#include "storage/device.h"

namespace storage {

class CutDevice final : public Device {
 public:
  static constexpr size_t kSector = 512;

  // Its content is `medium`. Power goes off at the write or flush number `ends_at`; later calls fail.
  CutDevice(std::vector<std::byte> medium, uint64_t ends_at)
      : ends_at_(ends_at), durable_(std::move(medium)), seen_(durable_) {
    capacity_bytes_ = durable_.size();
    counted_ = false;
    discards_ = true;
    base::TextRef(name_, sizeof name_) << "cut";
  }

  bool is_off() {
    std::lock_guard scope(lock_);
    return is_off_;
  }
  uint64_t unflushed_sectors() {
    std::lock_guard scope(lock_);
    return unflushed_.size();
  }
  // Reads of any of these bytes fail, `most` times; 0: of none.
  void fail_reads(uint64_t offset, uint64_t bytes, uint64_t most = ~uint64_t{0}) {
    std::lock_guard scope(lock_);
    unreadable_ = {.begin = offset, .end = offset + bytes, .most = most};
  }
  // Writes, in the same way.
  void fail_writes(uint64_t offset, uint64_t bytes) {
    std::lock_guard scope(lock_);
    unwritable_ = {.begin = offset, .end = offset + bytes};
  }
  // Writes that have failed so, since fail_writes().
  uint64_t refused_writes() {
    std::lock_guard scope(lock_);
    return unwritable_.count;
  }
  // The flush after so many others fails; and has it?
  void fail_flush(uint64_t after) {
    std::lock_guard scope(lock_);
    flushes_before_failure_ = after;
    fails_flush_ = true;
  }
  bool has_failed_flush() {
    std::lock_guard scope(lock_);
    return has_failed_flush_;
  }
  // When the last flush began that was completed; steady_clock's, 0: none.
  uint64_t flushed_ns() {
    std::lock_guard scope(lock_);
    return flushed_ns_;
  }
  // That are gone.
  uint64_t discarded_sectors() {
    std::lock_guard scope(lock_);
    return discarded_sectors_;
  }
  // Writes and flushes so far.
  uint64_t count() {
    std::lock_guard scope(lock_);
    return count_;
  }
  // The process was killed, not the device: what it has in its cache is there, and may be lost later.
  void start_again(uint64_t ends_at) {
    std::lock_guard scope(lock_);
    is_off_ = false;
    count_ = 0;
    ends_at_ = ends_at;
  }
  // What is on the medium after the power has gone off: each sector that was not flushed with a chance of `kept_percent`, and if it
  // was written several times, as it was after any of them.
  std::vector<std::byte> medium(uint64_t seed, unsigned kept_percent) {
    std::lock_guard scope(lock_);
    std::mt19937_64 random(seed);
    std::vector<std::byte> medium = durable_;
    for (const Sector& sector : unflushed_)
      if (random() % 100 < kept_percent) memcpy(&medium[sector.offset], sector.bytes, kSector);
    return medium;
  }

 private:
  // A place that fails.
  struct Bad {
    uint64_t begin = 0, end = 0;
    uint64_t most = ~uint64_t{0};
    uint64_t count = 0;  // how often it has

    bool fails(const Io& io) {
      const bool is_here = io.offset_bytes < end && io.offset_bytes + io.length_bytes > begin;
      return is_here && count < most && ++count != 0;
    }
  };

  struct Sector {
    uint64_t offset;
    std::byte bytes[kSector];
  };

  class CutQueue final : public Queue {
   public:
    CutQueue(CutDevice& device, size_t depth) : Queue(device, depth), cut_(device) {}

   private:
    void do_start(Io& io) override {
      io.error = cut_.perform(io) ? 0 : EIO;
      if (io.error == 0) io.transferred_bytes = io.length_bytes;
      complete(io);
    }
    void do_poll(bool) override {}
    void do_close() override { delete this; }

    CutDevice& cut_;
  };

  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse&) override {
    return new CutQueue(*this, depth);
  }
  void do_close() override { delete this; }

  bool perform(const Io& io) {
    std::lock_guard scope(lock_);
    const auto begin_ns = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    if (is_off_) return false;
    if (io.operation == Operation::kRead && unreadable_.fails(io)) return false;
    if (io.operation == Operation::kWrite && unwritable_.fails(io)) return false;
    if (io.operation == Operation::kDiscard) {
      discard(io.offset_bytes, io.length_bytes);
      return true;
    }
    if (io.operation != Operation::kRead) is_off_ = ++count_ == ends_at_;
    uint64_t at = io.offset_bytes;
    for (uint32_t i = 0; i < io.segment_count; ++i) {
      const iovec& segment = io.segments[i];
      auto* const memory = static_cast<std::byte*>(segment.iov_base);
      if (io.operation == Operation::kRead) {
        memcpy(memory, &seen_[at], segment.iov_len);
      } else {
        memcpy(&seen_[at], memory, segment.iov_len);
        for (size_t done = 0; done < segment.iov_len; done += kSector) {
          unflushed_.push_back({.offset = at + done, .bytes = {}});
          memcpy(unflushed_.back().bytes, memory + done, kSector);
        }
      }
      at += segment.iov_len;
    }
    if (io.operation == Operation::kFlush && !is_off_ && fails_flush_ && flushes_before_failure_-- == 0) {
      fails_flush_ = false;
      has_failed_flush_ = true;
      for (const Sector& sector : unflushed_)
        if (random_() % 4 == 0) memcpy(&durable_[sector.offset], sector.bytes, kSector);
      unflushed_.clear();
      return false;
    }
    if (io.operation == Operation::kFlush && !is_off_) {
      for (const Sector& sector : unflushed_) memcpy(&durable_[sector.offset], sector.bytes, kSector);
      unflushed_.clear();
      // Whoever could have written meanwhile waits for the lock.
      flushed_ns_ = begin_ns;
    }
    return !is_off_;
  }

  // Under the lock.
  void discard(uint64_t begin, uint64_t bytes) {
    std::vector<bool> is_gone(bytes / kSector);
    for (size_t i = 0; i < is_gone.size(); ++i) {
      if (random_() % 2 == 0) continue;
      is_gone[i] = true;
      memset(&durable_[begin + i * kSector], 0, kSector);
      memset(&seen_[begin + i * kSector], 0, kSector);
    }
    std::erase_if(unflushed_, [&](const Sector& sector) {
      return sector.offset >= begin && sector.offset < begin + bytes &&
             is_gone[(sector.offset - begin) / kSector];
    });
    discarded_sectors_ += std::ranges::count(is_gone, true);
  }

  uint64_t ends_at_;
  std::mutex lock_;
  uint64_t count_ = 0;
  bool is_off_ = false;
  bool fails_flush_ = false, has_failed_flush_ = false;
  uint64_t flushes_before_failure_ = 0;
  uint64_t flushed_ns_ = 0;
  Bad unreadable_, unwritable_;
  std::vector<std::byte> durable_;
  std::vector<std::byte> seen_;  // durable_ with all that was not flushed
  std::vector<Sector> unflushed_;
  std::mt19937_64 random_{1};
  uint64_t discarded_sectors_ = 0;
};

}  // namespace storage
