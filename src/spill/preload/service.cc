#include "spill/preload/service.h"

#include <sys/mman.h>

#include "spill/preload/pager.h"
#include "spill/runtime.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/memory.h"
#include "sys/threads.h"

namespace spill::preload {
namespace {

using base::kOsPageBytes;

enum class Question : uint32_t { kNone, kDiscard, kRelocate };

struct Line {
  sys::Mutex lock;  // held by whoever asks
  std::atomic<Question> question{Question::kNone};
  uint64_t address = 0, from = 0, bytes = 0;
};

constinit Line line;
constinit uint64_t doorbell = 0;
constinit sys::UserFaults faults;
constinit Pager pager;
constinit base::Error start_error;
constinit bool has_own_table = false;
constinit std::atomic<uint32_t> ready{0};  // 1 the thread has opened everything, 2 it could not: start_error
// The page that is supplied for the doorbell.
alignas(base::kOsPageBytes) constinit char doorbell_page[base::kOsPageBytes] = {};

// Gives the calling thread a descriptor table of its own that has only the runtime's descriptors.
void leave_descriptors() {
  constexpr unsigned kUnshare = 2;  // CLOSE_RANGE_UNSHARE
  int own[sys::kMaxOwnDescriptors];
  const size_t count = sys::own_descriptors(own);
  const auto fault_descriptor = static_cast<unsigned>(faults.descriptor());
  const auto keeps = [&](unsigned descriptor) {
    if (descriptor == fault_descriptor) return true;
    for (size_t i = 0; i < count; ++i)
      if (static_cast<unsigned>(own[i]) == descriptor) return true;
    return false;
  };
  // An empty range at the end: unshares, and closes nothing. If that is forbidden (seccomp), the table stays shared.
  if (sys::failed(sys::syscall(SYS_close_range, ~0u, ~0u, kUnshare))) return;
  has_own_table = true;
  unsigned highest = fault_descriptor;
  for (size_t i = 0; i < count; ++i) highest = std::max(highest, static_cast<unsigned>(own[i]));
  sys::syscall(SYS_close_range, highest + 1, ~0u, 0);
  for (unsigned first = 0; first <= highest;) {
    unsigned end = first;
    while (end <= highest && !keeps(end)) ++end;
    if (end > first) sys::syscall(SYS_close_range, first, end - 1, 0);
    first = end + 1;
  }
}

void answer() {
  switch (line.question.load(std::memory_order_acquire)) {
    case Question::kNone: return;
    case Question::kDiscard: pager.discard(line.address, line.bytes); break;
    case Question::kRelocate: pager.relocate(line.address, line.from, line.bytes); break;
  }
  line.question.store(Question::kNone, std::memory_order_release);
}

// Step 3.
void answer_doorbell() {
  answer();
  if (faults.copy(doorbell, doorbell_page, kOsPageBytes) < 0) faults.wake(doorbell, kOsPageBytes);
}

void tell_ready(uint32_t value) {
  ready.store(value, std::memory_order_release);
  sys::futex_wake(ready, 1);
}

void serve(void*) {
  leave_descriptors();
  if (auto opened = pager.open(faults, *runtime.device, runtime.options.memory); !opened) {
    start_error = opened.error();
    tell_ready(2);
    return;
  }
  tell_ready(1);
  for (;;) {
    uint64_t missing[16];
    const size_t count = faults.wait(missing);
    for (size_t i = 0; i < count; ++i) {
      if (missing[i] == doorbell)
        answer_doorbell();
      else
        pager.serve(missing[i]);
    }
  }
}

// The thread of a child of fork.
void refuse_all(void*) {
  leave_descriptors();
  tell_ready(1);
  uint64_t missing[16];
  while (faults.wait(missing) == 0) {
  }
  if (has_own_table) sys::borrow_error_output();
  end_process(base::Error::of(ENOMEM,
                              "a child of fork touched spilled memory of its parent, which it does not have; "
                              "start it with exec or posix_spawn, or give --preload=0"),
              kFatalStatus);
}

void ask(Question question, uint64_t address, uint64_t from, uint64_t bytes) {
  sys::LockGuard guard(line.lock);
  line.address = address;
  line.from = from;
  line.bytes = bytes;
  line.question.store(question, std::memory_order_release);  // pairs with the load in answer()
  // The load returns when the page is there, usually after the answer. It may be before, if the page was supplied
  // for a fault that was reported twice: then ring again.
  while (line.question.load(std::memory_order_acquire) != Question::kNone) {
    sys::release(reinterpret_cast<void*>(doorbell), kOsPageBytes);
    *reinterpret_cast<volatile char*>(doorbell);
  }
}

// `access`: what the range allows until parts of it are allocated.
base::Expected<void> watch_range(sys::Access access) {
  if (auto opened = faults.open(); !opened) return opened;
  if (auto range = sys::reserve_at(kRangeBegin, kRangeEnd - kRangeBegin, access, "spilled memory"); !range)
    return range;
  sys::syscall(SYS_madvise, kRangeBegin, kRangeEnd - kRangeBegin, MADV_NOHUGEPAGE);
  // A child that is made behind our back must not see zeros instead of pages on storage.
  sys::keep_from_children(reinterpret_cast<void*>(kRangeBegin), kRangeEnd - kRangeBegin);
  return faults.add(kRangeBegin, kRangeEnd - kRangeBegin);
}

base::Expected<void> start(void (*entry)(void*)) {
  ready.store(0, std::memory_order_relaxed);
  if (auto thread = sys::start_thread(entry, nullptr, "spillway"); !thread)
    return std::unexpected(thread.error());
  while (ready.load(std::memory_order_acquire) == 0) sys::futex_wait(ready, 0);
  if (has_own_table) sys::syscall(SYS_close, faults.descriptor());  // the thread keeps its own
  if (ready.load(std::memory_order_relaxed) == 2) return std::unexpected(start_error);
  return {};
}

}  // namespace

base::Expected<void> start_service() {
  if (auto watched = watch_range(sys::Access::kNone); !watched) return watched;
  auto page = sys::map_anonymous(kOsPageBytes, "the doorbell");
  if (!page) return std::unexpected(page.error());
  doorbell = reinterpret_cast<uint64_t>(*page);
  if (auto added = faults.add(doorbell, kOsPageBytes); !added) return added;
  return start(serve);
}

base::Expected<void> start_child_service() {
  if (auto watched = watch_range(sys::Access::kReadWrite); !watched) return watched;
  return start(refuse_all);
}

void ask_discard(uint64_t address, uint64_t bytes) { ask(Question::kDiscard, address, 0, bytes); }
void ask_relocate(uint64_t to, uint64_t from, uint64_t bytes) { ask(Question::kRelocate, to, from, bytes); }

}  // namespace spill::preload
