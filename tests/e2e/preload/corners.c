// What programs do with memory beside loading and storing, each in memory that mostly is on storage. Compiled by plain
// clang. Prints one line for each part; natively the same, but for what `corners native` leaves out.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096 };
static const size_t kBytes = 12u << 20;

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "WRONG: %s (%s)\n", what, strerror(errno));
  _exit(3);
}
static unsigned char* map(size_t bytes) {
  unsigned char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  return memory;
}
static size_t resident_bytes(void) {
  unsigned long all, resident;
  FILE* file = fopen("/proc/self/statm", "r");
  require(file != NULL && fscanf(file, "%lu %lu", &all, &resident) == 2, "statm");
  fclose(file);
  return resident * kPage;
}
static unsigned char content(size_t i) { return (unsigned char)(i / kPage * 7 + i % 251 + 1); }
static void fill(unsigned char* memory, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) memory[i] = content(i);
}
static void check(const unsigned char* memory, size_t from, size_t to, const char* what) {
  for (size_t i = from; i < to; ++i) require(memory[i] == content(i), what);
}

static void heap(void) {
  unsigned char* block = malloc(kBytes);
  fill(block, kBytes);
  require(malloc_usable_size(block) >= kBytes, "usable size");
  unsigned char* wall = malloc(1u << 20);  // so that the block cannot grow where it is
  wall[0] = 1;
  block = realloc(block, 2 * kBytes);
  check(block, 0, kBytes, "realloc that moves");
  for (size_t i = kBytes; i < 2 * kBytes; i += kPage) block[i] = 9;
  block = realloc(block, kBytes);
  check(block, 0, kBytes, "realloc that shrinks");
  block = realloc(block, 1000);
  check(block, 0, 1000, "realloc to plain memory");
  block = realloc(block, kBytes);
  check(block, 0, 1000, "realloc from plain memory");
  free(block);
  for (int round = 0; round < 3; ++round) {
    unsigned char* zeros = calloc(kBytes / 8, 8);
    for (size_t i = 0; i < kBytes; i += 64) require(zeros[i] == 0, "calloc");
    memset(zeros, 0xee, kBytes);
    free(zeros);
  }
  unsigned char* aligned = aligned_alloc(1u << 21, 1u << 22);
  require(((uintptr_t)aligned & ((1u << 21) - 1)) == 0, "alignment");
  free(aligned);
  volatile size_t too_much = PTRDIFF_MAX;
  void* volatile none = malloc(too_much);
  require(none == NULL && errno == ENOMEM, "too much");
  free(wall);
  puts("heap");
}

// Blocks that threads move all the time, each to where another's has just been.
static void* move_blocks(void* unused) {
  (void)unused;
  for (int turn = 0; turn < 1000; ++turn) {
    unsigned char* block = malloc(32 * kPage);
    block[0] = (unsigned char)turn;
    block = realloc(block, 96 * kPage);
    require(block != NULL && block[0] == (unsigned char)turn, "a block that was moved");
    free(block);
  }
  return NULL;
}
static void moves(void) {
  enum { kThreads = 4 };
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i)
    require(pthread_create(&threads[i], NULL, move_blocks, NULL) == 0, "pthread_create");
  for (int i = 0; i < kThreads; ++i) require(pthread_join(threads[i], NULL) == 0, "pthread_join");
  puts("moves");
}

