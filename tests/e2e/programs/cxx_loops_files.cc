// Tasks that miss pages of mapped files: others run meanwhile, and what the file holds is seen, to its end.
// expect: spill.file_maps>=3 spill.task_misses>=2000 cache.origin_reads>=2000
// flags: -std=c++17 -pthread
// memory: 4M
// levels: O2
// chaos: 1
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "../../../include/spillway/task.h"
#include "e2e.h"

namespace {

constexpr size_t kPage = 4096, kPages = 2048, kTail = 1000, kBytes = kPages * kPage + kTail;

char path[64];

uint64_t word(uint64_t i) {
  uint64_t state = i * 3 + 1;
  return next_random(&state);
}

void make() {
  const int file = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
  CHECK(file >= 0);
  static uint64_t page[kPage / 8];
  for (size_t at = 0; at < kBytes; at += kPage) {
    for (size_t i = 0; i < kPage / 8; ++i) page[i] = word(at / 8 + i);
    const size_t bytes = kBytes - at < kPage ? kBytes - at : kPage;
    CHECK(write(file, page, bytes) == static_cast<ssize_t>(bytes));
  }
  close(file);
}

uint64_t* map(int protection, int flags) {
  const int file = open(path, O_RDONLY);
  void* const all = mmap(nullptr, kBytes, protection, flags, file, 0);
  CHECK(file >= 0 && all != MAP_FAILED);
  CHECK_SPILLED(all);
  close(file);
  return static_cast<uint64_t*>(all);
}

void read_all(const uint64_t* all) {
  std::atomic<uint64_t> wrong{0}, sum{0};
  spillway::parallel_for(size_t{0}, size_t{4000}, [&](size_t i) {
    // The last words are in the page that the file ends in.
    const uint64_t at = i % 16 == 0 ? kBytes / 8 - 1 - i % 100 : word(i + 7) % (kBytes / 8);
    if (all[at] != word(at)) ++wrong;
    sum += at;
  });
  CHECK(wrong == 0 && sum != 0);
}

}  // namespace

int main() {
  snprintf(path, sizeof path, "loops_files.%d", static_cast<int>(getpid()));
  make();
  for (int kind = 0; kind < 3; ++kind) {
    uint64_t* const all =
        map(kind == 2 ? PROT_READ | PROT_WRITE : PROT_READ, kind == 1 ? MAP_SHARED : MAP_PRIVATE);
    read_all(all);
    if (kind == 2) {
      spillway::parallel_for(size_t{0}, kPages, [&](size_t page) { all[page * 512 + 3] = page; });
      std::atomic<uint64_t> wrong{0};
      spillway::parallel_for(size_t{0}, kPages, [&](size_t page) {
        if (all[page * 512 + 3] != page || all[page * 512 + 4] != word(page * 512 + 4)) ++wrong;
      });
      CHECK(wrong == 0);
    }
    CHECK(munmap(all, kBytes) == 0);
  }
  unlink(path);
  puts("files in tasks");
  return 0;
}
