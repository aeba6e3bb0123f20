/* A program over libpmem and libpmem2 that checks what becomes of its calls under `spillway persist run`: persist_pmem_test.py says how it is started. It prints what is wrong, and ends with status 1.

     calls FILE     libpmem's calls, on a file that is taken for persistent memory
     ends FILE      mappings end in each way while what was flushed there is put off
     pages FILE     libpmem's calls on an ordinary file
     pmem2 FILE     libpmem2's, on whatever the file is */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libpmem.h>
#include <libpmem2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBytes = 1 << 20, kLineBytes = 64, kPageBytes = 4096 };

static int failures = 0;
#define EXPECT(condition)                                            \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                    \
    }                                                                \
  } while (0)

struct counts {
  long asked, copied, noted, fences, outside, domains;
};

static long count_of(const char *text, const char *name) {
  const char *const found = strstr(text, name);
  return found == NULL ? -1 : strtol(found + strlen(name), NULL, 10);
}

/* What the runtime has counted so far; it is in the process, whoever brought it. */
static struct counts counts_now(void) {
  int (*const stats)(char *, size_t, size_t *) =
      (int (*)(char *, size_t, size_t *))dlsym(RTLD_DEFAULT, "spillway_persist_stats");
  char text[8192] = "";
  if (stats == NULL || stats(text, sizeof text, NULL) != 0) {
    printf("the runtime is not there\n");
    exit(1);
  }
  return (struct counts){count_of(text, "\"asked_lines\": "),   count_of(text, "\"copied_lines\": "),
                         count_of(text, "\"noted_lines\": "),   count_of(text, "\"fences\": "),
                         count_of(text, "\"outside_lines\": "), count_of(text, "\"domains\": ")};
}

/* A call asks for so many lines, writes so many past the caches, and fences so often. */
#define EXPECT_COUNTS(call, asked_lines, copied_lines, fence_count) \
  do {                                                              \
    const struct counts before = counts_now();                      \
    call;                                                           \
    const struct counts after = counts_now();                       \
    EXPECT(after.asked - before.asked == (asked_lines));            \
    EXPECT(after.copied - before.copied == (copied_lines));         \
    EXPECT(after.fences - before.fences == (fence_count));          \
    EXPECT(after.outside == before.outside);                        \
  } while (0)

static char *map(const char *path, int is_memory) {
  size_t bytes = 0;
  int is_pmem = -1;
  char *const address = pmem_map_file(path, kBytes, PMEM_FILE_CREATE, 0600, &bytes, &is_pmem);
  if (address == NULL || bytes != kBytes || is_pmem != is_memory) {
    printf("%s: mapped as %d, %zu bytes: %s\n", path, is_pmem, bytes, pmem_errormsg());
    exit(1);
  }
  return address;
}

/* Copies with these flags of many sizes and places, and where source and target overlap. */
static void check_content(char *memory, unsigned flags) {
  static char expected[8192], source[8192];
  for (size_t i = 0; i < sizeof source; ++i) source[i] = (char)(i * 31 + flags);
  for (size_t to = 0; to < 130; to += 13)
    for (size_t bytes = 0; bytes < 1400; bytes = bytes * 2 + 1) {
      memset(expected, 7, sizeof expected);
      memset(memory, 7, sizeof expected);
      memcpy(expected + to, source + 5, bytes);
      EXPECT(pmem_memcpy(memory + to, source + 5, bytes, flags) == memory + to);
      memmove(expected + to + 40, expected + to, bytes);
      EXPECT(pmem_memmove(memory + to + 40, memory + to, bytes, flags) == memory + to + 40);
      memmove(expected + to, expected + to + 9, bytes);
      EXPECT(pmem_memmove(memory + to, memory + to + 9, bytes, flags) == memory + to);
      memset(expected + 4000 + to, 0xa5, bytes);
      EXPECT(pmem_memset(memory + 4000 + to, 0xa5, bytes, flags) == memory + 4000 + to);
      EXPECT(memcmp(memory, expected, sizeof expected) == 0);
    }
}

