// The peer: what TriCache does at an access, written anew from its paper (OSDI '22, 3.3 and 4) and given the
// benefit of the doubt.
//
// 1 Cached memory has the top bit of its addresses set; the compiler's range check is a signed compare, and
//   calls here for what is below zero (plugin option -spill-emit=call).
// 2 Direct SATC: per thread, direct-mapped, a quarter of the page capacity; an entry pins its page.
// 3 A miss unpins the page that the entry held and pins the new one. TriCache looks both up in its Private
//   SATC, a hash table; here the reference counts are an array, so a miss costs less.
// 4 Everything stays resident, and frames follow the order of addresses.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "pages.h"
#include "workspace.h"

namespace {

constexpr uint64_t kCachedBit = 1ull << 63;
constexpr uint64_t kPageBytes = 4096;
// One and a half GiB of frames for each kernel, the largest of which needs one.
constexpr uint64_t kPages = (3ull << 29) / kPageBytes;
constexpr uint64_t kEntries = (4ull << 17) / 4;  // kPages, rounded up to a power of two, by four
static_assert(kEntries * 4 >= kPages && kEntries * 2 < kPages);

struct Direct {
  struct Entry {
    uint64_t page;
    char* frame;
  };
  Entry entries[kEntries];
  bool dirty[kEntries];
};

char* frames;
uint64_t used_pages;
std::atomic<uint16_t> references[kPages];
thread_local Direct* direct;

void* map(size_t bytes, int file) {
  int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, file, 0);
  if (memory == MAP_FAILED) {
    std::perror("kernels: mmap");
    std::exit(1);
  }
  return memory;
}

__attribute__((noinline)) void create_direct() {
  direct = static_cast<Direct*>(map(sizeof(Direct), -1));
  for (auto& entry : direct->entries) entry.page = ~0ull;
}

__attribute__((noinline)) void load_entry(Direct::Entry& entry, bool& dirty, uint64_t page) {
  if (page >= used_pages) {
    std::fputs("kernels: access outside of all arrays\n", stderr);
    std::abort();
  }
  if (entry.page != ~0ull) references[entry.page].fetch_sub(1, std::memory_order_acq_rel);
  references[page].fetch_add(1, std::memory_order_acq_rel);
  entry = {page, frames + page * kPageBytes};
  dirty = false;
}

char* translate(uint64_t address, bool store) {
  if (direct == nullptr) [[unlikely]]
    create_direct();
  uint64_t page = (address & ~kCachedBit) / kPageBytes;
  Direct::Entry& entry = direct->entries[page % kEntries];
  bool& dirty = direct->dirty[page % kEntries];
  if (entry.page != page) [[unlikely]]
    load_entry(entry, dirty, page);
  dirty |= store;
  return entry.frame + address % kPageBytes;
}

// The bytes at `address` up to its page's end; of plain memory, all.
char* piece(uint64_t address, bool store, size_t& bytes) {
  if (static_cast<int64_t>(address) > 0) return reinterpret_cast<char*>(address);
  bytes = std::min<size_t>(bytes, kPageBytes - address % kPageBytes);
  return translate(address, store);
}

}  // namespace

namespace kernels {

bool use_memfd;

void* allocate_pages(size_t bytes) {
  if (frames == nullptr) {
    int file = memfd_create("kernels", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, kPages * kPageBytes) != 0) {
      std::perror("kernels: memfd");
      std::exit(1);
    }
    frames = static_cast<char*>(map(kPages * kPageBytes, file));
    close(file);
  }
  uint64_t first = used_pages;
  used_pages += (bytes + kPageBytes - 1) / kPageBytes;
  if (used_pages > kPages) {
    std::fprintf(stderr, "kernels: no %zu bytes of memory\n", bytes);
    std::exit(1);
  }
  return reinterpret_cast<void*>(kCachedBit | first * kPageBytes);
}

}  // namespace kernels

// What instrumented objects refer to.
extern "C" {

extern const char bench_abi_table asm("__spillway_abi_table_v1");
const char bench_abi_table = 0;

char* bench_translate_load(uint64_t address) asm("__spillway_bench_translate_load");
char* bench_translate_load(uint64_t address) { return translate(address, false); }

char* bench_translate_store(uint64_t address) asm("__spillway_bench_translate_store");
char* bench_translate_store(uint64_t address) { return translate(address, true); }

void* bench_memcpy(void* to, const void* from, size_t bytes) asm("__spill_memcpy");
void* bench_memcpy(void* to, const void* from, size_t bytes) {
  auto target = reinterpret_cast<uint64_t>(to), source = reinterpret_cast<uint64_t>(from);
  while (bytes > 0) {
    size_t part = bytes;
    const char* read = piece(source, false, part);
    char* written = piece(target, true, part);
    std::memcpy(written, read, part);
    target += part, source += part, bytes -= part;
  }
  return to;
}

void* bench_memset(void* to, int value, size_t bytes) asm("__spill_memset");
void* bench_memset(void* to, int value, size_t bytes) {
  for (auto target = reinterpret_cast<uint64_t>(to); bytes > 0;) {
    size_t part = bytes;
    std::memset(piece(target, true, part), value, part);
    target += part, bytes -= part;
  }
  return to;
}

// Overlapping or not, from the end that is not overwritten first; frames follow the order of addresses.
void* bench_memmove(void* to, const void* from, size_t bytes) asm("__spill_memmove");
void* bench_memmove(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return to;
  size_t whole = bytes;
  char* written = piece(reinterpret_cast<uint64_t>(to), true, whole);
  whole = bytes;
  const char* read = piece(reinterpret_cast<uint64_t>(from), false, whole);
  std::memmove(written, read, bytes);
  return to;
}
}
