// IoRing: one io_uring, by its three system calls and its two shared rings.
//
//   submissions   entries from the tail on are ours to fill; enter() publishes them by storing the tail,
//                 the kernel takes them and advances the head
//   completions   the kernel publishes by storing the tail; next_completion() advances the head
//
// Invariants
//  1 at most entry_count() submissions are pending or in the kernel at a time: the caller's duty. The
//    completion ring is at least twice as large, so it never overflows
//  2 used by one thread at a time, not necessarily always the same one, unless it was opened for one (IoRingUse)
//  3 the descriptor is the runtime's own; the rings are not mapped in a child of fork, where only
//    close() may be called
//  4 a thread of the kernel advances the head only when all that it found is under way, and some of that may have completed
//    by then. So with such a thread the ring has twice entry_count() entries: as many as may be in the kernel before the
//    head has moved, and as many that come after them
//  5 a thread of the kernel may take what it can see at any time, also while enter() fails: that is never taken back
#pragma once
#include <linux/io_uring.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

namespace sys {

struct IoRingUse {
  // Only the thread that opens the ring uses it (another thread's enter() returns -EEXIST): the kernel finishes requests when that thread asks for
  // completions, and needs no locks. Has no effect before Linux 6.1 (SINGLE_ISSUER and DEFER_TASKRUN).
  bool by_one_thread = false;
  // The device is polled for completions instead of interrupting (IOPOLL): direct reads and writes only.
  bool polls_device = false;
  // A thread of the kernel takes submissions, without system calls by us (SQPOLL). It spins as long as there are some,
  // and kKernelThreadIdleMs more.
  bool kernel_thread = false;
  // Entries have room for a driver's command (URING_CMD) of kCommandBytes, and completions for its answer (SQE128, CQE32;
  // Linux 5.19).
  bool takes_commands = false;
};

class IoRing {
 public:
  static constexpr uint32_t kKernelThreadIdleMs = 10;
  static constexpr uint32_t kCommandBytes = 80;

  // Makes a ring of at least `entry_count` entries. Errors, each of which means "do without": ENOSYS,
  // EPERM (forbidden here), EMFILE (also: the process has its share of rings already), ENOMEM, EOPNOTSUPP
  // (a kernel before 5.7; with a thread of the kernel before 5.11), EINVAL (the kernel does not know such a use).
  base::Expected<void> open(uint32_t entry_count, const IoRingUse& use = {});
  void close();

  uint32_t entry_count() const { return entry_count_; }
  int descriptor() const { return descriptor_; }
  // From now on the kernel sets the eventfd whenever there are completions to take, or to enter the kernel for; never if the device is polled. (The ring's
  // own descriptor becomes readable, too, but not for completions that still need the ring's one thread to enter.) Returns whether the kernel agreed.
  bool tell(int eventfd);

  // From now on entries with IOSQE_FIXED_FILE may name files[i] by the number i, which spares the kernel a lookup in the table of
  // descriptors for each. The files stay open until the ring has nothing in flight any more, even if the process is killed.
  // Returns whether the kernel agreed. REQUIRES: no files are registered yet.
  bool fix_files(std::span<const int> files);
  // From now on READ_FIXED and WRITE_FIXED may name pieces[i] by buf_index i, which spares the kernel looking up and pinning
  // their pages each time. The pieces stay in memory, and must stay mapped, until the ring is closed or this is called again.
  // Returns whether the kernel agreed, which it does not past RLIMIT_MEMLOCK. A piece is at most kMaxFixedPieceBytes.
  bool fix_memory(const iovec* pieces, uint32_t piece_count);
  static constexpr uint64_t kMaxFixedPieceBytes = uint64_t{1} << 30;
  static constexpr uint32_t kMaxFixedPieces = 256;

  // Whether rings may be opened here at all; opens none. (After a ring is closed, the next blocking call of the thread that opened
  // it ends early: EINTR without a signal.) Errors: ENOSYS, EPERM.
  static base::Expected<void> probe();

  // A zeroed entry to fill, pending from now on; null when all entries are pending. If the ring takes commands, there is room for
  // one at its `cmd`.
  io_uring_sqe* next_submission();
  // How many entries have not been handed over yet.
  uint32_t pending_count() const { return tail_ - (use_.kernel_thread ? published_tail_ : published_head()); }

  // Hands over what is pending and waits until `wait_count` completions are there. Returns 0 or more, or
  // -errno: -EINTR, -EAGAIN and -EBUSY may be tried again. Does not wait after an error. A thread of the kernel that sleeps and
  // cannot be woken is handed nothing. Cost: a system call for every four that are pending, at least one; none while a thread of
  // the kernel looks for submissions, two to wake it.
  long enter(uint32_t wait_count);

  // Takes the next completion; false if there is none. No system call.
  bool next_completion(uint64_t& user_data, int32_t& result);

  // Must the thread enter the kernel for completions to appear, even without waiting?
  bool needs_enter() const;

  // Takes back the newest entry that has not been handed over; returns its user data. No system call.
  // REQUIRES: pending_count() > 0.
  uint64_t take_back();

 private:
  uint32_t published_head() const;
  bool flags_say(uint32_t flags) const;
  // The entry of submission `index`, counted since the ring was opened.
  io_uring_sqe* entry(uint32_t index) const { return &entries_[(index & submission_mask_) << doubled_]; }

  IoRingUse use_;
  bool files_are_fixed_ = false;
  uint32_t doubled_ = 0;  // 1: entries and completions are twice as long as their types
  int descriptor_ = -1;
  long process_ = 0;  // the one that opened the ring
  uint32_t entry_count_ = 0;
  uint32_t submission_count_ = 0;  // how many entries there are
  uint32_t submission_mask_ = 0;
  uint32_t completion_mask_ = 0;
  uint32_t tail_ = 0;             // of submissions; enter() publishes it
  uint32_t published_tail_ = 0;   // with a thread of the kernel: same as *submission_tail_
  uint32_t completion_head_ = 0;  // same as *completions_head_, which only we store to
  uint32_t* submission_head_ = nullptr;
  uint32_t* submission_tail_ = nullptr;
  uint32_t* submission_flags_ = nullptr;
  uint32_t* completions_head_ = nullptr;
  uint32_t* completions_tail_ = nullptr;
  io_uring_sqe* entries_ = nullptr;
  io_uring_cqe* completions_ = nullptr;
  char* rings_ = nullptr;
  size_t rings_bytes_ = 0;
  size_t entries_bytes_ = 0;
};

}  // namespace sys
