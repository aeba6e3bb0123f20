// TestDevice: a storage device for the cache's tests, as unhelpful as a real one may be.
//
//  1 a request finishes only in a poll of its queue, some polls later, in any order
//  2 bytes that were never written read as junk, and so do those that a failed or short read did not transfer;
//    a failed write may have written a part
//  3 two requests in flight that touch the same bytes, one of them writing, fail the test: the cache
//    promises at most one Io for a place, except for reads whose bytes it throws away
//  4 hooks see each request while it is in flight, on the polling thread: there tests do what
//    other threads might do meanwhile
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/mix.h"
#include "storage/device.h"

namespace cache {

using storage::Io;
using storage::Operation;

// A small random generator; the same seed gives the same numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    const uint64_t drawn = base::mix(state_);
    state_ += base::kMixStep;
    return drawn;
  }
  uint64_t below(uint64_t limit) { return next() % limit; }
  bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

class TestDevice final : public storage::Device {
 public:
  static constexpr unsigned char kJunk = 0xee;

  explicit TestDevice(uint64_t capacity_bytes, uint64_t seed = 1)
      : seed_(seed), bytes_(capacity_bytes, kJunk) {
    capacity_bytes_ = capacity_bytes;
    block_bytes_ = base::kOsPageBytes;
    base::TextRef(name_, sizeof name_) << "test device";
  }
  ~TestDevice() { close(); }

  // How many in a million operations fail with `error`, or are short.
  std::atomic<uint32_t> read_errors_per_million{0};
  std::atomic<uint32_t> write_errors_per_million{0};
  std::atomic<uint32_t> short_reads_per_million{0};
  std::atomic<uint32_t> short_writes_per_million{0};
  std::atomic<int> error{EIO};
  // Reads that touch the OS page at this offset fail.
  std::atomic<uint64_t> bad_offset_bytes{~uint64_t{0}};
  // Where reads put bytes that are thrown away.
  const void* waste = nullptr;
  // The longest delay between the start and the end of a request.
  std::atomic<uint32_t> delay_us_max{0};

  // Called while the request is in flight, before and after its bytes are moved. For tests with one thread.
  std::function<void(const Io&)> before_transfer;
  std::function<void(const Io&)> after_transfer;
  // Writes for which it returns true fail with ENOSPC.
  std::function<bool(const Io&)> has_no_room;

  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> writes{0};
  std::atomic<uint64_t> read_bytes{0};
  std::atomic<uint64_t> written_bytes{0};
  std::atomic<uint64_t> discarded_bytes{0};
  std::atomic<uint64_t> failed_operations{0};

  void allow_discards() { discards_ = true; }

  const unsigned char* contents(uint64_t offset_bytes) const { return bytes_.data() + offset_bytes; }

  void start(Io& io) {
    std::lock_guard guard(mutex_);
    for (const Io* other : in_flight_) {
      const bool two_ios_for_one_place =
          (other->operation != Operation::kRead || io.operation != Operation::kRead) && touch(*other, io);
      CHECK(!two_ios_for_one_place);
    }
    in_flight_.push_back(&io);
  }

  // Moves the bytes, or not; returns the error.
  int finish(Io& io, Random& random) {
    if (io.operation == Operation::kDiscard) return finish_discard(io);
    const bool write = io.operation == Operation::kWrite;
    if (before_transfer) before_transfer(io);
    (write ? writes : reads).fetch_add(1);
    int result = 0;
    uint64_t length_bytes = io.length_bytes;
    const uint64_t bad = bad_offset_bytes;
    const bool touches_bad = !write && io.offset_bytes <= bad && bad - io.offset_bytes < io.length_bytes;
    if (touches_bad || happens(random, write ? write_errors_per_million : read_errors_per_million)) {
      result = error;
      length_bytes = base::round_down(random.below(length_bytes + 1), 512);
      failed_operations.fetch_add(1);
    } else if (write && has_no_room && has_no_room(io)) {
      result = ENOSPC;
      length_bytes = 0;
      failed_operations.fetch_add(1);
    } else if (happens(random, write ? short_writes_per_million : short_reads_per_million)) {
      length_bytes = base::round_down(random.below(length_bytes), 512);
      failed_operations.fetch_add(1);
    }
    transfer(io, length_bytes);
    io.transferred_bytes = result == 0 ? length_bytes : 0;
    (write ? written_bytes : read_bytes).fetch_add(io.transferred_bytes);
    if (after_transfer) after_transfer(io);
    std::lock_guard guard(mutex_);
    std::erase(in_flight_, &io);
    return result;
  }

