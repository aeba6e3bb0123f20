// Files that are mapped and loaded before they are accessed: in order, by lists of places, on request; and what becomes of pages that are
// under way when their map, the file or the process changes.
// expect: spill.file_maps>=60 cache.prefetches>=1000 cache.origin_reads>=2000
// flags: -pthread
// levels: O2
// chaos: 1
// memory: 4M
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

#define P 4096
#define PAGES 1536
#define WORDS (P / 8)
#define RW (PROT_READ | PROT_WRITE)

static char path[64];

static uint64_t word(uint64_t i, uint64_t version) {
  uint64_t state = i * 2 + 1 + version * 0x10001;
  return next_random(&state);
}

static void make(uint64_t version, size_t pages, size_t tail) {
  static uint64_t page[WORDS];
  unlink(path);
  int file = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
  CHECK(file >= 0);
  for (size_t at = 0; at <= pages; ++at) {
    for (size_t i = 0; i < WORDS; ++i) page[i] = word(at * WORDS + i, version);
    size_t bytes = at < pages ? P : tail;
    CHECK(write(file, page, bytes) == (ssize_t)bytes);
  }
  CHECK(fsync(file) == 0);
  close(file);
}

static uint64_t* map(int protection, int flags, size_t bytes) {
  int file = open(path, O_RDONLY);
  CHECK(file >= 0);
  uint64_t* all = mmap(NULL, bytes, protection, flags, file, 0);
  CHECK(all != MAP_FAILED);
  CHECK_SPILLED(all);
  close(file);
  return all;
}

static void expect_pages(const uint64_t* all, size_t from, size_t to, uint64_t version) {
  for (size_t page = from; page < to; ++page)
    CHECK(all[page * WORDS + page % WORDS] == word(page * WORDS + page % WORDS, version));
}

static void in_order(void) {
  for (int kind = 0; kind < 3; ++kind) {
    uint64_t* all = map(kind == 2 ? RW : PROT_READ, kind == 1 ? MAP_SHARED : MAP_PRIVATE, PAGES * P);
    expect_pages(all, 0, PAGES, 0);
    for (size_t page = PAGES; page-- > 0;) CHECK(all[page * WORDS] == word(page * WORDS, 0));
    for (size_t page = 3; page < PAGES; page += 5) CHECK(all[page * WORDS + 1] == word(page * WORDS + 1, 0));
    if (kind == 2) {
      for (size_t page = 0; page < PAGES; page += 3) all[page * WORDS + 7] = page;
      for (size_t page = 0; page < PAGES; ++page)
        CHECK(all[page * WORDS + 7] == (page % 3 == 0 ? page : word(page * WORDS + 7, 0)));
    }
    CHECK(munmap(all, PAGES * P) == 0);
  }
  puts("in order");
}

__attribute__((noinline)) static uint64_t gather(const uint64_t* all, const uint32_t* places, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += all[places[i]];
  return sum;
}

static void by_a_list(void) {
  enum { kCount = 20000 };
  uint32_t* places = malloc(kCount * sizeof *places);
  uint64_t state = 5, sum = 0;
  for (size_t i = 0; i < kCount; ++i) {
    places[i] = next_random(&state) % (PAGES * WORDS);
    sum += word(places[i], 0);
  }
  uint64_t* all = map(PROT_READ, MAP_SHARED, PAGES * P);
  for (int round = 0; round < 2; ++round) CHECK(gather(all, places, kCount) == sum);
  CHECK(munmap(all, PAGES * P) == 0);
  free(places);
  puts("by a list");
}

static void on_request(void) {
  uint64_t* all = map(PROT_READ, MAP_PRIVATE, PAGES * P);
  for (size_t from = 0; from < PAGES; from += 64) {
    CHECK(madvise(all + from * WORDS, 64 * P, MADV_WILLNEED) == 0);
    expect_pages(all, from, from + 64, 0);
  }
  CHECK(munmap(all, PAGES * P) == 0);
  puts("on request");
}

static sigjmp_buf out;
static void on_signal(int number) { siglongjmp(out, number); }
static int raised_by(const volatile uint64_t* at) {
  volatile int number = sigsetjmp(out, 1);
  if (number == 0) (void)*at;
  return number;
}

