// Readers: an emptied segment is written to only when nobody reads it any more.
//
// Whoever reads at an address that the index gave is counted as a reader from before it asks the index until the read has ended. The collector,
// after taking a segment's addresses out of the index, waits for all readers that may have got one of them.
//
//  1 A reader counts itself in its session, under the phase that it finds, and asks the index afterwards
//  2 The collector changes the index first. Then it waits until the other phase has no readers, makes that one the present phase, and waits until
//    the previous phase has none
// A reader that counts itself after the collector has read the counts asks an index that has changed: its atomic addition is a full barrier on
// x86-64, and the collector has a fence between its changes and its reads. A reader that counts itself late, under a phase that is over, delays
// the next wait, which looks at both phases.
#pragma once
#include <atomic>
#include <cstdint>

#include "sys/lock.h"

namespace kv {

class Readers {
 public:
  // A session's readers, by phase.
  struct alignas(64) Place {
    std::atomic<uint32_t> counts[2] = {};
    Place* next = nullptr;
  };
  void add(Place& place);
  // REQUIRES: no readers in it.
  void remove(Place& place);

  // Counts a reader for its lifetime. Cost: two atomic additions to a cache line of the session's own.
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

  // Returns when all readers that were there at the call have ended; sleeps meanwhile. One caller at a time.
  void wait();

 private:
  void wait_for(uint32_t phase);

  std::atomic<uint32_t> phase_{0};
  sys::Mutex lock_;
  Place* first_ = nullptr;
};

}  // namespace kv
