// Readers: a segment that was emptied is written over only when nobody reads it any more.
//
// Who reads by an address that the index gave says so from before it asks the index until the read has ended. The collector, which has
// taken a segment's addresses out of the index, waits for all who may have got one of them.
//
//  1 a reader counts itself in its session, under the phase that it finds, and asks the index afterwards
//  2 the collector changes the index first. It waits until the other phase has no readers, makes that the present one, and waits
//    until the one that was has none
// Who is counted after the collector has looked asks an index that has changed: an atomic addition is a full barrier on x86-64, and the
// collector has a fence between its changes and its looks. A reader that counts itself late, under a phase that is over, holds up the
// next wait, which looks at both.
#pragma once
#include <atomic>
#include <cstdint>

#include "sys/lock.h"

namespace kv {

class Readers {
 public:
  // Of a session: its readers, by phase.
  struct alignas(64) Place {
    std::atomic<uint32_t> counts[2] = {};
    Place* next = nullptr;
  };
  void add(Place& place);
  // REQUIRES: no readers in it.
  void remove(Place& place);

  // A reader, for its lifetime. Cost: two atomic additions to a line of the session's own.
  class Reading {
   public:
    Reading(const Readers& readers, Place& place)
        : count_(place.counts[readers.phase_.load(std::memory_order_seq_cst) & 1]) {
      count_.fetch_add(1, std::memory_order_seq_cst);
    }
    // Pairs with the acquire in wait_for(): the read has ended.
    ~Reading() { count_.fetch_sub(1, std::memory_order_release); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    std::atomic<uint32_t>& count_;
  };

  // Returns when all readers that were there at the call have ended. One caller at a time. Sleeps.
  void wait();

 private:
  void wait_for(uint32_t phase);

  std::atomic<uint32_t> phase_{0};
  sys::Mutex lock_;
  Place* first_ = nullptr;
};

}  // namespace kv
