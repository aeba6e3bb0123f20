// AioRing: one context of Linux AIO, by its four system calls and the ring of completions that the kernel maps.
//
//   submissions   iocbs of our own, pending until submit() hands them over; the kernel copies what it takes
//   completions   the kernel publishes by storing the ring's tail; next_completion() advances the head without a
//                 system call. A ring that does not say what it is (its magic, features that we do not know) is left
//                 alone, and completions are fetched by io_getevents
//
// Invariants
//  1 at most `entry_count` submissions are pending or in the kernel at a time: the caller's duty. The kernel's ring
//    is larger, so it never overflows
//  2 one thread at a time; it need not be the same one always
//  3 the context has no descriptor, and belongs to the process that opened it: its ring is not mapped in a child of
//    fork, which has no such context. Only close() may be called there
#pragma once
#include <linux/aio_abi.h>

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace sys {

class AioRing {
 public:
  // Makes a context for `entry_count` submissions. Errors, each of which means "do without": ENOSYS, EPERM
  // (forbidden here), EAGAIN (the system has fs.aio-max-nr requests already), ENOMEM.
  base::Expected<void> open(uint32_t entry_count);
  // REQUIRES: nothing is in the kernel (it would be waited for). Cost: the kernel waits for all CPUs, 10 ms and more.
  void close();

  // Whether contexts may be opened here at all; opens none. Errors: ENOSYS, EPERM.
  static base::Expected<void> probe();

  // A zeroed iocb to fill, pending from now on; null when entry_count are pending. Its aio_data comes back with the
  // completion.
  iocb* next_submission();
  uint32_t pending_count() const { return pending_count_; }
  uint32_t in_kernel_count() const { return in_kernel_count_; }

  // Hands over what is pending, the first one first. Returns how many the kernel took, more than 0 and perhaps not
  // all, or -errno if it refused the first: -EAGAIN when it has no room. One system call if it takes all (two where
  // the iocbs wrap around). Blocks where the file's reads and writes do.
  long submit();
  // Takes the first pending submission back; returns its aio_data. REQUIRES: pending_count() > 0.
  uint64_t take_first();

  // Takes the completion that is next, if there is one. `result`: bytes, or -errno.
  bool next_completion(uint64_t& user_data, int64_t& result);
  // Sleeps until there is a completion. Returns 0 or more, or -errno: -EINTR may be tried again. REQUIRES:
  // in_kernel_count() > 0 and next_completion() has just returned false.
  long wait();

  // Are completions read from the ring, without system calls?
  bool is_readable() const { return ring_ != nullptr; }
  // From now on they are not, as with a ring that is not known. For tests.
  void leave_ring_alone() { ring_ = nullptr; }

 private:
  // What the kernel maps at the context's address; events follow.
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
  long process_ = 0;      // that opened it
  uint32_t entry_count_ = 0;
  uint32_t first_ = 0;  // of the pending ones
  uint32_t pending_count_ = 0;
  uint32_t in_kernel_count_ = 0;
  iocb* entries_ = nullptr;
  iocb** pointers_ = nullptr;  // pointers_[i] is &entries_[i]
  // By io_getevents, in the order of next_completion().
  io_event fetched_[kMaxFetched];
  uint32_t fetched_first_ = 0;
  uint32_t fetched_count_ = 0;
};

}  // namespace sys
