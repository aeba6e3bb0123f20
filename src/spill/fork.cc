#include "spill/fork.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "spill/fault.h"
#include "spill/intercept/parking.h"
#include "spill/last_thread.h"
#include "spill/runtime.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/memory.h"

namespace spill {
namespace {

// How long the parent waits: what the child had of a processor or slept by its own will; and in all.
constexpr uint64_t kPatienceMs = 100;
constexpr uint64_t kMostPatienceMs = 5000;
constexpr uint64_t kStepMs = 10;

// What parent and child share. The word holds kThawed, and kCopying while the child copies.
constexpr uint32_t kThawed = 1;
constexpr uint32_t kCopying = 2;
struct Shared {
  std::atomic<uint32_t> word;
  std::atomic<long> child;  // its process, once it runs
};

// Of the fork under way; in a child, of the fork that made it.
constinit Shared* shared = nullptr;
constinit int parent_end = -1;
constinit int child_end = -1;

// Of a child: which OS pages of each pool it has copied, a bit each; and the lock of its threads.
constinit uint64_t* copied_bits[cache::Cache::kMaxPartitions] = {};
constinit sys::Mutex copy_mutex;

// A pipe with high numbers; -1 twice when there is none to be had.
void open_pipe() {
  int ends[2];
  if (sys::failed(sys::syscall(SYS_pipe2, ends, O_CLOEXEC))) return;
  if (!sys::own_descriptor_pair(ends)) return;
  parent_end = ends[0];
  child_end = ends[1];
}

void close_end(int& end) {
  if (end >= 0) sys::close_own_descriptor(end);
  end = -1;
}

// How far the child has come. A machine that is busy with others, or a slow disk, is not its fault.
class Progress {
 public:
  // Of the kStepMs that have just passed, those that the child ran or slept by its own will.
  uint64_t step_ms(long child) {
    if (child == 0) return 0;
    char text[256];
    if (!read_facts(child, "/schedstat", text)) return kStepMs;  // nanoseconds that it ran, ...
    uint64_t ran_ns = 0;
    for (const char* at = text; *at >= '0' && *at <= '9'; ++at)
      ran_ns = ran_ns * 10 + static_cast<uint64_t>(*at - '0');
    const uint64_t ran_ms = (ran_ns - ran_ns_) / 1'000'000;
    ran_ns_ = ran_ns;
    if (!read_facts(child, "/stat", text)) return kStepMs;  // number (name) state ...
    const std::string_view facts(text);
    const size_t name_end = facts.rfind(") ");
    const char state = name_end == facts.npos ? 'S' : text[name_end + 2];
    return (state == 'R' || state == 'D') && ran_ms < kStepMs ? ran_ms : kStepMs;
  }

 private:
  static bool read_facts(long child, const char* file, std::span<char> to) {
    base::Text<48> path;
    path << "/proc/" << child << file;
    return sys::read_small_file(path.c_str(), to) > 0;
  }

