// Shared mappings of files that are written: other processes and read() see what is stored, private memory that takes their
// place is left alone, and what they keep resident is bounded.
// storage: /var/tmp
// expect: spill.shared_maps>=100 spill.shared_maps_out_bytes>=50000000
// flags: -pthread
// memory: 8M
// chaos: 2
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

#define P 4096
#define PAGES ((size_t)12 << 10)
#define BYTES (PAGES * P)
#define RW (PROT_READ | PROT_WRITE)
// Of the resident parts: the limit is half of the budget.
#define LIMIT ((size_t)4 << 20)
#define SLACK ((size_t)3 << 20)

static char path[64];
static int file;

static uint64_t word(size_t page, uint64_t version) {
  uint64_t state = page * 2 + 1 + version * 0x10001;
  return next_random(&state);
}

static char* map_all(void) {
  char* all = mmap(NULL, BYTES, RW, MAP_SHARED, file, 0);
  CHECK(all != MAP_FAILED && !is_spilled(all));
  return all;
}
static void store(char* all, size_t from, size_t to, uint64_t version) {
  for (size_t i = from; i < to; ++i) {
    *(uint64_t*)(all + i * P) = word(i, version);
    *(uint64_t*)(all + i * P + P - 8) = ~word(i, version);
  }
}
static void expect(const char* all, size_t from, size_t to, uint64_t version) {
  for (size_t i = from; i < to; ++i) {
    CHECK(*(const uint64_t*)(all + i * P) == word(i, version));
    CHECK(*(const uint64_t*)(all + i * P + P - 8) == ~word(i, version));
  }
}
static void expect_at_random(const char* all, uint64_t version) {
  uint64_t state = version;
  for (size_t n = 0; n < PAGES; ++n) {
    size_t i = next_random(&state) % PAGES;
    expect(all, i, i + 1, version);
  }
}

// Bytes of mapped files in this process's page tables.
static size_t resident(void) {
  char text[4096];
  int status = open("/proc/self/status", O_RDONLY);
  ssize_t length = read(status, text, sizeof text - 1);
  close(status);
  CHECK(length > 0);
  text[length] = 0;
  const char* found = strstr(text, "RssFile:");
  CHECK(found != NULL);
  return strtoull(found + 8, NULL, 10) << 10;
}

static size_t base;  // resident without any mapping
static int is_bounded(void) { return runs_spilled() && getenv("SPILLWAY_MEMORY") != NULL; }
static void expect_bounded(void) {
  if (!is_bounded()) return;
  for (int tries = 0; resident() > base + LIMIT + SLACK; ++tries) {
    CHECK(tries < 100000);
    usleep(1000);
  }
}

// What is stored is in the file, for another process too, and the other way round.
static void seen_by_others(void) {
  char* all = map_all();
  for (uint64_t version = 1; version < 4; ++version) {
    store(all, 0, PAGES, version);
    expect_bounded();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      int own = open(path, O_RDWR);
      for (size_t i = 0; i < PAGES; ++i) {
        uint64_t value;
        CHECK(pread(own, &value, 8, i * P) == 8 && value == word(i, version));
        value = ~value;
        if (i % 3 == 0) CHECK(pwrite(own, &value, 8, i * P + 64) == 8);
      }
      expect_at_random(all, version);
      expect_bounded();
      store(all, 0, PAGES / 8, version + 100);
      _exit(0);
    }
    expect_end(child);
    expect(all, 0, PAGES / 8, version + 100);
    expect(all, PAGES / 8, PAGES, version);
    for (size_t i = 0; i < PAGES; i += 3) CHECK(*(uint64_t*)(all + i * P + 64) == ~word(i, version));
  }
  CHECK(munmap(all, BYTES) == 0);
  puts("seen by others");
}

static atomic_int is_over;

