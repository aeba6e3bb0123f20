// Counting instructions: what instrumented kernels need of a runtime, where all memory is resident and nothing leaves.
//
// 1 A simulator of the CPU has no room for spilled memory's addresses: arrays lie at kArrays, and pages at their own
//   address, which costs compiled code the same instructions as a frame.
// 2 The table reaches kReach bytes: far enough for everything that a program has under valgrind, and no further.
// 3 memcpy and its kin, which are the runtime's own, are the C library's: kernels that are about them say nothing here.
// Linked with kernels.cc compiled by spillc++ and the rest compiled natively.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "pages.h"
#include "workspace.h"

namespace {

constexpr uint64_t kTableBase = 0x70000000;
constexpr uint64_t kReach = 1ull << 38;
constexpr uint64_t kArrays = 1ull << 37;
constexpr uint64_t kPageBytes = 4096;
constexpr int64_t kIdentity = 1;
constexpr unsigned kSlots = 32;

int64_t* table() { return reinterpret_cast<int64_t*>(kTableBase); }

char* map(uint64_t address, size_t bytes) {
  void* memory = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("kernels: mmap");
    std::exit(1);
  }
  return static_cast<char*>(memory);
}

uint64_t slots[kSlots];

__attribute__((constructor)) void make_table() { map(kTableBase, kReach / kPageBytes * sizeof(int64_t)); }

}  // namespace

extern "C" {

extern const char flat_abi_table asm("__spillway_abi_table_v1");
const char flat_abi_table = 0;

extern __thread uint64_t* flat_slots asm("__spillway_slots");
__thread uint64_t* flat_slots = slots;

// The slow path, and what crosses a page's edge: keep all registers, as the runtime's do.
#define SLOW_PATH __attribute__((preserve_all))

SLOW_PATH int64_t flat_translate(uint64_t address, uint64_t live) asm("__spillway_translate");
SLOW_PATH int64_t flat_translate(uint64_t address, uint64_t) {
  return table()[address / kPageBytes] = kIdentity;
}

SLOW_PATH void flat_load(const char* from, uint64_t size, char* to,
                         uint64_t live) asm("__spillway_cross_load");
SLOW_PATH void flat_load(const char* from, uint64_t size, char* to, uint64_t) { std::copy_n(from, size, to); }

SLOW_PATH void flat_store(char* to, uint64_t size, const char* from,
                          uint64_t live) asm("__spillway_cross_store");
SLOW_PATH void flat_store(char* to, uint64_t size, const char* from, uint64_t) {
  std::copy_n(from, size, to);
}

SLOW_PATH void flat_copy(char* to, const char* from, uint64_t size,
                         uint64_t live) asm("__spillway_cross_copy");
SLOW_PATH void flat_copy(char* to, const char* from, uint64_t size, uint64_t) { std::copy_n(from, size, to); }

// Nothing is ever missed, so that no loop looks ahead: what it would call is there to be linked.
extern int64_t flat_look_ahead asm("__spillway_look_ahead");
int64_t flat_look_ahead = 0;

#define NEVER_CALLED(name)                                           \
  void flat_look_ahead_##name() asm("__spillway_look_ahead_" #name); \
  void flat_look_ahead_##name() { std::abort(); }
NEVER_CALLED(begin)
NEVER_CALLED(next)
NEVER_CALLED(load)
NEVER_CALLED(note)

void* flat_memcpy(void* to, const void* from, size_t bytes) asm("__spill_memcpy");
void* flat_memcpy(void* to, const void* from, size_t bytes) { return std::memcpy(to, from, bytes); }

void* flat_memset(void* to, int value, size_t bytes) asm("__spill_memset");
void* flat_memset(void* to, int value, size_t bytes) { return std::memset(to, value, bytes); }

void* flat_memmove(void* to, const void* from, size_t bytes) asm("__spill_memmove");
void* flat_memmove(void* to, const void* from, size_t bytes) { return std::memmove(to, from, bytes); }
}

namespace kernels {

bool use_memfd;

void* allocate_pages(size_t bytes) {
  static uint64_t next = kArrays;
  bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  char* pages = map(next, bytes);
  next += bytes;
  return pages;
}

}  // namespace kernels
