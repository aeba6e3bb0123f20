// Direct I/O, as ours does it: the same device string, storage queue and depth. A page is read into the next buffer of a ring that is as
// large as ours' cache, and the block is copied from there; a block that is written is put into a page that was read before, which is
// written then. Nobody sees to it that two requests for one page keep out of each other's way.
//
// 1 a thread has a queue of its own. By tasks: one thread, as many requests in flight as tasks; else one at a time, by Queue::run
// 2 what one wait() completed is submitted anew in one batch
#include <sys/mman.h>

#include "side.h"

namespace load {
namespace {

// The requests of one thread.
class Flight {
 public:
  Flight(Turn& turn, uint64_t index, storage::Queue& queue, std::span<std::byte> ring)
      : turn_(turn), queue_(queue), done_(turn.done[index]), requests_(turn, turn.seed + index) {
    fill(fresh_, turn.seed + index);
    slots_ = std::vector<Slot>(queue.depth());
    const uint64_t each = ring.size() / slots_.size() / kPageBytes * kPageBytes;
    if (each == 0) fail(2, "there are fewer buffers than requests");
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      slot.flight = this;
      slot.ring = ring.subspan(i * each, each);
      slot.io.segments = &slot.segment;
      slot.io.segment_count = 1;
      slot.io.length_bytes = kPageBytes;
      slot.io.done = [](storage::Io& io) { slot_of(io).flight->completed_.push_back(&io); };
      slot.io.owner = &slot;
    }
  }

  void run() {
    for (Slot& slot : slots_) begin(slot);
    while (!waiting_.empty()) {
      if (slots_.size() == 1)
        queue_.run(*waiting_[0]);
      else if (queue_.submit(waiting_) != waiting_.size())
        fail(1, "the queue is full");
      waiting_.clear();
      if (completed_.empty()) queue_.wait();
      for (storage::Io* io : completed_) end(slot_of(*io));
      completed_.clear();
    }
    while (queue_.in_flight_count() > 0) queue_.wait();
  }

 private:
  struct Slot {
    storage::Io io;
    iovec segment = {};
    Flight* flight = nullptr;
    std::span<std::byte> ring;  // its part of it
    uint64_t next_bytes = 0;
    Request request = {};
    std::byte* page() const { return static_cast<std::byte*>(segment.iov_base); }
  };
  static Slot& slot_of(storage::Io& io) { return *static_cast<Slot*>(io.owner); }

  void begin(Slot& slot) {
    slot.request = requests_.next();
    slot.segment = {slot.ring.data() + slot.next_bytes, kPageBytes};
    slot.next_bytes = (slot.next_bytes + kPageBytes) % slot.ring.size();
    const bool writes = !slot.request.reads && turn_.kind == Kind::kMixed;
    if (writes) set_numbers(slot.page(), slot.request.page);
    start(slot, writes ? storage::Operation::kWrite : storage::Operation::kRead);
  }
  void start(Slot& slot, storage::Operation operation) {
    slot.io.operation = operation;
    slot.io.offset_bytes = slot.request.page * kPageBytes;
    waiting_.push_back(&slot.io);
  }
  void end(Slot& slot) {
    if (!slot.io.whole())
      fail(1, "I/O at " + std::to_string(slot.io.offset_bytes) + " failed with " +
                  base::error_name(slot.io.error));
    if (slot.io.operation == storage::Operation::kRead) {
      std::byte* const block = slot.page() + slot.request.in_page_bytes();
      if (!slot.request.reads) {
        std::memcpy(block, fresh_, sizeof fresh_);
        set_number(block, slot.request.block);
        return start(slot, storage::Operation::kWrite);
      }
      std::byte copy[kBlockBytes];
      std::memcpy(copy, block, sizeof copy);
      expect(copy, slot.request.block);
    }
    base::increase(done_.value, uint64_t{1});
    if (turn_.goes_on(done_)) begin(slot);
  }

  Turn& turn_;
  storage::Queue& queue_;
  Turn::Count& done_;
  Requests requests_;
  std::vector<Slot> slots_;
  std::vector<storage::Io*> waiting_, completed_;
  std::byte fresh_[kBlockBytes];
};

class Direct final : public Side {
 public:
  explicit Direct(const Plan& plan) : device_(open_device(plan)), ring_(memory_of(plan.memory_bytes)) {
    fill(ring_, 0);
  }
  ~Direct() override {
    munmap(ring_.data(), ring_.size());
    device_.close();
  }

  void work(Turn& turn, uint64_t index) override {
    auto queue = device_.open_queue(turn.by_tasks ? turn.depth : 1, {.by_one_thread = true});
    if (!queue) fail(2, queue.error().message);
    const uint64_t each = ring_.size() / turn.thread_count() / kPageBytes * kPageBytes;
    const std::span ring = ring_.subspan(index * each, each);
    (*queue)->fix_memory(ring.data(), ring.size());
    Flight(turn, index, **queue, ring).run();
    device_.close_queue(*queue);
  }
  DevicePages device_pages() const override { return counted_pages(); }

 private:
  storage::Device& device_;
  const std::span<std::byte> ring_;
};

}  // namespace

std::unique_ptr<Side> make_direct(const Plan& plan) { return std::make_unique<Direct>(plan); }

}  // namespace load