  uint64_t ran_ns_ = 0;
};

// Until the child has closed its end by exec or its end, or used up our patience.
void wait_for_child() {
  if (parent_end < 0) return;
  Progress progress;
  uint64_t worked_ms = 0;
  for (uint64_t ms = 0; ms < kMostPatienceMs && worked_ms < kPatienceMs; ms += kStepMs) {
    pollfd closed = {parent_end, POLLIN, 0};
    if (sys::syscall(SYS_poll, &closed, 1, kStepMs) == 1) return;
    worked_ms += progress.step_ms(shared->child.load(std::memory_order_acquire));
  }
}

bool is_parent_to_be() {
  return runtime.started.load(std::memory_order_relaxed) &&
         !runtime.is_fork_child.load(std::memory_order_relaxed);
}

}  // namespace

// Step 1.
void before_fork() {
  if (!is_parent_to_be()) return;
  runtime.cache->freeze();
  const long page = sys::syscall(SYS_mmap, 0, base::kOsPageBytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared = sys::failed(page) ? nullptr : reinterpret_cast<Shared*>(page);
  open_pipe();
}

// Steps 3 and 4. Also called when fork failed: then the pipe has no other end.
void after_fork_in_parent() {
  if (!is_parent_to_be()) return;
  close_end(child_end);
  if (shared != nullptr) {
    wait_for_child();
    // Pairs with the addition in Window: one of the two sees the other.
    shared->word.fetch_or(kThawed, std::memory_order_seq_cst);
    while ((shared->word.load(std::memory_order_acquire) & ~kThawed) != 0) {
      // The child may have died on the way.
      pollfd closed = {parent_end, POLLIN, 0};
      if (parent_end < 0 || sys::syscall(SYS_poll, &closed, 1, 1) == 1) break;
    }
    sys::syscall(SYS_munmap, shared, base::kOsPageBytes);
    shared = nullptr;
  }
  close_end(parent_end);
  runtime.cache->thaw();
}

// Step 2.
void after_fork_in_child() {
  if (!runtime.started.load(std::memory_order_relaxed)) return;
  if (runtime.is_fork_child.load(std::memory_order_relaxed)) return;  // as its parent, which is a child
  runtime.is_fork_child.store(true, std::memory_order_relaxed);
  if (shared != nullptr) shared->child.store(sys::syscall(SYS_getpid), std::memory_order_release);
  close_end(parent_end);
  keep_only_this_thread();
  forget_waiters();
  count_only_this_thread();
  forget_mappings();
  for (uint32_t i = 0; i < runtime.cache->partition_count(); ++i) {
    const auto pool = runtime.cache->pool(i);
    sys::syscall(SYS_mmap, pool.begin, pool.bytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  runtime.cache->thaw();
}

namespace {

// The time in which the parent's frames and storage stand still, as long as it has not ended yet.
class Window {
 public:
  Window() {
    if (shared == nullptr) return;
    is_open_ = (shared->word.fetch_add(kCopying, std::memory_order_seq_cst) & kThawed) == 0;
  }
  ~Window() {
    if (shared != nullptr) shared->word.fetch_sub(kCopying, std::memory_order_release);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  bool is_open() const { return is_open_; }

 private:
  bool is_open_ = false;
};

bool map_own(uint64_t address, uint64_t bytes) {
  return !sys::failed(sys::syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

// A page is the child's before its content is, and a copy that one thread stores to may be copied again for
// another: a child of several threads must not see either. REQUIRES: copy_mutex.
void end_with_threads() {
  if (thread_count() > 1) end_fork_child("has threads when it needs a page of its parent's");
}

// The pool that `address` is in, and the address's OS page in it.
struct PoolPage {
  uint32_t partition;
  cache::Cache::Pool pool;
  uint64_t offset;

  static bool find(uint64_t address, PoolPage& page) {
    for (page.partition = 0; page.partition < runtime.cache->partition_count(); ++page.partition) {
      page.pool = runtime.cache->pool(page.partition);
      page.offset =
          base::round_down(address - reinterpret_cast<uint64_t>(page.pool.begin), base::kOsPageBytes);
      if (page.offset < page.pool.bytes) return true;
    }
    return false;
  }
  uint64_t* bits() const { return copied_bits[partition]; }
  uint64_t number() const { return offset / base::kOsPageBytes; }
  bool is_copied() const { return bits() != nullptr && (bits()[number() / 64] >> (number() % 64) & 1) != 0; }
  bool note_copied() const {
    if (bits() == nullptr) {
      auto memory = sys::map_anonymous(
          base::round_up(pool.bytes / base::kOsPageBytes / 8 + 8, base::kOsPageBytes), "a child's pages");
      if (!memory) return false;
      copied_bits[partition] = reinterpret_cast<uint64_t*>(*memory);
    }
    bits()[number() / 64] |= uint64_t{1} << (number() % 64);
    return true;
  }
  // The parent's content. REQUIRES: an open window.
  bool read_into(uint64_t to) const {
    return sys::syscall(SYS_pread64, pool.descriptor, to, base::kOsPageBytes, offset) ==
           static_cast<long>(base::kOsPageBytes);
  }
};

bool read_place(base::PlaceId place, uint64_t to) {
  iovec segment = {reinterpret_cast<void*>(to), runtime.cache->page_bytes()};
  storage::Io io = {};
  io.operation = storage::Operation::kRead;
  io.offset_bytes = uint64_t{index(place)} * segment.iov_len;
  io.length_bytes = segment.iov_len;
  io.segments = &segment;
  io.segment_count = 1;
  InRuntime inside;
  lane_of(inside.thread()).queue().run(io);
  return io.whole();
}

// Fills the page, mapped at its own address, with what the child's memory holds there. REQUIRES: copy_mutex.
bool fill_own(base::PageId page) {
  const uint64_t to = runtime.cache->address_of(page);
  const auto in_parent = runtime.cache->where_in_parent(page);
  if (in_parent.frame == nullptr && in_parent.place == base::kNoPlace) return true;
  end_with_threads();
  const Window window;
  if (in_parent.frame == nullptr) return window.is_open() && read_place(in_parent.place, to);
  for (uint64_t at = 0; at < runtime.cache->page_bytes(); at += base::kOsPageBytes) {
    PoolPage source;
    if (!PoolPage::find(reinterpret_cast<uint64_t>(in_parent.frame) + at, source)) return false;
    if (source.is_copied())
      spillway_plain_memcpy(reinterpret_cast<char*>(to + at), in_parent.frame + at, base::kOsPageBytes);
    else if (!window.is_open() || !source.read_into(to + at))
      return false;
  }
  return true;
}

void name_own(uint64_t address, uint64_t bytes) {
  for (uint64_t at = address; at < address + bytes; at += base::kOsPageBytes)
    entry_of(at).store(kEntryIdentity, std::memory_order_release);
}

}  // namespace

void watch_forks() { CHECK_EQ(pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child), 0); }

bool copy_for_child(uint64_t address) {
  InRuntime inside;
  sys::LockGuard guard(copy_mutex);
  PoolPage page;
  if (!PoolPage::find(address, page)) return false;
  if (page.is_copied()) return true;
  end_with_threads();
  const Window window;
  const uint64_t to = reinterpret_cast<uint64_t>(page.pool.begin) + page.offset;
  return window.is_open() && map_own(to, base::kOsPageBytes) && page.read_into(to) && page.note_copied();
}

void own_for_child(uint64_t address) {
  InRuntime inside;
  sys::LockGuard guard(copy_mutex);
  if (entry_of(address).load(std::memory_order_relaxed) == kEntryIdentity) return;
  const base::PageId page = runtime.cache->page_of(address);
  const uint64_t begin = runtime.cache->address_of(page);
  if (!map_own(begin, runtime.cache->page_bytes()) || !fill_own(page))
    end_fork_child("needs a page that its parent has changed since");
  name_own(begin, runtime.cache->page_bytes());
}

void keep_for_child(base::PageId page) {
  const uint64_t begin = runtime.cache->address_of(page), bytes = runtime.cache->page_bytes();
  int64_t entry = entry_of(begin).load(std::memory_order_relaxed);
  if (entry < 0) entry = -entry;
  if (entry <= kEntryIdentity) return;
  const auto piece =
      runtime.cache->file_piece(page, reinterpret_cast<char*>(begin + static_cast<uint64_t>(entry) - 1));
  sys::syscall(SYS_mmap, begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, piece.descriptor,
               piece.offset);
  // What is not written would still change with the parent's.
  for (uint64_t at = begin; at < begin + bytes; at += base::kOsPageBytes) {
    auto* byte = reinterpret_cast<volatile char*>(at);
    *byte = *byte;
  }
  name_own(begin, bytes);
}

void wait_for_copy() {
  if (!runtime.is_fork_child.load(std::memory_order_relaxed)) return;
  sys::LockGuard guard(copy_mutex);
}

void zero_for_child(uint64_t address, uint64_t bytes) {
  InRuntime inside;
  sys::LockGuard guard(copy_mutex);
  if (!map_own(address, bytes)) end_fork_child("has no memory left for zeros");
  name_own(address, bytes);
}

}  // namespace spill