// Maps parts of the file, and private memory in their place: what is stored there stays.
static void* replace(void* context) {
  uint64_t state = (uint64_t)(uintptr_t)context;
  for (uint64_t turn = 0; !atomic_load(&is_over) || turn < 60; ++turn) {
    const size_t pages = 64 + next_random(&state) % 512;
    const size_t first = next_random(&state) % (PAGES - pages);
    char* part = mmap(NULL, pages * P, RW, MAP_SHARED, file, first * P);
    CHECK(part != MAP_FAILED);
    for (size_t i = 0; i < pages; ++i) CHECK(*(uint64_t*)(part + i * P + 128) == word(first + i, 7));
    char* place = part;
    size_t length = pages / 2;
    if (turn % 3 == 1) {
      part = mremap(part, pages * P, pages * P * 2, MREMAP_MAYMOVE);
      CHECK(part != MAP_FAILED && munmap(part + pages * P, pages * P) == 0);
      place = part;
    }
    // With a hole in between that another thread may get, or without.
    const int is_hole = turn % 2 == 0;
    if (is_hole) CHECK(munmap(place, length * P) == 0);
    const int kind = MAP_PRIVATE | (is_hole ? MAP_STACK : MAP_FIXED) | (turn % 5 == 0 ? 0 : MAP_ANONYMOUS);
    place = mmap(place, length * P, RW, kind, turn % 5 == 0 ? file : -1, 0);
    CHECK(place != MAP_FAILED && !is_spilled(place));
    for (size_t i = 0; i < length * P; i += 512) *(uint64_t*)(place + i) = word(i, turn);
    if (turn % 4 == 0) usleep(2000);
    for (size_t i = 0; i < length * P; i += 512) CHECK(*(uint64_t*)(place + i) == word(i, turn));
    for (size_t i = length; i < pages; ++i) CHECK(*(uint64_t*)(part + i * P + 128) == word(first + i, 7));
    CHECK(munmap(part + length * P, (pages - length) * P) == 0 && munmap(place, length * P) == 0);
  }
  return NULL;
}

static void replaced(void) {
  char* all = map_all();
  for (size_t i = 0; i < PAGES; ++i) *(uint64_t*)(all + i * P + 128) = word(i, 7);
  pthread_t threads[2];
  for (size_t i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, replace, (void*)(i + 5)) == 0);
  for (uint64_t version = 10; version < 14; ++version)
    for (size_t i = 0; i < PAGES; i += 64) {
      store(all, i, i + 64, version);
      expect_bounded();
    }
  atomic_store(&is_over, 1);
  for (size_t i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  expect_at_random(all, 13);
  CHECK(mprotect(all, 100 * P, PROT_READ) == 0);
  char* elsewhere = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  CHECK(elsewhere != MAP_FAILED);
  // Two mappings, which newer kernels move at once, and then one.
  if (mremap(all, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) == elsewhere) {
    CHECK(mprotect(elsewhere, 100 * P, RW) == 0);
    CHECK(mremap(elsewhere, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, all) == all);
    puts("two moved");
  }
  CHECK(mprotect(all, 100 * P, RW) == 0);
  CHECK(mremap(all, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) == elsewhere);
  expect(elsewhere, 0, PAGES, 13);
  expect_bounded();
  CHECK(munmap(elsewhere, BYTES) == 0);
  puts("replaced");
}

// Record locks stay, and what is locked in memory.
static void locked(void) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 1};
  CHECK(fcntl(file, F_SETLK, &lock) == 0);
  char* all = map_all();
  store(all, 0, PAGES, 20);
  expect_bounded();
  const int is_kept = mlock(all, 16 * P) == 0;
  expect(all, 0, PAGES, 20);
  expect_bounded();
  if (is_kept) {
    unsigned char present[16];
    CHECK(mincore(all, 16 * P, present) == 0);
    for (size_t i = 0; i < 16; ++i) CHECK((present[i] & 1) != 0);
  }
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    CHECK(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK && lock.l_pid == parent);
    _exit(0);
  }
  expect_end(child);
  CHECK(munmap(all, BYTES) == 0);
  puts("locked");
}

int main(void) {
  snprintf(path, sizeof path, "shared_maps.%d", (int)getpid());
  file = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
  CHECK(file >= 0 && ftruncate(file, BYTES) == 0);
  base = resident();
  seen_by_others();
  push_out(16 << 20);
  replaced();
  locked();
  unlink(path);
  return 0;
}
