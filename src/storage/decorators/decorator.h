// What decorators over one device have in common: a device that is what the inner one is, and a queue that hands each request
// on to a queue of the inner device, from a slot of its own.
//
// A decorator is three types, which know of each other:
//   struct Slot : DecoratorSlot<XQueue, Slot>            what it keeps of a request under way
//   class XQueue : public DecoratorQueue<XQueue, Slot>    do_start, do_poll, and inner_done(Slot&), which is called when the inner
//                                                        device is done with what was handed on
//   class XDevice : public Decorator<XDevice, XQueue>     its name, and what its queues share
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
  SlotType* next = nullptr;  // of the free ones; the decorator's while it is not
};

template <class QueueType, class SlotType>
class DecoratorQueue : public Queue {
 public:
  // Memory right after the queue, of which what the decorator adds comes last.
  static uint64_t extra_bytes(size_t depth) { return depth * (sizeof(SlotType) + sizeof(Io*)); }

 protected:
  // `extra`: that memory. The inner queue is as deep as this one.
  DecoratorQueue(Device& device, Queue* inner, size_t depth, void* extra)
      : Queue(device, depth), inner_(inner) {
    auto* slots = static_cast<SlotType*>(extra);
    for (size_t i = 0; i < depth; ++i) put_free(*new (&slots[i]) SlotType);
    gathered_ = reinterpret_cast<Io**>(slots + depth);
  }
  ~DecoratorQueue() = default;

  Queue& inner() { return *inner_; }

  // A slot for the request, whose inner Io asks for the same.
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

  // The inner Io is submitted with others, by the next do_flush_submissions().
  void gather(SlotType& slot) { gathered_[gathered_count_++] = &slot.inner; }
  void do_flush_submissions() override {
    if (gathered_count_ == 0) return;
    // The inner queue holds nothing that this one does not.
    CHECK_EQ(inner_->submit({gathered_, gathered_count_}), gathered_count_);
    gathered_count_ = 0;
  }

  // Until the inner queue has something to hand on, or is to be given something.
  base::Quiet do_quiet() override {
    base::Quiet quiet = inner_->quiet();
    if (gathered_count_ > 0) quiet.until_ns = 0;
    return quiet;
  }

  bool do_fix_memory(void* address, uint64_t bytes) override { return inner_->fix_memory(address, bytes); }

  // The caller's Io, to be completed, with the inner one's result; the slot is free.
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
  // Takes `inner` over.
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
