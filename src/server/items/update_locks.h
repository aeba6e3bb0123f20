// UpdateLocks: makes updates of an item, which read it and write what follows from that, run one after the other, and none while all items are
// flushed.
//
// The hashes of all keys are divided into kCount parts, each of which has a lock. An update holds the lock of its key from before the read until
// after the write. That is not what makes it atomic: its write is refused if the item has another version by then, and the update begins anew. The
// lock makes that rare, and fair: only calls that write without reading can come in between.
//
//  1 the lock is fair: it is handed over to the longest waiter
//  2 an update that has been refused kRoundsAlone times is in a fight. Until that ends, calls that write without reading take the lock as well. Only
//    those that are under way already can come in between then, so the fight ends
//  3 a flush takes all locks, so that nothing that was read before it is written after it. All others hold one lock at a time, and take it before
//    locks of the store: so there is no deadlock
//
// Thread contract: any task or thread.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "task/call_waiter.h"

namespace server {

class UpdateLocks {
  class Lock;

 public:
  static constexpr size_t kCount = 1024;
  static constexpr int kRoundsAlone = 4;

  // Holds the lock of a hash as long as it lives. Cost: two short critical sections, or a wait.
  class Held {
   public:
    Held(UpdateLocks& locks, uint64_t hash) : lock_(locks.lock_of(hash)) { lock_.take(); }
    ~Held() {
      if (fights_) lock_.fights.fetch_sub(1, std::memory_order_relaxed);
      lock_.give();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    // REQUIRES: once.
    void fight() {
      fights_ = true;
      lock_.fights.fetch_add(1, std::memory_order_relaxed);
    }

   private:
    Lock& lock_;
    bool fights_ = false;
  };

  // Holds all locks as long as it lives.
  class AllHeld {
   public:
    explicit AllHeld(UpdateLocks& locks) : locks_(locks) {
      for (Lock& lock : locks_.locks_) lock.take();
    }
    ~AllHeld() {
      for (Lock& lock : locks_.locks_) lock.give();
    }
    AllHeld(const AllHeld&) = delete;
    AllHeld& operator=(const AllHeld&) = delete;

   private:
    UpdateLocks& locks_;
  };

  // Relaxed: a caller that does not yet see a fight is one of those that are under way (2).
  bool is_fought(uint64_t hash) { return lock_of(hash).fights.load(std::memory_order_relaxed) != 0; }

 private:
  class alignas(64) Lock {
   public:
    void take();
    void give();
    std::atomic<uint32_t> fights{0};

   private:
    sys::Mutex mutex_;  // guards what follows
    bool is_taken_ = false;
    task::CallWaiters waiting_;
  };
  Lock& lock_of(uint64_t hash) { return locks_[(hash >> 32) % kCount]; }

  Lock locks_[kCount];
};

}  // namespace server
