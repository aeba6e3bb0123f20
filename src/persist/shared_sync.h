// SharedSync: fences of several threads that wait for the same file, which share the kernel's writing of it. Opt-in (Settings::shares_syncs): one thread alone has
// only its own range written, which may be less.
//
//  1 a sync has a number, and covers who came before it began: who comes while none runs, or during one, waits for the next
//  2 whoever finds none running, and its own number not reached, runs the next; the others sleep
//  3 an error is that of all whom the sync covered. Who comes late to ask may be told of a later one's: what it wrote may be lost then, too, for all it knows
//
// Thread contract: any thread; not in handlers of signals.
#pragma once
#include <cstdint>

#include "sys/lock.h"

namespace persist {

class SharedSync {
 public:
  // All that was stored to the file's mappings before the call is durable when it returns 0; else an errno value. sync(): returns 0 or an errno value.
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
  uint64_t begun_ = 0, ended_ = 0;  // the last one's number
  uint64_t failed_ = 0;             // the last one's that did
  int error_ = 0;
};

// One for each file.
class SharedSyncs {
 public:
  // Null: there are too many files, which are then written by each for itself.
  SharedSync* of(int descriptor) {
    sys::LockGuard scope(lock_);
    for (Place& place : places_) {
      if (place.descriptor == -1) place.descriptor = descriptor;
      if (place.descriptor == descriptor) return &place.sync;
    }
    return nullptr;
  }

 private:
  static constexpr size_t kFilesMax = 16;

  struct Place {
    int descriptor = -1;
    SharedSync sync;
  };

  sys::Mutex lock_;
  Place places_[kFilesMax];
};

}  // namespace persist
