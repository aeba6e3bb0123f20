#include "spill/testing/fake_runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mix.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/fork.h"
#include "spill/last_thread.h"
#include "spill/next.h"
#include "spill/pins.h"
#include "spill/shared_maps.h"
#include "spill/thread.h"
#include "sys/memory.h"

using spill::kRangeBegin;

constinit __thread spill::Slot* __spillway_slots = nullptr;
constinit std::atomic<bool> spillway_has_globals{false};
constinit std::atomic<uint32_t> spill::loop_task_count{0};
bool spill::is_global(uint64_t) { return false; }
uint64_t spill::bytes_before_globals(uint64_t, uint64_t bytes) { return bytes; }
bool spill::is_sharing_child() { return false; }
void spill::forget_shared_maps(const void*, uint64_t) {}
void spill::count_endless_thread() {}
bool spill::is_only_thread() { return true; }

namespace {

constexpr size_t kPageBytes = base::kOsPageBytes;
constexpr size_t kPageCount = 96 << 10;
constexpr size_t kFrameCount = kPageCount + 64;

std::recursive_mutex lock;
char* frames;
std::vector<uint32_t> frame_of_page;  // index + 1, 0: belongs to no allocation
std::vector<uint32_t> pins_of_page;
std::vector<uint32_t> free_frames;
size_t pages_used = 1;
size_t pins = 0;
size_t taken_pins = 0;
bool moving = false;
uint64_t translation_count = 0;
uint64_t random_state = 0;

uint64_t random_number() { return base::mix(random_state += base::kMixStep); }

uint64_t page_address(size_t page) { return kRangeBegin + page * kPageBytes; }
char* frame_address(uint32_t frame) { return frames + size_t{frame} * kPageBytes; }

// Any frame but the one after that of the page before, so that no two pages are contiguous.
uint32_t take_frame(size_t page) {
  for (;;) {
    const size_t i = random_number() % free_frames.size();
    const uint32_t frame = free_frames[i];
    if (page > 0 && frame_of_page[page - 1] == frame) continue;  // stored + 1
    free_frames[i] = free_frames.back();
    free_frames.pop_back();
    return frame;
  }
}

void publish(size_t page) {
  spill::entry_of(page_address(page))
      .store(static_cast<int64_t>(reinterpret_cast<uint64_t>(frame_address(frame_of_page[page] - 1)) -
                                  page_address(page) + 1),
             std::memory_order_release);
}

bool is_held(size_t page) {
  if (pins_of_page[page] != 0) return true;
  for (unsigned i = 0; i < spill::kAllSlotCount; ++i) {
    const uint64_t address = __spillway_slots[i].load(std::memory_order_relaxed);
    if (spill::in_range(address) && (address - kRangeBegin) / kPageBytes == page) return true;
  }
  return false;
}

void move_page(size_t page) {
  if (frame_of_page[page] == 0 || is_held(page)) return;
  const uint32_t old_frame = frame_of_page[page] - 1;
  const uint32_t new_frame = take_frame(page);
  memcpy(frame_address(new_frame), frame_address(old_frame), kPageBytes);
  memset(frame_address(old_frame), 0xdb, kPageBytes);
  frame_of_page[page] = new_frame + 1;
  free_frames.push_back(old_frame);
  spill::entry_of(page_address(page)).store(0, std::memory_order_release);
}

// The pages around the one just translated are the ones that a broken interceptor still points at.
void move_around(size_t page) {
  for (size_t near = page > 3 ? page - 3 : 0; near < page + 3 && near < pages_used; ++near) move_page(near);
  move_page(random_number() % pages_used);
}

}  // namespace

int64_t spillway_translate(uint64_t address, uint64_t) {
  std::lock_guard guard(lock);
  ++translation_count;
  if (!spill::in_range(address)) return 1;
  const size_t page = (address - kRangeBegin) / kPageBytes;
  CHECK_LT(page, kPageCount);
  CHECK_NE(frame_of_page[page], 0u);  // touched a page that belongs to no allocation
  if (moving) move_around(page);
  publish(page);
  return spill::entry_of(address).load(std::memory_order_relaxed);
}

