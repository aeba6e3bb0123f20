#include "spill/fork.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>

#include "base/check.h"
#include "spill/fault.h"
#include "spill/last_thread.h"
#include "spill/parking.h"
#include "spill/runtime.h"
#include "sys/files.h"
#include "sys/kernel.h"

namespace spill {
namespace {

constexpr long kPatienceMs = 100;

// The shared word: kThawed, and kCopying while the child copies.
constexpr uint32_t kThawed = 1;
constexpr uint32_t kCopying = 2;

// Of the fork under way; in a child, of the fork that made it.
constinit std::atomic<uint32_t>* word = nullptr;
constinit int parent_end = -1;
constinit int child_end = -1;

// A pipe with high numbers; -1 twice when there is none to be had.
void open_pipe() {
  int ends[2];
  if (sys::failed(sys::syscall(SYS_pipe2, ends, O_CLOEXEC))) return;
  auto first = sys::own_descriptor(ends[0]);
  auto second = sys::own_descriptor(ends[1]);
  if (first && second) {
    parent_end = *first;
    child_end = *second;
    return;
  }
  first ? sys::close_own_descriptor(*first) : static_cast<void>(sys::syscall(SYS_close, ends[0]));
  second ? sys::close_own_descriptor(*second) : static_cast<void>(sys::syscall(SYS_close, ends[1]));
}

void close_end(int& end) {
  if (end >= 0) sys::close_own_descriptor(end);
  end = -1;
}

bool is_parent_to_be() {
  return runtime.started.load(std::memory_order_relaxed) && !runtime.is_fork_child.load(std::memory_order_relaxed);
}

// Step 1.
void before_fork() {
  if (!is_parent_to_be()) return;
  runtime.cache->freeze();
  const long page = sys::syscall(SYS_mmap, 0, base::kOsPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  word = sys::failed(page) ? nullptr : reinterpret_cast<std::atomic<uint32_t>*>(page);
  open_pipe();
}

// Steps 3 and 4. Also called when fork failed: then the pipe has no other end.
void after_fork_in_parent() {
  if (!is_parent_to_be()) return;
  close_end(child_end);
  if (word != nullptr) {
    pollfd closed = {parent_end, POLLIN, 0};
    if (parent_end >= 0) sys::syscall(SYS_poll, &closed, 1, kPatienceMs);
    // Pairs with the addition in copy_for_child: one of the two sees the other.
    word->fetch_or(kThawed, std::memory_order_seq_cst);
    while ((word->load(std::memory_order_acquire) & ~kThawed) != 0) {
      // The child may have died on the way.
      if (parent_end < 0 || sys::syscall(SYS_poll, &closed, 1, 1) != 0) break;
    }
    sys::syscall(SYS_munmap, word, base::kOsPageBytes);
    word = nullptr;
  }
  close_end(parent_end);
  runtime.cache->thaw();
}

// Step 2.
void after_fork_in_child() {
  if (!runtime.started.load(std::memory_order_relaxed)) return;
  if (runtime.is_fork_child.load(std::memory_order_relaxed)) return;  // as its parent, which is a child
  runtime.is_fork_child.store(true, std::memory_order_relaxed);
  close_end(parent_end);
  keep_only_this_thread();
  forget_waiters();
  count_only_this_thread();
  forget_mappings();
  for (uint32_t i = 0; i < runtime.cache->partition_count(); ++i) {
    const auto pool = runtime.cache->pool(i);
    sys::syscall(SYS_mmap, pool.begin, pool.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  runtime.cache->thaw();
}

bool copy_page(const cache::Cache::Pool& pool, uint64_t page) {
  const uint64_t offset = page - reinterpret_cast<uint64_t>(pool.begin);
  const long mapped = sys::syscall(SYS_mmap, page, base::kOsPageBytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (sys::failed(mapped)) return false;
  const long bytes = sys::syscall(SYS_pread64, pool.descriptor, reinterpret_cast<void*>(page), base::kOsPageBytes, offset);
  sys::syscall(SYS_mprotect, page, base::kOsPageBytes, PROT_READ);
  return bytes == static_cast<long>(base::kOsPageBytes);
}

}  // namespace

void watch_forks() { CHECK_EQ(pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child), 0); }

bool copy_for_child(uint64_t address) {
  if (word == nullptr) return false;
  for (uint32_t i = 0; i < runtime.cache->partition_count(); ++i) {
    const auto pool = runtime.cache->pool(i);
    if (address - reinterpret_cast<uint64_t>(pool.begin) >= pool.bytes) continue;
    const uint32_t before = word->fetch_add(kCopying, std::memory_order_seq_cst);
    const bool copied = (before & kThawed) == 0 && copy_page(pool, base::round_down(address, base::kOsPageBytes));
    word->fetch_sub(kCopying, std::memory_order_release);
    return copied;
  }
  return false;
}

}  // namespace spill
