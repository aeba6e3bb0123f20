// AioRing: one context of Linux AIO, by its four system calls and the ring of completions that the kernel maps.
//
//   submissions   iocbs of our own, pending until submit() hands them over; the kernel copies what it takes
//   completions   the kernel publishes them by storing the ring's tail; next_completion() advances the head without a
//                 system call. A ring of unknown layout (another magic, header size or set of features) is not
//                 touched: completions are fetched by io_getevents instead
//
// Invariants
//  1 at most `entry_count` submissions are pending or in the kernel at a time: the caller's duty. The kernel's ring
//    is larger, so it never overflows
//  2 used by one thread at a time, not necessarily always the same one
//  3 the context has no descriptor and belongs to the process that opened it: a child of fork inherits neither the
//    context nor the mapping of its ring, and may only call close()
#pragma once
#include <linux/aio_abi.h>

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace sys {

class AioRing {
 public:
  // Makes a context for `entry_count` submissions. Errors, each of which means "do without": ENOSYS, EPERM
  // (forbidden here), EAGAIN (the system has fs.aio-max-nr requests already), EINVAL (too many), ENOMEM.
  base::Expected<void> open(uint32_t entry_count);
  // REQUIRES: no submission is in the kernel (it would be waited for). Cost: 10 ms and more, since the kernel waits for
  // all CPUs.
  void close();

  // Whether contexts may be opened here at all; opens none. Errors: ENOSYS, EPERM.
  static base::Expected<void> probe();

  // A zeroed iocb to fill, pending from now on; null when entry_count are pending. Its aio_data comes back with the
  // completion.
  iocb* next_submission();
  uint32_t pending_count() const { return pending_count_; }
  uint32_t in_kernel_count() const { return in_kernel_count_; }

  // Submits what is pending, in order. Returns how many the kernel took, perhaps not all (0: none was pending), or
  // -errno if it refused the first: -EAGAIN when it has no room. Cost: a system call for every two iocbs, and one more
  // where they wrap around. Blocks where reads and writes of the file do.
  long submit();
  // Withdraws the first pending submission; returns its aio_data. REQUIRES: pending_count() > 0.
  uint64_t take_first();

  // Takes the next completion; false if there is none. `result`: bytes, or -errno.
  bool next_completion(uint64_t& user_data, int64_t& result);
  // Sleeps until there is a completion. Returns 0 or more, or -errno: -EINTR may be tried again. REQUIRES:
  // in_kernel_count() > 0 and next_completion() has just returned false.
  long wait();

  // Are completions read from the ring, without system calls?
  bool is_readable() const { return ring_ != nullptr; }
  // From now on they are not, as if the ring's layout were unknown. For tests.
  void leave_ring_alone() { ring_ = nullptr; }

 private:
  // What the kernel maps at the context's address.
  struct Ring {
    uint32_t id;
    uint32_t event_count;
    uint32_t head;  // ours to store
    uint32_t tail;  // the kernel's
    uint32_t magic;
    uint32_t compatible_features;
    uint32_t incompatible_features;
    uint32_t header_bytes;
    io_event events[];
  };
  static_assert(sizeof(Ring) == 32 && offsetof(Ring, tail) == 12 && offsetof(Ring, header_bytes) == 28);

  static constexpr uint32_t kMaxFetched = 16;

  void map_ring();
  long fetch(long least_count, const void* timeout);

  aio_context_t context_ = 0;
  Ring* ring_ = nullptr;  // null: not to be read
  long process_ = 0;      // the one that opened the context
  uint32_t entry_count_ = 0;
  uint32_t first_ = 0;  // index of the first pending entry
  uint32_t pending_count_ = 0;
  uint32_t in_kernel_count_ = 0;
  iocb* entries_ = nullptr;
  iocb** pointers_ = nullptr;  // pointers_[i] is &entries_[i]
  // Fetched by io_getevents, in the order in which next_completion() takes them.
  io_event fetched_[kMaxFetched];
  uint32_t fetched_first_ = 0;
  uint32_t fetched_count_ = 0;
};

}  // namespace sys
