// FileHelpers: the helper threads of a file device, which give batches of blocking calls depth.
//
//   HelperClient   one queue's state: the Ios that it wants done, and those that have been done
//   round          the clients that want something, first in, first out
//
// The protocol of one batch
//  1 the queue's thread, with the lock, appends to client.wanted and puts the client at the end of the round; then it wakes helpers
//  2 a helper, with the lock, takes the first client of the round and one of its Ios, counts itself into client.helpers_inside, and
//    puts the client back at the end of the round if it wants more
//  3 the helper runs the Io without the lock, pushes it to client.done, notifies client.finished, and sets client.told
//  4 it counts itself out of client.helpers_inside; after that it does not touch the client
//  5 the queue's thread takes client.done whole. While it waits it runs wanted Ios itself (take_wanted)
//
// A child of fork has neither the threads nor any state of this object (MADV_WIPEONFORK): there are no helpers, and queues run their
// Ios themselves.
#pragma once
#include <atomic>

#include "storage/device.h"
#include "sys/events.h"
#include "sys/lock.h"
#include "sys/threads.h"

namespace storage {

struct HelperClient {
  IoList wanted;                          // lock
  HelperClient* next_in_round = nullptr;  // lock
  bool in_round = false;                  // lock: iff wanted is not empty
  std::atomic<Io*> done{nullptr};         // pushed by helpers, taken whole by the queue's thread
  std::atomic<uint32_t> helpers_inside{0};
  sys::EventCount finished;
  sys::Event told;  // like `finished`, with a descriptor to sleep on; open only if the queue's user sleeps
};

class FileHelpers {
 public:
  static constexpr uint32_t kMaxHelpers = 64;

  // Starts `helper_count` threads, each of which calls perform(argument, io) for one Io at a time; fewer, or none, if the system has
  // no more. Errors: ENOMEM.
  static base::Expected<FileHelpers*> make(uint32_t helper_count, void (*perform)(void* argument, Io& io),
                                           void* argument);
  // Waits for the threads to end. REQUIRES: no client wants anything.
  void close();

  uint32_t helper_count() const { return helper_count_; }

  // Step 1. REQUIRES: helper_count() > 0. `wanted` is empty afterwards.
  void want(HelperClient& client, IoList& wanted);
  // Takes back an Io that no helper has begun; null if there is none.
  Io* take_wanted(HelperClient& client);

 private:
  FileHelpers() = default;
  template <class T, class... Arguments>
  friend base::Expected<T*> make_object(uint64_t, const char*, Arguments&&...);

  void run_helper();
  HelperClient* first_of_round();
  void append_to_round(HelperClient& client);

  void (*perform_)(void* argument, Io& io) = nullptr;
  void* argument_ = nullptr;
  uint32_t helper_count_ = 0;
  sys::Thread threads_[kMaxHelpers];

  sys::Mutex mutex_;  // guards what follows, and the members of HelperClient that are marked "lock"
  HelperClient* round_first_ = nullptr;
  HelperClient* round_last_ = nullptr;
  uint32_t sleeping_count_ = 0;
  bool stopping_ = false;
  std::atomic<uint32_t> wake_word_{0};  // changed under the lock, slept on without it
};

}  // namespace storage
