// KeyLocks: calls that change a key run one after the other; those of different keys do not know of each other.
//
// A call holds its key's lock while it reads and writes, so that what it decides by (is there a value? which version?) is still so
// when it has written, and sequences are in the order in which the index learns of them. Lookups take no such lock.
//
// A lock is there only while somebody has it: the holder's Hold, on its stack, in one of 256 lists. Fair: first come, first served.
#pragma once
#include <cstdint>

#include "kv/waiter.h"

namespace kv {

class KeyLocks {
 public:
  // Holds the lock of a hash for its lifetime. Cost: two short locks; with others of the same hash, a wait.
  class Hold final : Waiter {
   public:
    Hold(KeyLocks& locks, uint64_t hash);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    friend class KeyLocks;
    KeyLocks& locks_;
    const uint64_t hash_;
    Hold* next_ = nullptr;  // in the list: another hash
    Waiters waiting_;       // of the holder: the Holds that wait for it
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