static void check_calls(const char *path) {
  char *const memory = map(path, 1);
  static char source[kPageBytes];
  EXPECT(counts_now().domains == 1);
  EXPECT_COUNTS(pmem_flush(memory + 60, 8), 2, 0, 0);
  EXPECT_COUNTS(pmem_drain(), 0, 0, 1);
  EXPECT_COUNTS(pmem_persist(memory, 640), 10, 0, 1);
  EXPECT_COUNTS(pmem_persist(memory, 0), 0, 0, 1);
  EXPECT_COUNTS(pmem_deep_flush(memory, 65), 2, 0, 0);
  EXPECT_COUNTS(EXPECT(pmem_deep_drain(memory, 65) == 0), 0, 0, 1);
  EXPECT_COUNTS(EXPECT(pmem_deep_persist(memory, 65) == 0), 2, 0, 1);
  EXPECT_COUNTS(EXPECT(pmem_msync(memory, 65) == 0), 0, 0, 0); /* the kernel's work, and libpmem's */
  EXPECT_COUNTS(pmem_memcpy_persist(memory, source, kPageBytes), 0, 64, 1);
  EXPECT_COUNTS(pmem_memmove_persist(memory, source, 100), 2, 0, 1);
  EXPECT_COUNTS(pmem_memset_persist(memory, 1, kPageBytes), 0, 64, 1);
  EXPECT_COUNTS(pmem_memcpy_nodrain(memory + 32, source, 640), 2, 9, 0);
  EXPECT_COUNTS(pmem_memmove_nodrain(memory, source, 64), 1, 0, 0);
  EXPECT_COUNTS(pmem_memset_nodrain(memory, 1, 1), 1, 0, 0);
  const struct {
    unsigned flags;
    long asked, copied, fences;
  } large[] = {
      {0, 0, 64, 1},
      {PMEM_F_MEM_NODRAIN, 0, 64, 0},
      {PMEM_F_MEM_NONTEMPORAL, 0, 64, 1},
      {PMEM_F_MEM_WC | PMEM_F_MEM_NODRAIN, 0, 64, 0},
      {PMEM_F_MEM_TEMPORAL, 64, 0, 1},
      {PMEM_F_MEM_WB | PMEM_F_MEM_NODRAIN, 64, 0, 0},
      {PMEM_F_MEM_NOFLUSH, 0, 0, 0},
      {PMEM_F_MEM_NOFLUSH | PMEM_F_MEM_NONTEMPORAL, 0, 0, 0},
      {PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NOFLUSH, 0, 0, 0},
  };
  for (size_t i = 0; i < sizeof large / sizeof *large; ++i) {
    EXPECT_COUNTS(pmem_memcpy(memory, source, kPageBytes, large[i].flags), large[i].asked, large[i].copied,
                  large[i].fences);
    EXPECT_COUNTS(pmem_memmove(memory, source, kPageBytes, large[i].flags), large[i].asked, large[i].copied,
                  large[i].fences);
    EXPECT_COUNTS(pmem_memset(memory, 0, kPageBytes, large[i].flags), large[i].asked, large[i].copied,
                  large[i].fences);
    check_content(memory, large[i].flags);
  }
  EXPECT_COUNTS(pmem_memcpy(memory, source, 64, PMEM_F_MEM_WC), 0, 1, 1);
  EXPECT(pmem_has_auto_flush() == 0);
  errno = 0;
  EXPECT(pmem_msync((void *)kPageBytes, kPageBytes) == -1 && errno == ENOMEM);
  EXPECT(pmem_unmap(memory, kBytes) == 0);
  EXPECT(counts_now().domains == 0);
  EXPECT(pmem_map_file("/nowhere/file", kBytes, PMEM_FILE_CREATE, 0600, NULL, NULL) == NULL &&
         errno == ENOENT);
}

/* Flushes until nothing of it is executed at once, whatever the policy. */
static void flush_often(const char *memory) {
  for (int i = 0; i < 4; ++i) pmem_flush(memory, 32 * kLineBytes);
}

