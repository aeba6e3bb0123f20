// KeyLocks: calls that change a key run one after the other; those of different keys do not know of each other.
//
// A call holds its key's lock while it reads and writes, so that what it decides by (is there a value? which version?) is still so
// when it has written, and sequences are in the order in which the index learns of them. Lookups take no such lock.
//
// Of calls that replace whatever is there, and wait one after the other for the same key, only the last need do anything: it is as if
// each had been made, and replaced at once by the next. It supersedes the others: they are told when it is done, so that a key that is
// changed more often than a device writes keeps nobody waiting for more than two writes.
//
//  1 a lock is there only while somebody has it: the holder's Hold, on its stack, in one of 256 lists
//  2 fair: first come, first served. Who leaves gives the lock to the first that waits, or to the last of a row of calls that supersede
//  3 a call that supersedes others takes them with it; if it does not succeed they are the first to come after it, each for itself
#pragma once
#include <cstdint>
#include <mutex>
#include <string_view>

#include "task/call_waiter.h"

namespace kv {

class KeyLocks {
 public:
  // Holds a key's lock for its lifetime, unless it has been superseded. Cost: two short locks; with others of the same hash, a wait.
  class Hold final : task::CallWaiter {
   public:
    // The key outlives it. `replaces`: what is done does not depend on what is there.
    Hold(KeyLocks& locks, uint64_t hash, std::string_view key, bool replaces);
    // Only if nobody has it; else is_held() is false, and there is nothing to give back.
    Hold(KeyLocks& locks, uint64_t hash, std::string_view key, std::try_to_lock_t);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    bool is_held() const { return is_held_; }
    // There is nothing left to do: one that replaces this has succeeded, and holds the lock no more.
    bool is_superseded() const { return is_superseded_; }
    // What number_superseded() gave.
    uint64_t version() const { return version_; }

    // Of the holder, as below: those that it supersedes get a version each, in their order.
    template <class Next>
    void number_superseded(const Next& next) {
      superseded_.for_each([&](task::CallWaiter& waiter) { static_cast<Hold&>(waiter).version_ = next(); });
    }
    // What was to be done is done, and so is what is superseded.
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
    Hold* next_ = nullptr;          // in the list: another hash
    task::CallWaiters waiting_;     // of the holder: the Holds that wait for it
    task::CallWaiters superseded_;  // of the holder: those that it supersedes
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
