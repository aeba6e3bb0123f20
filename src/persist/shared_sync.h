// SharedSync: lets fences of several threads that wait for the same file share the kernel's writing of it. Opt-in (Settings::shares_syncs), since one
// thread alone would have only its own range written, which may be less.
//
//  1 syncs are numbered. A sync covers the callers that came before it began: whoever comes, even during a sync, waits for the next one
//  2 a caller that finds no sync running, and its own number not reached, runs the next one; the others sleep
//  3 an error is reported to all callers that the sync covered. A caller that wakes late may get a later sync's error instead: for all it knows, its
//    own data may be lost then, too
//
// Thread contract: any thread; not in signal handlers. In the child of a fork a new one takes its place.
#pragma once
#include <cstdint>

#include "sys/lock.h"

namespace persist {

class SharedSync {
 public:
  // Returns 0 when all that was stored to the file's mappings before the call is durable; otherwise an errno value. sync() writes the file, and returns
  // 0 or an errno value.
  template <class Sync>
  int run(const Sync& sync) {
    lock_.lock();
    const uint64_t own = begun_ + 1;
    while (ended_ < own) {
      if (is_running_) {
        const uint32_t key = changed_.prepare();
        lock_.unlock();
        changed_.wait(key);
        lock_.lock();
        continue;
      }
      is_running_ = true;
      const uint64_t number = ++begun_;
      lock_.unlock();
      const int error = sync();
      lock_.lock();
      is_running_ = false;
      ended_ = number;
      if (error != 0) {
        failed_ = number;
        error_ = error;
      }
      changed_.notify_all();
    }
    const int error = failed_ >= own ? error_ : 0;
    lock_.unlock();
    return error;
  }

 private:
  sys::Mutex lock_;  // of the rest
  sys::EventCount changed_;
  bool is_running_ = false;
  // Numbers of the last sync that has begun, ended, failed; and that one's error.
  uint64_t begun_ = 0, ended_ = 0, failed_ = 0;
  int error_ = 0;
};

// One for each file.
class SharedSyncs {
 public:
  // Null: there are too many files; fences of this one share nothing.
  SharedSync* of(int descriptor) {
    sys::LockGuard scope(lock_);
    for (Place& place : places_) {
      if (place.descriptor == -1) place.descriptor = descriptor;
      if (place.descriptor == descriptor) return &place.sync;
    }
    return nullptr;
  }

 private:
  static constexpr size_t kMaxFiles = 16;

  struct Place {
    int descriptor = -1;
    SharedSync sync;
  };

  sys::Mutex lock_;
  Place places_[kMaxFiles];
};

}  // namespace persist
