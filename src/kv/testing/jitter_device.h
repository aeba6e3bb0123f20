// For tests: a device over another one. Random requests wait for a while before their transfer and again after it, and complete in any
// order, so that the time between two steps of a call is long enough for much to happen in it.
#pragma once
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <vector>

#include "base/check.h"
#include "storage/device.h"

namespace kv {

class JitterDevice final : public storage::Device {
 public:
  // REQUIRES: `inner` completes each request at once. It is closed together with this device.
  JitterDevice(storage::Device* inner, uint64_t seed) : inner_(inner), next_seed_(seed) {
    capacity_bytes_ = inner->capacity_bytes();
    block_bytes_ = inner->block_bytes();
    discards_ = inner->discards();
    counted_ = false;
    base::TextRef(name_, sizeof name_) << "jitter";
  }

  // For queues opened from now on: `count` of 256 requests wait, and four times as many flushes. At first none do.
  void set_slow_of_256(uint32_t count) { slow_of_256_ = count; }

 private:
  class JitterQueue final : public storage::Queue {
   public:
    JitterQueue(JitterDevice& device, storage::Queue* inner, size_t depth, uint32_t slow_of_256,
                uint64_t seed)
        : Queue(device, depth), inner_(inner), slow_of_256_(slow_of_256), random_(seed) {}

   private:
    struct Waiting {
      storage::Io* io;
      bool is_transferred;
    };

    void do_start(storage::Io& io) override {
      // On most devices flushes take longest.
      const uint32_t slow = io.operation == storage::Operation::kFlush ? 4 * slow_of_256_ : slow_of_256_;
      if (random_() % 256 < slow) {
        waiting_.push_back({&io, false});
        return;
      }
      transfer(io);
      complete(io);
    }
    // Does one step of one waiting request, or nothing; if `block`, goes on until a request has completed.
    void do_poll(bool block) override {
      do {
        if (waiting_.empty()) return;
        if (block) pause();
        if (random_() % 4 != 0) continue;
        Waiting& one = waiting_[random_() % waiting_.size()];
        if (!one.is_transferred) {
          transfer(*one.io);
          one.is_transferred = true;
          continue;
        }
        storage::Io& io = *one.io;
        one = waiting_.back();
        waiting_.pop_back();
        complete(io);
      } while (block && !has_completed());
    }
    void do_close() override {
      inner_->device().close_queue(inner_);
      delete this;
    }

    void transfer(storage::Io& io) {
      storage::Io inner;
      inner.operation = io.operation;
      inner.offset_bytes = io.offset_bytes;
      inner.segments = io.segments;
      inner.segment_count = io.segment_count;
      inner.length_bytes = io.length_bytes;
      inner_->run(inner);
      io.error = inner.error;
      io.transferred_bytes = inner.transferred_bytes;
    }
    void pause() {
      if (random_() % 4 == 0)
        usleep(1 + random_() % 40);
      else
        sched_yield();
    }

    storage::Queue* const inner_;
    const uint32_t slow_of_256_;
    std::mt19937_64 random_;
    std::vector<Waiting> waiting_;
  };

  base::Expected<storage::Queue*> do_open_queue(size_t depth, const storage::QueueUse& use) override {
    auto inner = inner_->open_queue(depth, use);
    if (!inner) return inner;
    return new JitterQueue(*this, *inner, depth, slow_of_256_, next_seed_++);
  }
  void do_close() override {
    inner_->close();
    delete this;
  }

  storage::Device* const inner_;
  std::atomic<uint32_t> slow_of_256_{0};
  std::atomic<uint64_t> next_seed_;
};

}  // namespace kv
