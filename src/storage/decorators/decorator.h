// What decorators over one device have in common: a device with the properties of the inner one, and a queue that passes each request on to
// a queue of the inner device. It keeps a slot for each request under way.
//
// A decorator is made of three types, which know each other:
//   struct Slot : DecoratorSlot<XQueue, Slot>            its state for a request under way
//   class XQueue : public DecoratorQueue<XQueue, Slot>   do_start, and inner_done(Slot&), which is called when the inner device has
//                                                        completed what was passed on; do_poll, if it holds anything back
//   class XDevice : public Decorator<XDevice, XQueue>    its name, and what its queues share
#pragma once
#include <utility>

#include "base/check.h"
#include "storage/device.h"
#include "storage/objects.h"

namespace storage {

template <class QueueType, class SlotType>
struct DecoratorSlot {
  Io inner;
  Io* outer = nullptr;
  QueueType* queue = nullptr;
  SlotType* next = nullptr;  // in the list of free slots; for the decorator's use while the slot is taken
};

template <class QueueType, class SlotType>
class DecoratorQueue : public Queue {
 public:
  // How much memory this class needs right after the queue. A decorator that needs more adds it after that.
  static uint64_t extra_bytes(size_t depth) { return depth * (sizeof(SlotType) + sizeof(Io*)); }

 protected:
  // `extra` is that memory. REQUIRES: the inner queue is `depth` Ios deep.
  DecoratorQueue(Device& device, Queue* inner, size_t depth, void* extra)
      : Queue(device, depth), inner_(inner) {
    auto* slots = static_cast<SlotType*>(extra);
    for (size_t i = 0; i < depth; ++i) put_free(*new (&slots[i]) SlotType);
    gathered_ = reinterpret_cast<Io**>(slots + depth);
  }
  ~DecoratorQueue() = default;

  Queue& inner() { return *inner_; }

  // Takes a slot, whose inner Io asks for the same as the request.
  SlotType& take_slot(Io& outer) {
    CHECK(free_ != nullptr);
    SlotType& slot = *free_;
    free_ = slot.next;
    slot.outer = &outer;
    slot.inner = Io();
    slot.inner.operation = outer.operation;
    slot.inner.offset_bytes = outer.offset_bytes;
    slot.inner.segments = outer.segments;
    slot.inner.segment_count = outer.segment_count;
    slot.inner.length_bytes = outer.length_bytes;
    slot.inner.owner = &slot;
    slot.inner.done = [](Io& done) {
      SlotType& own = *static_cast<SlotType*>(done.owner);
      own.queue->inner_done(own);
    };
    return slot;
  }

  // The next do_flush_submissions() submits the inner Io, together with others.
  void gather(SlotType& slot) { gathered_[gathered_count_++] = &slot.inner; }
  void do_flush_submissions() override {
    if (gathered_count_ == 0) return;
    // There is room: the inner queue is as deep as this one, and has only this one's Ios.
    CHECK_EQ(inner_->submit({gathered_, gathered_count_}), gathered_count_);
    gathered_count_ = 0;
  }

  void do_poll(bool block) override {
    do_flush_submissions();
    inner_->poll();
    if (block && !has_completed()) inner_->wait();
  }

  // Quiet as long as the inner queue is, unless Ios wait to be submitted.
  base::Quiet do_quiet() override {
    base::Quiet quiet = inner_->quiet();
    if (gathered_count_ > 0) quiet.until_ns = 0;
    return quiet;
  }

  bool do_fix_memory(void* address, uint64_t bytes) override { return inner_->fix_memory(address, bytes); }

  // Frees the slot; returns the caller's Io, which has the inner one's result now and is to be completed.
  Io& take_result(SlotType& slot) {
    Io& outer = *slot.outer;
    outer.error = slot.inner.error;
    outer.transferred_bytes = slot.inner.transferred_bytes;
    put_free(slot);
    return outer;
  }

  void do_close() override {
    inner_->device().close_queue(inner_);
    free_object(static_cast<QueueType*>(this), QueueType::extra_bytes(depth()));
  }

 private:
  void put_free(SlotType& slot) {
    slot.queue = static_cast<QueueType*>(this);
    slot.next = free_;
    free_ = &slot;
  }

  Queue* inner_;
  SlotType* free_ = nullptr;
  Io** gathered_ = nullptr;
  size_t gathered_count_ = 0;
};

template <class DeviceType, class QueueType>
class Decorator : public Device {
 protected:
  // Takes over `inner`.
  explicit Decorator(Device* inner) : inner_(inner) {
    capacity_bytes_ = inner->capacity_bytes();
    missing_bytes_ = inner->capacity_bytes() - inner->end_bytes();
    block_bytes_ = inner->block_bytes();
    discards_ = inner->discards();
    whereabouts_ = inner->whereabouts();
    layout_ = inner->layout();
    copied_by_fork_ = inner->is_copied_by_fork();
    opens_descriptors_ = inner->opens_descriptors();
    counted_ = false;
  }
  ~Decorator() = default;

  bool do_has_room_at(uint64_t offset_bytes, uint64_t length_bytes) const override {
    return inner_->has_room_at(offset_bytes, length_bytes);
  }
  void do_close() override {
    inner_->close();
    free_object(static_cast<DeviceType*>(this), 0);
  }

 private:
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override {
    auto inner = inner_->open_queue(depth, use);
    if (!inner) return inner;
    depth = (*inner)->depth();
    auto queue = make_object<QueueType>(QueueType::extra_bytes(depth), "a storage queue",
                                        static_cast<DeviceType&>(*this), *inner, depth);
    if (queue) return *queue;
    inner_->close_queue(*inner);
    return std::unexpected(queue.error());
  }

  Device* inner_;
};

// A decorator over `inner`, which is closed on an error. Errors: ENOMEM.
template <class DeviceType, class... Arguments>
base::Expected<DeviceType*> make_decorator(const char* purpose, Device* inner, Arguments&&... arguments) {
  auto device = make_object<DeviceType>(0, purpose, inner, std::forward<Arguments>(arguments)...);
  if (!device) inner->close();
  return device;
}

}  // namespace storage
