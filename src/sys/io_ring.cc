#include "sys/io_ring.h"

#include <sys/mman.h>

#include <atomic>

#include "base/check.h"
#include "sys/barrier.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace sys {
namespace {

// The kernel passes requests that are handed over together on to the device only when it has prepared all of them; disks with deep
// queues are idle meanwhile. So no more than this are handed over at a time.
constexpr uint32_t kMaxHandedAtOnce = 4;

// A ring may have an Event beside it, for its thread to sleep on. Some of the descriptors that files.h can record are left for everything else.
constexpr uint32_t kMaxRings = 192;
static_assert(2 * kMaxRings + 128 <= kMaxOwnDescriptors);
constinit std::atomic<uint32_t> ring_count{0};

base::Expected<void> count_ring() {
  // Relaxed: a count, publishes nothing.
  if (ring_count.fetch_add(1, std::memory_order_relaxed) < kMaxRings) return {};
  ring_count.fetch_sub(1, std::memory_order_relaxed);
  return base::failure(EMFILE, "the process has ", kMaxRings, " io_urings already");
}

uint32_t load_acquire(uint32_t* word) {
  return std::atomic_ref<uint32_t>(*word).load(std::memory_order_acquire);
}
void store_release(uint32_t* word, uint32_t value) {
  std::atomic_ref<uint32_t>(*word).store(value, std::memory_order_release);
}

long set_up(uint32_t entry_count, uint32_t flags, io_uring_params& parameters) {
  parameters = {};
  parameters.flags = flags;
  if (flags & IORING_SETUP_SQPOLL) parameters.sq_thread_idle = IoRing::kKernelThreadIdleMs;
  return syscall(SYS_io_uring_setup, entry_count, &parameters);
}

long map_ring(int descriptor, uint64_t offset, size_t bytes) {
  long address =
      syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, offset);
  note_map();
  if (!failed(address)) syscall(SYS_madvise, address, bytes, MADV_DONTFORK);
  return address;
}

base::Error set_up_error(long result) {
  const int number = static_cast<int>(-result);
  return base::Error::of(number, "io_uring: ", base::error_name(number));
}

base::Expected<int> set_up_owned(uint32_t entry_count, const IoRingUse& use, io_uring_params& parameters) {
  const uint32_t always = (use.polls_device ? IORING_SETUP_IOPOLL : 0) |
                          (use.kernel_thread ? IORING_SETUP_SQPOLL : 0) |
                          (use.takes_commands ? IORING_SETUP_SQE128 | IORING_SETUP_CQE32 : 0);
  long descriptor = -EINVAL;
  if (!use.kernel_thread) {
    constexpr uint32_t kOneThread =
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    if (use.by_one_thread) descriptor = set_up(entry_count, kOneThread | always, parameters);
    // The kernel finishes requests when the thread enters it anyway, instead of interrupting the thread. Linux 5.19.
    constexpr uint32_t kAnyThread = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    if (descriptor == -EINVAL) descriptor = set_up(entry_count, kAnyThread | always, parameters);
  }
  if (descriptor == -EINVAL) descriptor = set_up(entry_count, always, parameters);
  if (failed(descriptor)) return std::unexpected(set_up_error(descriptor));
  // FAST_POLL came with 5.7, after all the operations that we use.
  uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL;
  if (use.kernel_thread) needed |= IORING_FEAT_SQPOLL_NONFIXED;
  if ((parameters.features & needed) != needed) {
    syscall(SYS_close, descriptor);
    return base::failure(EOPNOTSUPP, "io_uring: this kernel's lacks what is needed (Linux 5.7)");
  }
  return own_new_descriptor(descriptor);
}

}  // namespace

base::Expected<void> IoRing::probe() {
  io_uring_params parameters;
  const long result = set_up(0, 0, parameters);
  if (result == -EINVAL) return {};  // refused for its count, after all other checks
  return std::unexpected(set_up_error(result));
}

base::Expected<void> IoRing::open(uint32_t entry_count, const IoRingUse& use) {
  CHECK_GE(entry_count, 1u);
  if (auto counted = count_ring(); !counted) return counted;
  io_uring_params parameters;
  const uint32_t entries_for_each = use.kernel_thread ? 2 : 1;
  auto owned = set_up_owned(entries_for_each * entry_count, use, parameters);
  if (!owned) {
    ring_count.fetch_sub(1, std::memory_order_relaxed);
    return std::unexpected(owned.error());
  }
  use_ = use;
  doubled_ = use.takes_commands ? 1 : 0;
  descriptor_ = *owned;
  process_ = syscall(SYS_getpid);

  size_t submissions_end = parameters.sq_off.array + parameters.sq_entries * sizeof(uint32_t);
  size_t completions_end =
      parameters.cq_off.cqes + (parameters.cq_entries * sizeof(io_uring_cqe) << doubled_);
  rings_bytes_ = submissions_end > completions_end ? submissions_end : completions_end;
  entries_bytes_ = parameters.sq_entries * sizeof(io_uring_sqe) << doubled_;
  long rings = map_ring(descriptor_, IORING_OFF_SQ_RING, rings_bytes_);
  long entries = failed(rings) ? rings : map_ring(descriptor_, IORING_OFF_SQES, entries_bytes_);
  if (!failed(rings)) rings_ = reinterpret_cast<char*>(rings);
  if (failed(entries)) {
    close();
    int number = static_cast<int>(-entries);
    return base::failure(number, "io_uring: cannot map the rings: ", base::error_name(number));
  }
  entries_ = reinterpret_cast<io_uring_sqe*>(entries);

  auto word = [&](uint32_t offset) { return reinterpret_cast<uint32_t*>(rings_ + offset); };
  submission_count_ = parameters.sq_entries;
  entry_count_ = submission_count_ / entries_for_each;
  submission_mask_ = *word(parameters.sq_off.ring_mask);
  submission_head_ = word(parameters.sq_off.head);
  submission_tail_ = word(parameters.sq_off.tail);
  submission_flags_ = word(parameters.sq_off.flags);
  completion_mask_ = *word(parameters.cq_off.ring_mask);
  completions_head_ = word(parameters.cq_off.head);
  completions_tail_ = word(parameters.cq_off.tail);
  completions_ = reinterpret_cast<io_uring_cqe*>(rings_ + parameters.cq_off.cqes);
  tail_ = published_tail_ = *submission_tail_;
  completion_head_ = *completions_head_;
  // Submission i always uses entry i.
  for (uint32_t i = 0; i < submission_count_; ++i) word(parameters.sq_off.array)[i] = i;
  return {};
}

