// UpdateLocks: changes of an item that depend on what it was run one after the other, and none runs while all items are flushed.
//
// A lock for each of kCount parts of all hashes of keys. Whoever reads an item, and writes what follows from it, holds its key's lock
// meanwhile. That is not what makes the change atomic: the write is refused if the item has another version by then, and all begins anew. It
// makes that rare, and fair: only who changes an item without looking, or makes or removes it, can come in between.
//
//  1 fair: first come, first served; the lock is handed over
//  2 who has been refused kRoundsAlone times is in a fight: until it ends, those who do not look take the lock too. They are at most as many
//    as are under way already, so the fight ends
//  3 a flush takes all locks: what was read before it is not written after it. Others hold one at a time, and take it before the locks of
//    the store: nobody waits in a circle
//
// Thread contract: tasks and threads.
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

  // Holds the lock of a hash for its lifetime. Cost: two short locks, or a wait.
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

  // All of them, for its lifetime.
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

  // Relaxed: who does not see a fight that has just begun is one of those who are under way.
  bool is_fought(uint64_t hash) { return lock_of(hash).fights.load(std::memory_order_relaxed) != 0; }

 private:
  class alignas(64) Lock {
   public:
    void take();
    void give();
    std::atomic<uint32_t> fights{0};

   private:
    sys::Mutex mutex_;  // of what follows
    bool is_taken_ = false;
    task::CallWaiters waiting_;
  };
  Lock& lock_of(uint64_t hash) { return locks_[(hash >> 32) % kCount]; }

  Lock locks_[kCount];
};

}  // namespace server
