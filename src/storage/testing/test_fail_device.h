// For tests: a device whose transfers fail when a test says so, until it says otherwise.
#pragma once
#include <atomic>

#include "storage/decorators/decorator.h"

namespace storage {

class FailQueue;

class FailDevice final : public Decorator<FailDevice, FailQueue> {
 public:
  enum class Failing { kNothing, kReads, kWrites, kFlushes };

  // Owns the other.
  explicit FailDevice(Device* inner) : Decorator(inner), own_(inner) {
    base::TextRef(name_, sizeof name_) << "failing";
  }

  // From now on the `every`-th of these fails, `most` times.
  void fail(Failing what, int error, uint64_t every = 1, uint64_t most = ~uint64_t{0}) {
    failing_ = Failing::kNothing;
    count_ = 0;
    failed_count_ = 0;
    every_ = every;
    most_ = most;
    error_ = error;
    failing_ = what;
  }
  bool has_failed() const { return failed_count_ != 0; }
  // The same, for who closes what it is given.
  Device* lend();

  int error_of(const Io& io) {
    const Failing failing = failing_;
    const bool is_it = (failing == Failing::kReads && io.operation == Operation::kRead) ||
                       (failing == Failing::kWrites && io.operation == Operation::kWrite) ||
                       (failing == Failing::kFlushes && io.operation == Operation::kFlush);
    if (!is_it || ++count_ % every_ != 0 || failed_count_ >= most_) return 0;
    ++failed_count_;
    return error_;
  }

 private:
  void do_close() override {
    if (!is_lent_) own_->close();
    delete this;
  }

  Device* own_;
  bool is_lent_ = false;
  std::atomic<Failing> failing_{Failing::kNothing};
  std::atomic<uint64_t> count_{0}, failed_count_{0}, every_{1}, most_{0};
  std::atomic<int> error_{0};
};

struct FailSlot : DecoratorSlot<FailQueue, FailSlot> {};

class FailQueue final : public DecoratorQueue<FailQueue, FailSlot> {
 public:
  FailQueue(FailDevice& device, Queue* inner, size_t depth)
      : DecoratorQueue(device, inner, depth, this + 1), fail_(device) {}

  void inner_done(FailSlot& slot) { complete_as_is(take_result(slot)); }

 private:
  void do_start(Io& io) override {
    io.error = fail_.error_of(io);
    if (io.error == 0) {
      gather(take_slot(io));
      return;
    }
    io.transferred_bytes = 0;
    complete_as_is(io);
  }

  FailDevice& fail_;
};

inline Device* FailDevice::lend() {
  auto* const lent = new FailDevice(own_);
  lent->is_lent_ = true;
  return lent;
}

}  // namespace storage