void IoRing::close() {
  if (descriptor_ < 0) return;
  // In a child of fork something else may be mapped there.
  if (process_ == syscall(SYS_getpid)) {
    // The kernel closes registered files some time after the ring: too late for whoever opens such a file again.
    if (files_are_fixed_) syscall(SYS_io_uring_register, descriptor_, IORING_UNREGISTER_FILES, nullptr, 0);
    unmap(entries_, entries_bytes_);
    unmap(rings_, rings_bytes_);
  }
  close_own_descriptor(descriptor_);
  ring_count.fetch_sub(1, std::memory_order_relaxed);
  *this = IoRing();
}

uint32_t IoRing::published_head() const { return load_acquire(submission_head_); }

bool IoRing::flags_say(uint32_t flags) const { return (load_acquire(submission_flags_) & flags) != 0; }

bool IoRing::tell(int eventfd) {
  return !failed(syscall(SYS_io_uring_register, descriptor_, IORING_REGISTER_EVENTFD, &eventfd, 1));
}

bool IoRing::fix_files(std::span<const int> files) {
  CHECK(!files_are_fixed_);
  files_are_fixed_ =
      !failed(syscall(SYS_io_uring_register, descriptor_, IORING_REGISTER_FILES, files.data(), files.size()));
  return files_are_fixed_;
}

bool IoRing::fix_memory(const iovec* pieces, uint32_t piece_count) {
  syscall(SYS_io_uring_register, descriptor_, IORING_UNREGISTER_BUFFERS, nullptr, 0);
  return !failed(syscall(SYS_io_uring_register, descriptor_, IORING_REGISTER_BUFFERS, pieces, piece_count));
}

io_uring_sqe* IoRing::next_submission() {
  if (pending_count() == entry_count_) return nullptr;
  CHECK_LT(tail_ - published_head(), submission_count_);
  io_uring_sqe* next = entry(tail_++);
  for (uint32_t i = 0; i <= doubled_; ++i) next[i] = {};
  return next;
}

long IoRing::enter(uint32_t wait_count) {
  uint32_t pending = pending_count();
  uint32_t flags = wait_count > 0 || needs_enter() ? IORING_ENTER_GETEVENTS : 0;
  if (use_.kernel_thread && pending > 0 && flags_say(IORING_SQ_NEED_WAKEUP)) {
    const long woken = syscall(SYS_io_uring_enter, descriptor_, 0, 0, IORING_ENTER_SQ_WAKEUP, nullptr, 0);
    if (failed(woken)) return woken;
  }
  store_release(submission_tail_, tail_);  // pairs with the kernel's load
  if (use_.kernel_thread) {
    published_tail_ = tail_;
    // The kernel's thread sets the flag before it sleeps, and then looks at the tail once more.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (flags_say(IORING_SQ_NEED_WAKEUP)) flags |= IORING_ENTER_SQ_WAKEUP;
    if (flags == 0) return 0;
  } else {
    while (pending > kMaxHandedAtOnce) {
      const long taken = syscall(SYS_io_uring_enter, descriptor_, kMaxHandedAtOnce, 0, 0, nullptr, 0);
      if (taken <= 0) return taken;
      pending -= static_cast<uint32_t>(taken);
    }
  }
  return syscall(SYS_io_uring_enter, descriptor_, pending, wait_count, flags, nullptr, 0);
}

bool IoRing::next_completion(uint64_t& user_data, int32_t& result) {
  if (completion_head_ == load_acquire(completions_tail_)) return false;  // pairs with the kernel's store
  const io_uring_cqe& completion = completions_[(completion_head_ & completion_mask_) << doubled_];
  user_data = completion.user_data;
  result = completion.res;
  store_release(completions_head_, ++completion_head_);
  return true;
}

bool IoRing::needs_enter() const {
  return use_.polls_device || flags_say(IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

uint64_t IoRing::take_back() {
  CHECK_GT(pending_count(), 0u);
  // The kernel reads the tail only in enter(), which stores it first; a thread of the kernel has not seen this entry.
  --tail_;
  return entry(tail_)->user_data;
}

}  // namespace sys
