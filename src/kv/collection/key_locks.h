// KeyLocks: calls that change the same key run one after the other; those of different keys do not affect each other.
//
// A call holds its key's lock while it reads and writes. So what its decision depends on (is there a value? which version?) still holds when it has
// written, and the index learns of a key's changes in the order of their sequences. Lookups take no such lock.
//
// Superseding. Of successive waiting calls that replace whatever is there, only the last one needs to do anything: the result is as if each had been
// made, and replaced at once by the next. The last one supersedes the others, which are told when it is done. So even if a key is changed more often
// than the device can write, nobody waits for more than two writes.
//
//  1 A lock exists only while somebody has it: as the holder's Hold, on its stack, in one of 256 lists
//  2 Locks are fair: first come, first served. The holder hands the lock to the first call that waits; if that begins a row of calls each of which
//    the next may supersede, to the last of these
//  3 A call that supersedes others takes them along. If it does not succeed, they are the first to get the lock after it, each for itself
#pragma once
#include <cstdint>
#include <mutex>
#include <string_view>

#include "task/call_waiter.h"

namespace kv {

class KeyLocks {
 public:
  // Holds a key's lock for its lifetime, unless it has been superseded. Cost: two short locks, and a wait if others hold a key with the same hash.
  class Hold final : task::CallWaiter {
   public:
    // The key outlives it. `replaces`: the call's effect does not depend on what is there, so that it may supersede others and be superseded.
    Hold(KeyLocks& locks, uint64_t hash, std::string_view key, bool replaces);
    // Takes the lock only if nobody has it: see is_held().
    Hold(KeyLocks& locks, uint64_t hash, std::string_view key, std::try_to_lock_t);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    bool is_held() const { return is_held_; }
    // True: a call that supersedes this one has succeeded and given up the lock. There is nothing left to do.
    bool is_superseded() const { return is_superseded_; }
    // The version that number_superseded() gave this call.
    uint64_t version() const { return version_; }

    // For the holder: gives each call that it supersedes a version, in their order.
    template <class Next>
    void number_superseded(const Next& next) {
      superseded_.for_each([&](task::CallWaiter& waiter) { static_cast<Hold&>(waiter).version_ = next(); });
    }
    // For the holder: its change is made, and so are those that it supersedes.
    void succeed() { has_succeeded_ = true; }

   private:
    friend class KeyLocks;
    bool is_replaced_by(const Hold& next) const {
      return replaces_ && next.replaces_ && hash_ == next.hash_ && key_ == next.key_;
    }
    Hold* choose_heir();

    KeyLocks& locks_;
    const uint64_t hash_;
    const std::string_view key_;
    bool replaces_;
    bool is_held_ = true;
    bool has_succeeded_ = false;
    bool is_superseded_ = false;
    uint64_t version_ = 0;
    Hold* next_ = nullptr;  // in the list; it has another hash
    // The holder's: Holds that wait for it, and those that it supersedes.
    task::CallWaiters waiting_;
    task::CallWaiters superseded_;
  };

 private:
  static constexpr uint32_t kLists = 256;
  struct alignas(64) List {
    sys::Mutex lock;
    Hold* first = nullptr;
  };
  List& list_of(uint64_t hash) { return lists_[hash >> 56]; }

  List lists_[kLists];
};

}  // namespace kv