namespace spill {

char* pin_page_piece(uint64_t address, Need) {
  std::lock_guard guard(lock);
  const size_t page = (address - kRangeBegin) / kPageBytes;
  const int64_t entry = spillway_translate(address, 0);
  ++pins_of_page[page];
  ++pins;
  return reinterpret_cast<char*>(address + static_cast<uint64_t>(entry) - 1);
}

void will_pin(uint64_t, uint64_t, Need) {}

void unpin_page_piece(uint64_t address) {
  std::lock_guard guard(lock);
  const size_t page = (address - kRangeBegin) / kPageBytes;
  CHECK_GT(pins_of_page[page], 0u);
  --pins_of_page[page];
  --pins;
}

size_t take_pins(size_t wanted) {
  std::lock_guard guard(lock);
  constexpr size_t kShare = 7;
  const size_t count = taken_pins < kShare ? std::min(wanted, kShare - taken_pins) : 1;
  taken_pins += count;
  return count;
}
void give_pins_back(size_t count) {
  std::lock_guard guard(lock);
  CHECK_GE(taken_pins, count);
  taken_pins -= count;
}

bool is_allocated(uint64_t address) {
  std::lock_guard guard(lock);
  const size_t page = (address - kRangeBegin) / kPageBytes;
  return page < kPageCount && frame_of_page[page] != 0;
}
uint64_t same_allocation_end(uint64_t, uint64_t end) { return end; }

// Nothing is protected here.
Protection protection_at(uint64_t) { return Protection::kOpen; }
uint64_t same_protection_end(uint64_t, uint64_t end) { return end; }
bool allows(Protection, Need) { return true; }

namespace {
// Freed when the thread ends; after that the thread has none.
struct Record {
  ~Record() {
    __spillway_slots = nullptr;
    free(thread);
    thread = nullptr;
  }
  Thread* thread = nullptr;
};
thread_local Record current;
}  // namespace

Thread& register_thread() {
  current.thread = static_cast<Thread*>(aligned_alloc(kRecordBytes, kRecordBytes));
  memset(static_cast<void*>(current.thread), 0, kRecordBytes);
  __spillway_slots = current.thread->levels[0].slots;
  return *current.thread;
}
void InRuntime::deliver_deferred(Thread&) {}
long copy_process_by_number(long, const long*) { return -1; }
bool can_clone(long, const void*) { return true; }
long call_by_number(long number, const long* a) {
  return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void* find_next(const char* name, const char*) {
  void* found = dlsym(RTLD_DEFAULT, name);
  CHECK(found != nullptr);
  return found;
}

}  // namespace spill

extern "C" int __spill_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                      void* (*routine)(void*), void* argument) {
  using Start = std::pair<void* (*)(void*), void*>;
  return pthread_create(
      thread, attributes,
      [](void* start) -> void* {
        const Start given = *static_cast<Start*>(start);
        delete static_cast<Start*>(start);
        fake::enter_thread();
        return given.first(given.second);
      },
      new Start(routine, argument));
}

namespace fake {

void start() {
  static const bool started = [] {
    CHECK(sys::reserve_at(spill::kTableBase, uint64_t{8} << (47 - spill::kTableShift),
                          sys::Access::kReadWrite, "table")
              .has_value());
    CHECK(sys::reserve_at(kRangeBegin, kPageCount * kPageBytes, sys::Access::kNone, "spilled memory")
              .has_value());
    frames = *sys::map_anonymous(kFrameCount * kPageBytes, "frames");
    frame_of_page.resize(kPageCount + 1);
    pins_of_page.resize(kPageCount + 1);
    for (uint32_t frame = kFrameCount; frame-- > 0;) free_frames.push_back(frame);
    return true;
  }();
  CHECK(started);
  enter_thread();
}

void enter_thread() { spill::this_thread().thread_id = static_cast<uint32_t>(gettid()); }

char* allocate(size_t bytes, size_t offset) {
  std::lock_guard guard(lock);
  const size_t first = pages_used + 1;
  const size_t count = (offset + bytes + kPageBytes - 1) / kPageBytes;
  CHECK_LT(first + count + 1, kPageCount);
  for (size_t page = first; page < first + count; ++page) {
    const uint32_t frame = take_frame(page);
    memset(frame_address(frame), 0, kPageBytes);
    frame_of_page[page] = frame + 1;
  }
  pages_used = first + count;
  return reinterpret_cast<char*>(page_address(first) + offset);
}

void set_moving(bool on) {
  std::lock_guard guard(lock);
  moving = on;
}

void expect_nothing_held() {
  // memcpy and its kin may leave addresses in the scratch slots, as compiled code does (intercept/quick.h).
  for (unsigned i = 2; i < spill::kAllSlotCount; ++i) CHECK_EQ(__spillway_slots[i].load(), 0u);
  CHECK_EQ(pins, 0u);
  CHECK_EQ(taken_pins, 0u);
  CHECK_EQ(spill::this_thread().scratch_used_bytes, 0u);
}

uint64_t translations() { return translation_count; }

}  // namespace fake

// A heap that never frees: the size lies before the block, in spilled memory too.
extern "C" void* __spill_malloc(size_t bytes) {
  char* block = fake::allocate(bytes + 16, 4096 - (bytes & 31) - 17) + 16;
  spill::copy(block - 16, &bytes, sizeof bytes);
  return block;
}

extern "C" void* __spill_realloc(void* old, size_t bytes) {
  auto* block = static_cast<char*>(__spill_malloc(bytes));
  if (old != nullptr) {
    size_t old_bytes;
    spill::copy(&old_bytes, static_cast<char*>(old) - 16, sizeof old_bytes);
    spill::copy(block, old, old_bytes < bytes ? old_bytes : bytes);
  }
  return block;
}

extern "C" void __spill_free(void*) {}