// What was unmapped does not come back, nor what lies behind the end of a map or of its file.
static void holes_and_ends(void) {
  struct sigaction action = {.sa_handler = on_signal}, segv, bus;
  CHECK(sigaction(SIGSEGV, &action, &segv) == 0 && sigaction(SIGBUS, &action, &bus) == 0);
  // Pages that are larger than the machine's end with zeros.
  const size_t step = getenv("SPILLWAY_PAGE") != NULL ? 16 : 1;
  for (int kind = 0; kind < 2; ++kind) {
    const size_t pages = 320, hole = 128, hole_pages = 64;
    make(3, pages, 100);
    uint64_t* all = map(kind ? RW : PROT_READ, MAP_PRIVATE, (pages + 64) * P);
    expect_pages(all, hole, hole + hole_pages, 3);
    CHECK(munmap(all + hole * WORDS, hole_pages * P) == 0);
    expect_pages(all, 0, hole, 3);
    CHECK(madvise(all + (hole - 1) * WORDS, P, MADV_WILLNEED) == 0);
    CHECK(madvise(all + (hole - 1) * WORDS, (hole_pages + 1) * P, MADV_WILLNEED) == -1 && errno == ENOMEM);
    for (size_t page = hole; page < hole + hole_pages; ++page)
      CHECK(raised_by(all + page * WORDS) == SIGSEGV);
    CHECK(madvise(all + 256 * WORDS, (pages + 64 - 256) * P, MADV_WILLNEED) == 0);
    expect_pages(all, hole + hole_pages, pages, 3);
    CHECK(all[pages * WORDS] == word(pages * WORDS, 3) && all[pages * WORDS + 20] == 0);
    for (size_t page = pages + step; page < pages + 64; page += 7)
      CHECK(raised_by(all + page * WORDS) == SIGBUS);
    CHECK(munmap(all, (pages + 64) * P) == 0);
  }
  CHECK(sigaction(SIGSEGV, &segv, NULL) == 0 && sigaction(SIGBUS, &bus, NULL) == 0);
  puts("holes and ends");
}

// Pages are under way when a map ends, and the next one may lie where it was.
static void ended_meanwhile(void) {
  for (uint64_t version = 1; version < 40; ++version) {
    make(version, 100, 0);
    uint64_t* all = map(version % 2 ? PROT_READ : RW, MAP_PRIVATE, 100 * P);
    CHECK(madvise(all, 100 * P, MADV_WILLNEED) == 0);
    if (version % 3 == 0) expect_pages(all, 0, 100, version);
    CHECK(munmap(all, 100 * P) == 0);
  }
  puts("ended");
}

// Pages are under way when somebody comes to write: what they write is seen.
static void written_meanwhile(void) {
  for (int round = 0; round < 12; ++round) {
    make(0, 200, 0);
    uint64_t* all = map(PROT_READ, round % 2 ? MAP_SHARED : MAP_PRIVATE, 200 * P);
    CHECK(madvise(all, 200 * P, MADV_WILLNEED) == 0);
    int file = open(path, O_WRONLY);
    CHECK(file >= 0);
    for (size_t page = 0; page < 200; ++page) {
      const uint64_t value = word(page * WORDS + page % WORDS, 1);
      CHECK(pwrite(file, &value, sizeof value, (page * WORDS + page % WORDS) * 8) == sizeof value);
    }
    close(file);
    expect_pages(all, 0, 200, 1);
    CHECK(munmap(all, 200 * P) == 0);
  }
  puts("written");
}

static void forked_meanwhile(void) {
  make(4, 200, 0);
  for (int round = 0; round < 6; ++round) {
    uint64_t* reading = map(PROT_READ, MAP_SHARED, 200 * P);
    uint64_t* changed = map(RW, MAP_PRIVATE, 200 * P);
    CHECK(madvise(changed, 200 * P, MADV_WILLNEED) == 0 && madvise(reading, 200 * P, MADV_WILLNEED) == 0);
    fflush(stdout);
    const pid_t child = fork();
    expect_pages(changed, 0, 200, 4);
    expect_pages(reading, 0, 200, 4);
    if (child == 0) {
      changed[5] = 1;
      uint64_t* again = map(RW, MAP_PRIVATE, 200 * P);
      CHECK(madvise(again, 200 * P, MADV_WILLNEED) == 0);
      expect_pages(again, 0, 200, 4);
      _exit(0);
    }
    expect_end(child);
    CHECK(changed[5] == word(5, 4));
    CHECK(munmap(reading, 200 * P) == 0 && munmap(changed, 200 * P) == 0);
  }
  puts("forked");
}

// The thread has loaded ahead before there is a file.
static void no_file_yet(void) {
  uint64_t* all = mmap(NULL, 64 * P, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(all != MAP_FAILED);
  for (size_t page = 0; page < 64; ++page) all[page * WORDS] = page;
  push_out(8 << 20);
  CHECK(madvise(all, 64 * P, MADV_WILLNEED) == 0);
  for (size_t page = 0; page < 64; ++page) CHECK(all[page * WORDS] == page);
  CHECK(munmap(all, 64 * P) == 0);
  puts("no file yet");
}

int main(void) {
  snprintf(path, sizeof path, "file_ahead.%d", (int)getpid());
  no_file_yet();
  make(0, PAGES, 0);
  in_order();
  by_a_list();
  on_request();
  holes_and_ends();
  ended_meanwhile();
  written_meanwhile();
  forked_meanwhile();
  unlink(path);
  return 0;
}