static void check_ends(const char *path) {
  for (int way = 0; way < 7; ++way) {
    char *const memory = map(path, 1);
    char *const other = mmap(NULL, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *moved = MAP_FAILED;
    memset(memory, way, kBytes);
    flush_often(memory);
    switch (way) {
      case 0: EXPECT(pmem_unmap(memory, kBytes) == 0); break;
      case 1: EXPECT(munmap(memory, kBytes) == 0); break;
      case 2:
        EXPECT(mmap(memory, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory);
        break;
      case 3:
        moved = mremap(memory, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, other);
        EXPECT(moved == other);
        break;
      case 4: EXPECT(mprotect(memory, kBytes, PROT_NONE) == 0); break;
      case 5:
        EXPECT(mmap64(memory, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
               memory);
        break;
      case 6: EXPECT(munmap(memory, kPageBytes) == 0); break; /* and the rest stays */
    }
    pmem_drain();
    EXPECT(counts_now().domains == (way >= 5));
    if (way == 5 || way == 6) EXPECT_COUNTS(pmem_persist(memory + kPageBytes, 64), 1, 0, 1);
    if (way != 1) munmap(memory, kBytes);
    munmap(other, kBytes);
    EXPECT(counts_now().domains == 0);
  }
  /* One that nobody announced is found, and what it grows by, too. */
  const int file = open(path, O_RDWR);
  char *const memory = mmap(NULL, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int half = 0; half < 2; ++half) {
    char *const begin = memory + half * kBytes / 2;
    EXPECT(mmap(begin, kBytes / 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, half * kBytes / 2) ==
           begin);
    EXPECT_COUNTS(pmem_persist(begin, 64), 1, 0, 1);
    EXPECT(counts_now().domains == half + 1);
  }
  munmap(memory, kBytes);
  EXPECT(counts_now().domains == 0);
  /* So is one that lies where memory of nobody's was, which went without a word. */
  char *const block = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int is_moved = 0; is_moved < 2; ++is_moved) {
    pmem_persist(block, 64);
    syscall(SYS_munmap, block, kBytes);
    if (is_moved) {
      syscall(SYS_mmap, block, (size_t)kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
      EXPECT(mremap(block, kPageBytes, kBytes, 0) == block);
    } else {
      EXPECT(mmap(block, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == block);
    }
    EXPECT_COUNTS(pmem_persist(block, 64), 1, 0, 1);
    EXPECT_COUNTS(pmem_persist(block + kBytes / 2, 64), 1, 0, 1);
    EXPECT(mmap(block, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
           block);
  }
  munmap(block, kBytes);
  close(file);
}

/* A fence that nobody can be told of ends the process. */
static void check_lost(char *memory) {
  memory[0] = 1;
  pmem_flush(memory, 1);
  syscall(SYS_munmap, memory, kBytes); /* which the library does not see */
  errno = 0;
  EXPECT(pmem_msync(memory, 1) == -1 && errno == ENOMEM);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    pmem_persist(memory, 1);
    _exit(0);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(!WIFEXITED(status));
}

static void check_pages(const char *path) {
  char *const memory = map(path, 0);
  static char source[kPageBytes];
  const struct counts first = counts_now();
  EXPECT(first.domains == 1);
  memory[100] = 1;
  EXPECT_COUNTS(EXPECT(pmem_msync(memory + 100, 1) == 0), 1, 0, 1);
  EXPECT_COUNTS(pmem_persist(memory, kPageBytes), 64, 0, 1);
  EXPECT_COUNTS(pmem_memcpy(memory, source, kPageBytes, PMEM_F_MEM_NONTEMPORAL), 64, 0, 1);
  EXPECT(counts_now().noted - first.noted == 129);
  EXPECT(pmem_deep_persist(memory, 64) == 0);
  check_content(memory, 0);
  check_lost(memory);
}

static void check_pmem2(const char *path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  struct pmem2_config *config = NULL;
  struct pmem2_source *source = NULL;
  struct pmem2_map *map = NULL;
  if (file < 0 || ftruncate(file, kBytes) != 0 || pmem2_config_new(&config) != 0 ||
      pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_PAGE) != 0 ||
      pmem2_source_from_fd(&source, file) != 0 || pmem2_map_new(&map, config, source) != 0) {
    printf("%s: %s\n", path, pmem2_errormsg());
    exit(1);
  }
  const int has_pages = pmem2_map_get_store_granularity(map) == PMEM2_GRANULARITY_PAGE;
  printf("%s\n", has_pages ? "pages" : "lines");
  char *const memory = pmem2_map_get_address(map);
  static char text[kPageBytes] = "text";
  const pmem2_memcpy_fn copy = pmem2_get_memcpy_fn(map);
  const pmem2_memmove_fn move = pmem2_get_memmove_fn(map);
  const pmem2_memset_fn set = pmem2_get_memset_fn(map);
  EXPECT(counts_now().domains == 1);
  EXPECT_COUNTS(pmem2_get_flush_fn(map)(memory, 128), 2, 0, 0);
  EXPECT_COUNTS(pmem2_get_drain_fn(map)(), 0, 0, 1);
  EXPECT_COUNTS(pmem2_get_persist_fn(map)(memory, 128), 2, 0, 1);
  EXPECT_COUNTS(copy(memory, text, kPageBytes, 0), has_pages ? 64 : 0, has_pages ? 0 : 64, 1);
  EXPECT(memcmp(memory, text, kPageBytes) == 0);
  EXPECT_COUNTS(move(memory + 1, memory, 64, PMEM2_F_MEM_NODRAIN), 2, 0, 0);
  EXPECT(memcmp(memory + 1, text, 64) == 0);
  EXPECT_COUNTS(set(memory, 3, 64, PMEM2_F_MEM_NOFLUSH), 0, 0, 0);
  EXPECT(memory[0] == 3 && memory[63] == 3);
  EXPECT_COUNTS(EXPECT(pmem2_deep_flush(map, memory, 64) == 0), 1, 0, 1);
  EXPECT(counts_now().noted == (has_pages ? counts_now().asked : 0));
  EXPECT(pmem2_map_delete(&map) == 0);
  EXPECT(counts_now().domains == 0);
  pmem2_source_delete(&source);
  pmem2_config_delete(&config);
  close(file);
}

int main(int count, char **words) {
  if (count != 3) return 2;
  if (strcmp(words[1], "calls") == 0) check_calls(words[2]);
  if (strcmp(words[1], "ends") == 0) check_ends(words[2]);
  if (strcmp(words[1], "pages") == 0) check_pages(words[2]);
  if (strcmp(words[1], "pmem2") == 0) check_pmem2(words[2]);
  return failures != 0;
}