 private:
  class TestQueue final : public storage::Queue {
   public:
    TestQueue(TestDevice& device, size_t depth, uint64_t seed)
        : Queue(device, depth), test_device_(device), random_(seed) {}

   private:
    void do_start(Io& io) override {
      test_device_.start(io);
      pending_.push_back(&io);
    }
    void do_poll(bool block) override {
      if (const uint32_t delay = test_device_.delay_us_max; delay > 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random_.below(delay)));
      size_t count = random_.below(pending_.size() + 1);
      if (block && count == 0) count = 1;
      while (count-- > 0) {
        const size_t at = random_.below(pending_.size());
        Io& io = *pending_[at];
        pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(at));
        io.error = test_device_.finish(io, random_);
        complete_as_is(io);  // a short transfer is not resumed
      }
    }
    void do_close() override { delete this; }

    TestDevice& test_device_;
    Random random_;
    std::vector<Io*> pending_;
  };

  static bool happens(Random& random, const std::atomic<uint32_t>& per_million) {
    const uint32_t chance = per_million;
    return chance > 0 && random.below(1'000'000) < chance;
  }

  // Do they have bytes of the medium in common, apart from those that are read only to be thrown away?
  bool touch(const Io& a, const Io& b) const {
    if (b.operation == Operation::kRead) return touch(b, a);
    uint64_t begin = a.offset_bytes;
    if (a.operation != Operation::kRead) return overlap(begin, a.length_bytes, b);
    for (uint32_t i = 0; i < a.segment_count; begin += a.segments[i++].iov_len)
      if (a.segments[i].iov_base != waste && overlap(begin, a.segments[i].iov_len, b)) return true;
    return false;
  }
  static bool overlap(uint64_t begin, uint64_t bytes, const Io& io) {
    return begin < io.offset_bytes + io.length_bytes && io.offset_bytes < begin + bytes;
  }

  int finish_discard(Io& io) {
    for (uint64_t i = 0; i < io.length_bytes; ++i) bytes_[io.offset_bytes + i] = kJunk;
    discarded_bytes += io.length_bytes;
    io.transferred_bytes = io.length_bytes;
    std::lock_guard guard(mutex_);
    std::erase(in_flight_, &io);
    return 0;
  }

  // By an instruction that sanitizers do not check: a page may be rescued and stored to while its write
  // is under way, and then nobody relies on what is on storage.
  static void copy(void* to, const void* from, size_t n) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  }

  void transfer(const Io& io, uint64_t length_bytes) {
    uint64_t done_bytes = 0;
    for (uint32_t i = 0; i < io.segment_count; ++i) {
      auto* memory = static_cast<unsigned char*>(io.segments[i].iov_base);
      unsigned char* medium = bytes_.data() + io.offset_bytes + done_bytes;
      const uint64_t left = length_bytes > done_bytes ? length_bytes - done_bytes : 0;
      const uint64_t n = left < io.segments[i].iov_len ? left : io.segments[i].iov_len;
      if (io.operation == Operation::kWrite) {
        copy(medium, memory, n);
      } else {
        copy(memory, medium, n);
        for (uint64_t b = n; b < io.segments[i].iov_len; ++b) memory[b] = kJunk;
      }
      done_bytes += io.segments[i].iov_len;
    }
  }

  base::Expected<storage::Queue*> do_open_queue(size_t depth, const storage::QueueUse&) override {
    return new TestQueue(*this, depth, seed_.fetch_add(0x51ed));
  }
  void do_close() override {}

  std::atomic<uint64_t> seed_;
  std::vector<unsigned char> bytes_;
  std::mutex mutex_;
  std::vector<const Io*> in_flight_;
};

}  // namespace cache