static void mappings(void) {
  unsigned char* memory = map(kBytes);
  fill(memory, kBytes);
  munmap(memory + kBytes / 2, kBytes / 4);
  check(memory, 0, kBytes / 2, "before the hole");
  check(memory, kBytes * 3 / 4, kBytes, "after the hole");
  unsigned char* again = mmap(memory + kBytes / 2, kBytes / 4, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  require(again == memory + kBytes / 2, "MAP_FIXED");
  for (size_t i = 0; i < kBytes / 4; i += 64) require(again[i] == 0, "zeros in the hole");
  fill(memory, kBytes);
  madvise(memory + 10 * kPage, 100 * kPage, MADV_DONTNEED);
  for (size_t i = 10 * kPage; i < 110 * kPage; ++i) require(memory[i] == 0, "MADV_DONTNEED");
  check(memory, 0, 10 * kPage, "before what was dropped");
  check(memory, 110 * kPage, kBytes, "after what was dropped");
  madvise(memory, kBytes, MADV_HUGEPAGE);
  memory = mremap(memory, kBytes, 2 * kBytes, MREMAP_MAYMOVE);
  require(memory != MAP_FAILED, "mremap");
  check(memory, 110 * kPage, kBytes, "mremap");
  for (size_t i = 10 * kPage; i < 110 * kPage; ++i) require(memory[i] == 0, "zeros that moved");
  munmap(memory, 2 * kBytes);
  // What may not be accessed moves too: its other half is in the way.
  memory = map(2 * kBytes);
  fill(memory, kBytes);
  require(mprotect(memory, kBytes, PROT_NONE) == 0, "mprotect");
  again = mremap(memory, kBytes, 2 * kBytes, MREMAP_MAYMOVE);
  require(again != MAP_FAILED && again != memory, "mremap of what may not be accessed");
  require(mprotect(again, 2 * kBytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
  check(again, 0, kBytes, "what could not be accessed");
  munmap(memory + kBytes, kBytes);
  munmap(again, 2 * kBytes);
  // What is hardly used moves without memory for what was never used.
  const size_t much = (size_t)64 << 30;
  memory = mmap(NULL, 2 * much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(memory != MAP_FAILED, "mmap of much");
  memory[much / 2] = 7;
  const size_t before = resident_bytes();
  again = mremap(memory, much, much + kPage, MREMAP_MAYMOVE);
  require(again != MAP_FAILED && again != memory && again[much / 2] == 7, "mremap of much");
  require(resident_bytes() < before + (32u << 20), "memory for what was never used");
  munmap(memory + much, much);
  munmap(again, much + kPage);
  puts("mappings");
}

// A mapping that is replaced again and again, while another thread maps what is free.
static int is_replaced;
static void* map_and_unmap(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&is_replaced, __ATOMIC_RELAXED)) {
    unsigned char* memory = map(64 * kPage);
    memory[0] = 1;
    munmap(memory, 64 * kPage);
  }
  return NULL;
}
static void replacements(void) {
  unsigned char* memory = map(64 * kPage);
  pthread_t other;
  require(pthread_create(&other, NULL, map_and_unmap, NULL) == 0, "pthread_create");
  for (int turn = 0; turn < 3000; ++turn) {
    memory[kPage] = 7;
    require(mmap(memory, 64 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) == memory,
            "MAP_FIXED onto what is mapped");
    require(memory[kPage] == 0, "what was replaced");
  }
  __atomic_store_n(&is_replaced, 1, __ATOMIC_RELAXED);
  require(pthread_join(other, NULL) == 0, "pthread_join");
  require(mprotect(memory, 32 * kPage, PROT_READ) == 0, "mprotect");
  munmap(memory + 48 * kPage, 16 * kPage);
  require(mmap(memory, 64 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              memory,
          "MAP_FIXED over a hole");
  for (size_t page = 0; page < 64; ++page) {
    require(memory[page * kPage] == 0, "over a hole");
    memory[page * kPage] = 1;
  }
  munmap(memory, 64 * kPage);
  puts("replacements");
}

// What is refused, as natively.
static void refusals(void) {
  unsigned char* memory = map(kBytes);
  fill(memory, kBytes);
  for (size_t bytes = (size_t)-1; bytes >= (size_t)-5000; bytes -= 999) {
    errno = 0;
    require(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
                errno == ENOMEM,
            "mmap of too much");
    require(munmap(memory, bytes) == -1 && errno == EINVAL, "munmap of too much");
    require(mremap(memory, kBytes, bytes, MREMAP_MAYMOVE) == MAP_FAILED, "mremap to too much");
  }
  check(memory, 0, kBytes, "after what was too much");
  require(munmap(memory, (size_t)1 << 62) == -1 && errno == EINVAL, "munmap of too much");
  require(madvise(memory, (size_t)-1, MADV_DONTNEED) == -1 && errno == EINVAL, "advice on too much");
  require(madvise(memory, (size_t)1 << 62, MADV_WILLNEED) == -1 && errno == ENOMEM, "advice on too much");
  require(mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 512) == MAP_FAILED &&
              errno == EINVAL,
          "unaligned offset");
  static const int unknown[] = {-1, 5, 6, 7, MADV_REMOVE, 26, 40, 99, 12345};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; ++i)
    require(madvise(memory, kPage, unknown[i]) == -1 && errno == EINVAL, "unknown advice");
  require(madvise(memory, 0, 12345) == -1 && errno == EINVAL, "unknown advice on nothing");
  require(mlock2(memory, kPage, 0x80) == -1 && errno == EINVAL, "unknown flags");
  require(mremap(memory, kBytes, kBytes, MREMAP_MAYMOVE | 0x80) == MAP_FAILED && errno == EINVAL,
          "unknown flags");
  check(memory, 0, kBytes, "after what was refused");
  require(madvise(memory + kPage, kPage, MADV_DONTNEED_LOCKED) == 0 && memory[kPage] == 0 &&
              memory[2 * kPage] == content(2 * kPage),
          "MADV_DONTNEED_LOCKED");
  fill(memory, kBytes);
  munmap(memory + 8 * kPage, 4 * kPage);
  require(madvise(memory + 4 * kPage, 16 * kPage, MADV_DONTNEED) == -1 && errno == ENOMEM, "a hole");
  require(memory[7 * kPage] == 0 && memory[12 * kPage] == 0, "MADV_DONTNEED beside a hole");
  require(madvise(memory + 4 * kPage, 16 * kPage, MADV_WILLNEED) == -1 && errno == ENOMEM, "a hole");
  static const size_t pages[] = {1, 4, 8};
  for (size_t i = 0; i < 3; ++i)
    require(mremap(memory + 8 * kPage, 4 * kPage, pages[i] * kPage, MREMAP_MAYMOVE) == MAP_FAILED &&
                errno == EFAULT,
            "mremap of a hole");
  require(mremap(memory, kBytes, 2 * kBytes, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT,
          "mremap over a hole");
  require(mremap(memory + 4 * kPage, 16 * kPage, kPage, 0) == memory + 4 * kPage,
          "mremap that shrinks over a hole");
  check(memory, 20 * kPage, kBytes, "after what was unmapped");
  munmap(memory, kBytes);
  puts("refusals");
}

static sigjmp_buf back;
static unsigned char* seen_from_handler;
static volatile sig_atomic_t handled;
static void jump(int signal_number) { siglongjmp(back, signal_number); }
static int faults(volatile unsigned char* address, int store) {
  if (sigsetjmp(back, 1) != 0) return 1;
  if (store)
    *address = 1;
  else
    (void)*address;
  return 0;
}

static void protection(void) {
  unsigned char* memory = map(kBytes);
  fill(memory, kBytes);
  struct sigaction action = {.sa_handler = jump};
  sigaction(SIGSEGV, &action, NULL);
  require(mprotect(memory, kBytes / 2, PROT_READ) == 0, "mprotect");
  require(mprotect(memory + kBytes / 2, kPage, PROT_NONE) == 0, "mprotect");
  check(memory, 0, kBytes / 2, "read-only memory");
  require(faults(memory, 1) && faults(memory + kBytes / 2, 0) && !faults(memory + kBytes - 1, 1),
          "protection");
  unsigned char* pressure = map(kBytes);
  fill(pressure, kBytes);
  require(mprotect(memory, kBytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
  check(memory, 0, kBytes - kPage, "memory that was protected");
  munmap(memory, kBytes);
  require(faults(memory, 0), "unmapped memory");
  munmap(pressure, kBytes);
  signal(SIGSEGV, SIG_DFL);
  puts("protection");
}

static void look(int signal_number) {
  (void)signal_number;
  check(seen_from_handler, 0, kBytes, "in a handler");
  ++handled;
}
static void signals(void) {
  unsigned char* memory = map(kBytes);
  fill(memory, kBytes);
  seen_from_handler = memory;
  // The kernel writes the handler's frame to spilled memory.
  stack_t stack = {.ss_sp = map(1u << 20), .ss_size = 1u << 20};
  require(sigaltstack(&stack, NULL) == 0, "sigaltstack");
  struct sigaction action = {.sa_handler = look, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < 3; ++i) raise(SIGUSR1);
  require(handled == 3, "handlers that ran");
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, NULL);
  munmap(memory, kBytes);
  puts("signals");
}

static void files(void) {
  unsigned char* memory = map(kBytes);
  fill(memory, kBytes);
  char name[] = "corners-XXXXXX";
  int file = mkstemp(name);
  unlink(name);
  require(write(file, memory, kBytes) == (ssize_t)kBytes, "write");
  memset(memory, 0, kBytes);
  require(pread(file, memory, kBytes, 0) == (ssize_t)kBytes, "read");
  check(memory, 0, kBytes, "what was read");
  // Direct transfers go to the memory itself.
  int direct = open(".", O_TMPFILE | O_RDWR | O_DIRECT, 0600);
  if (direct >= 0) {
    require(write(direct, memory, kBytes) == (ssize_t)kBytes, "direct write");
    memset(memory, 0, kBytes);
    require(pread(direct, memory, kBytes, 0) == (ssize_t)kBytes, "direct read");
    check(memory, 0, kBytes, "what was read directly");
    close(direct);
  }
  close(file);
  munmap(memory, kBytes);
  puts("files");
}

// A daemon closes whatever it finds open.
static void descriptors(void) {
  unsigned char* memory = map(kBytes);
  fill(memory, kBytes);
  for (int i = 3; i < 2000; ++i) close(i);
  close_range(3, ~0u, 0);
  check(memory, 0, kBytes, "after closing all");
  munmap(memory, kBytes);
  puts("descriptors");
}

static void locks(void) {
  unsigned char* memory = map(kBytes);
  require(mlock(memory, kBytes) == -1 && errno == EAGAIN, "mlock");
  require(mlockall(MCL_CURRENT) == -1 && errno == EAGAIN, "mlockall");
  munmap(memory, kBytes);
}

static void children(void) {
  unsigned char* memory = map(kBytes);
  fill(memory, kBytes);
  fflush(NULL);
  require(system("exit 7") == 7 << 8, "system");
  pid_t child = fork();
  if (child == 0) {
    execlp("true", "true", NULL);
    _exit(9);
  }
  int status;
  require(waitpid(child, &status, 0) == child && status == 0, "fork and exec");
  // It has no spilled memory, and says so rather than read zeros.
  child = fork();
  if (child == 0) _exit(memory[kBytes / 2] == content(kBytes / 2) ? 1 : 2);
  require(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 134,
          "fork alone");
  // Nor has a child of that child, as a daemon is.
  child = fork();
  if (child == 0) {
    child = fork();
    if (child == 0) _exit(memory[kBytes / 2] == content(kBytes / 2) ? 1 : 2);
    _exit(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 134 ? 0 : 3);
  }
  require(waitpid(child, &status, 0) == child && status == 0, "fork of a child");
  // Nor does a copy that the C library knows nothing of.
  child = (pid_t)syscall(57);
  if (child == 0) _exit(memory[kBytes / 2] == content(kBytes / 2) ? 1 : 2);
  require(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
          "raw fork");
  check(memory, 0, kBytes, "after children");
  munmap(memory, kBytes);
}

int main(int count, char** arguments) {
  (void)arguments;
  fill(map(kBytes), kBytes);  // from here on memory spills
  heap();
  moves();
  mappings();
  replacements();
  refusals();
  protection();
  signals();
  files();
  if (count == 1) {
    locks();
    children();
  }
  descriptors();
  return 0;
}
