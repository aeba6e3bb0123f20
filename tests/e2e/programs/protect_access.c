// Memory that the program may not access, or only read: every way to touch it raises SIGSEGV with the address and code
// that it has natively, system calls fail with EFAULT, what it holds is kept, and calls that change it do what they do.
// case: none
// case: calls
// case: kept
// case: read
// case: repeat
// case: remap
// case: kernel
// case: execute
// case: fork
// case: numbers
// levels: O0 O2 O3
// pages: 64K 4K 16K
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>
#include "e2e.h"

#define P 4096
#define RW (PROT_READ | PROT_WRITE)
#define AN (MAP_PRIVATE | MAP_ANONYMOUS)
enum { N = 64 };  // OS pages of an area

static sigjmp_buf back;
static char* volatile fault_at;
static volatile int fault_code, faults;
static volatile int open_as = -1;  // what the handler makes the page; -1: it jumps
static char* base;                 // addresses are printed from here

static void on_fault(int number, siginfo_t* info, void* context) {
  (void)context;
  (void)number;
  fault_at = info->si_addr;
  fault_code = info->si_code;
  ++faults;
  if (open_as < 0) siglongjmp(back, 1);
  CHECK(mprotect((void*)((uintptr_t)fault_at & -(uintptr_t)P), P, open_as) == 0);
}

static void tell(const char* what, int jumped, size_t grain) {
  if (jumped)
    printf("%s: %ld code %d\n", what, (long)((fault_at - base) / (long)grain * (long)grain), fault_code);
  else
    printf("%s: fine\n", what);
}
// Which byte a copy faults at is its own affair, but for the page.
#define TRY_NEAR(what, grain, statement)   \
  do {                                     \
    const int jumped = sigsetjmp(back, 1); \
    if (jumped == 0) {                     \
      statement;                           \
    }                                      \
    tell(what, jumped, grain);             \
  } while (0)
#define TRY(what, statement) TRY_NEAR(what, 1, statement)

static char* area(int protection) {
  char* memory = mmap(NULL, N * P, protection, AN, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_SPILLED(memory);
  base = memory;
  return memory;
}
static void fill(char* memory, int first, int end) {
  for (int i = first * P; i < end * P; ++i) memory[i] = (char)(i * 31 + (i >> 9));
}
static int same(const char* memory, int first, int end) {
  for (int i = first * P; i < end * P; ++i)
    if (memory[i] != (char)(i * 31 + (i >> 9))) return 0;
  return 1;
}
static int zeros(const char* memory, int first, int end) {
  for (int i = first * P; i < end * P; ++i)
    if (memory[i] != 0) return 0;
  return 1;
}

static void touch_all(char* m) {
  volatile char* v = m;
  volatile uint64_t* words = (volatile uint64_t*)m;
  char plain[200] = "some text", *text = plain;
  TRY("load", (void)v[5 * P + 17]);
  TRY("store", v[6 * P + 18] = 'x');
  TRY("load 8", (void)words[7 * P / 8]);
  TRY("store 8", words[8 * P / 8 + 3] = 1);
  TRY("load across", (void)*(volatile uint64_t*)(v + 9 * P - 3));
  TRY("store across", *(volatile uint64_t*)(v + 9 * P - 5) = 7);
  TRY("add", __atomic_fetch_add((int*)(m + 10 * P), 1, __ATOMIC_SEQ_CST));
  TRY("swap", __atomic_exchange_n((uint64_t*)(m + 11 * P + 8), 1, __ATOMIC_SEQ_CST));
  uint64_t expected = 0;
  TRY("compare", __atomic_compare_exchange_n((uint64_t*)(m + 12 * P), &expected, 1, 0, __ATOMIC_SEQ_CST,
                                             __ATOMIC_SEQ_CST));
  TRY("loop", for (int i = 0; i < 100 * 8; i += 8) v[13 * P - 400 + i] = 'y');
  TRY_NEAR("memcpy to", P, memcpy(m + 14 * P + 100, plain, sizeof plain));
  TRY_NEAR("memcpy from", P, memcpy(plain, m + 15 * P + 100, sizeof plain); HIDE(text));
  TRY_NEAR("memset", P, memset(m + 16 * P, 1, 10000));
  TRY_NEAR("memmove", P, memmove(m + 17 * P, m + 17 * P + 1, 100));
  TRY_NEAR("strlen", P, printf("%zu\n", strlen(m + 18 * P)));
  TRY_NEAR("memchr", P, printf("%d\n", memchr(m + 19 * P, 1, 50) != NULL));
  TRY_NEAR("snprintf", P, snprintf(m + 20 * P, 30, "%d", 12345));
  TRY_NEAR("foreign store", P, wmemset((wchar_t*)(m + 21 * P), 'w', 30));
  TRY_NEAR("foreign load", P, printf("%d\n", wmemchr((wchar_t*)(m + 22 * P), 'w', 30) != NULL));
}

static void none(void) {
  char* m = area(PROT_NONE);
  touch_all(m);
  CHECK(mprotect(m + 5 * P, 30 * P, RW) == 0);
  CHECK(zeros(m, 5, 35));
  touch_all(m);
  TRY("before", m[5 * P - 1] = 1);
  TRY("behind", m[35 * P] = 1);
  CHECK(munmap(m, N * P) == 0);
  volatile char* gone = m;
  HIDE(gone);
  TRY("gone", (void)gone[5 * P + 17]);
  TRY("gone", gone[6 * P] = 1);
  TRY_NEAR("gone", P, memset(m + 7 * P, 1, 100));
  char* large = mmap(NULL, (size_t)1 << 38, PROT_NONE, AN | MAP_NORESERVE, -1, 0);
  CHECK(large != MAP_FAILED);
  CHECK_SPILLED(large);
  CHECK(mprotect(large + ((size_t)1 << 37) + P, P, RW) == 0);
  base = large + ((size_t)1 << 37);
  base[P] = 1;
  TRY("middle", base[0] = 1);
  TRY("middle", base[2 * P] = 1);
  CHECK(mprotect(large, (size_t)1 << 38, RW) == 0 && base[P] == 1 && base[0] == 0);
  CHECK(mprotect(large, (size_t)1 << 38, PROT_NONE) == 0);
  TRY("middle", base[P] = 1);
  CHECK(munmap(large, (size_t)1 << 38) == 0);
}

static void transfer(const char* what, ssize_t done) {
  printf("%s: %zd %s\n", what, done, done < 0 ? strerror(errno) : "");
}
static void calls(void) {
  static const int protections[] = {PROT_NONE, PROT_READ, RW};
  for (int which = 0; which < 3; ++which) {
    char* m = area(RW);
    fill(m, 0, N);
    CHECK(mprotect(m + 2 * P, 40 * P, protections[which]) == 0);
    int ends[2], file = open("protected.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && pipe(ends) == 0 && unlink("protected.tmp") == 0);
    CHECK(ftruncate(file, N * P) == 0);
    transfer("write", write(ends[1], m + 3 * P, 100));
    transfer("fill", write(ends[1], m, 100));
    transfer("read", read(ends[0], m + 4 * P, 50));
    transfer("pwrite", pwrite(file, m + 5 * P, 3 * P, 0));
    transfer("pwrite all", pwrite(file, m + 5 * P, 30 * P, 0));
    transfer("pread", pread(file, m + 5 * P, 3 * P, 0));
    transfer("pread all", pread(file, m + 5 * P, 30 * P, 0));
    transfer("pread nothing", pread(file, m + 5 * P, 3 * P, N * P));
    transfer("pread of nothing", pread(-1, m + 5 * P, 3 * P, 0));
    struct iovec two[] = {{m, 100}, {m + 4 * P, 100}};
    transfer("pwritev", pwritev(file, two, 2, 0));
    transfer("first part", pwrite(file, m + P, 40 * P, 0));
    close(file), close(ends[0]), close(ends[1]);
    CHECK(mprotect(m, N * P, RW) == 0);
    uint64_t sum = 0;
    for (int i = 0; i < N * P; ++i) sum = sum * 31 + (unsigned char)m[i];
    printf("%lu\n", sum);
    CHECK(munmap(m, N * P) == 0);
  }
  // What is not mapped any more.
  char* m = area(RW);
  fill(m, 0, N);
  int ends[2], file = open("protected.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0 && pipe(ends) == 0 && unlink("protected.tmp") == 0);
  CHECK(munmap(m + 2 * P, 40 * P) == 0);
  transfer("fill", write(ends[1], m, 100));
  transfer("write what is gone", write(ends[1], m + 3 * P, 100));
  transfer("read to what is gone", read(ends[0], m + 4 * P, 50));
  transfer("pwrite what is gone", pwrite(file, m + 5 * P, 3 * P, 0));
  transfer("what is there", pwrite(file, m + P, 4 * P, 0));
  close(file), close(ends[0]), close(ends[1]);
  CHECK(munmap(m, N * P) == 0);
}

static void kept(void) {
  for (int round = 0; round < 4; ++round) {
    char* m = area(RW);
    fill(m, 0, N);
    CHECK(mprotect(m + 3 * P, 25 * P, PROT_NONE) == 0);
    CHECK(same(m, 0, 3) && same(m, 28, N));
    push_out(3 << 20);
    TRY("kept", m[27 * P] = 1);
    CHECK(same(m, 0, 3) && same(m, 28, N));
    // Pages in its middle: opened, dropped, taken.
    CHECK(mprotect(m + 7 * P, 2 * P, RW) == 0 && same(m, 7, 9));
    CHECK(madvise(m + 10 * P, 3 * P, MADV_DONTNEED) == 0);
    CHECK(mmap(m + 15 * P, P, PROT_NONE, AN | MAP_FIXED, -1, 0) == m + 15 * P);
    CHECK(mmap(m + 17 * P, P, RW, AN | MAP_FIXED, -1, 0) == m + 17 * P);
    CHECK(zeros(m, 17, 18));
    TRY("dropped", m[10 * P] = 1);
    TRY("taken", m[15 * P] = 1);
    TRY("other", m[16 * P] = 1);
    CHECK(munmap(m + 20 * P, 2 * P) == 0);
    CHECK(mprotect(m + 3 * P, 25 * P, RW) == -1);
    printf("hole: %s\n", strerror(errno));
    CHECK(mmap(m + 20 * P, 2 * P, PROT_NONE, AN | MAP_FIXED, -1, 0) == m + 20 * P);
    CHECK(mprotect(m + 3 * P, 25 * P, RW) == 0);
    CHECK(same(m, 0, 10) && zeros(m, 10, 13) && same(m, 13, 15) && zeros(m, 15, 16) && same(m, 16, 17) &&
          zeros(m, 17, 18) && same(m, 18, 20) && zeros(m, 20, 22) && same(m, 22, N));
    CHECK(mprotect(m + 1, P, PROT_NONE) == -1 && errno == EINVAL);
    CHECK(mprotect(m, 0, PROT_NONE) == 0 && m[0] == 0);
    // All of it, and freed as it is: the next one is open.
    CHECK(mprotect(m, N * P, PROT_NONE) == 0 && munmap(m, N * P) == 0);
    char* again = area(RW);
    CHECK(zeros(again, 0, N));
    fill(again, 0, N);
    CHECK(munmap(again, N * P) == 0);
    // Decommitted and committed again by new mappings.
    m = area(PROT_NONE);
    CHECK(mmap(m, 20 * P, RW, AN | MAP_FIXED, -1, 0) == m);
    fill(m, 0, 20);
    CHECK(mmap(m + 5 * P, 10 * P, PROT_NONE, AN | MAP_FIXED | MAP_NORESERVE, -1, 0) == m + 5 * P);
    push_out(3 << 20);
    CHECK(same(m, 0, 5) && same(m, 15, 20));
    TRY("decommitted", m[14 * P + 1] = 1);
    CHECK(mprotect(m + 5 * P, 10 * P, RW) == 0 && zeros(m, 5, 15));
    CHECK(munmap(m, N * P) == 0);
  }
}

static void only_read(void) {
  char* m = area(RW);
  fill(m, 0, N);
  CHECK(mprotect(m, N * P, PROT_READ) == 0);
  CHECK(same(m, 0, N));
  touch_all(m);
  push_out(3 << 20);
  CHECK(same(m, 0, N));
  CHECK(mprotect(m + 9 * P, P, RW) == 0);
  m[9 * P] = 'z';
  CHECK(m[9 * P] == 'z' && same(m, 0, 9) && same(m, 10, N));
  CHECK(mprotect(m + 11 * P, P, PROT_NONE) == 0);
  TRY("load", (void)*(volatile char*)(m + 11 * P));
  CHECK(mprotect(m + 11 * P, P, PROT_READ) == 0 && same(m, 10, N));
  TRY("store", m[11 * P] = 1);
  CHECK(munmap(m, N * P) == 0);
}

// The same by the numbers of system calls.
static void numbers(void) {
  char* m = area(RW);
  fill(m, 0, N);
  CHECK(syscall(SYS_mprotect, m + 2 * P, 3 * P, PROT_NONE) == 0);
  TRY("store", m[3 * P] = 1);
  CHECK(syscall(SYS_mprotect, m, N * P, RW) == 0 && same(m, 0, N));
  CHECK(syscall(SYS_madvise, m + 5 * P, P, MADV_DONTNEED) == 0 && zeros(m, 5, 6) && same(m, 6, N));
  CHECK((char*)syscall(SYS_mmap, m + 7 * P, P, PROT_NONE, AN | MAP_FIXED, -1, 0) == m + 7 * P);
  TRY("load", (void)*(volatile char*)(m + 7 * P));
  CHECK((char*)syscall(SYS_mremap, m + 8 * P, (N - 8) * P, 20 * P, 0) == m + 8 * P && same(m, 8, 28));
  CHECK(syscall(SYS_mprotect, m + 1, P, RW) == -1 && errno == EINVAL);
  CHECK(pkey_mprotect(m, P, PROT_NONE, -1) == 0);
  TRY("load", (void)*(volatile char*)m);
  CHECK(syscall(SYS_munmap, m, N * P) == 0);
}

// The handler allows the access, and it is repeated.
static void repeat(void) {
  static const int protections[] = {PROT_NONE, PROT_READ};
  for (int which = 0; which < 2; ++which) {
    for (int round = 0; round < 3; ++round) {
      char* m = area(RW);
      fill(m, 0, N);
      CHECK(mprotect(m, N * P, protections[which]) == 0);
      if (round == 1) push_out(3 << 20);
      open_as = RW;
      faults = 0;
      touch_all(m);
      printf("%d faults\n", faults);
      uint64_t sum = 0;
      for (int i = 0; i < N * P; ++i) sum = sum * 31 + (unsigned char)m[i];
      printf("%d faults, %lu\n", faults, sum);
      open_as = -1;
      CHECK(munmap(m, N * P) == 0);
    }
  }
}

static void remap(void) {
  char* m = area(RW);
  fill(m, 0, N);
  CHECK(mprotect(m, 20 * P, PROT_NONE) == 0);
  CHECK(mremap(m, N * P, 2 * N * P, MREMAP_MAYMOVE) == MAP_FAILED);
  printf("%s\n", strerror(errno));
  char* moved = mremap(m, 20 * P, 50 * P, MREMAP_MAYMOVE);
  CHECK(moved != MAP_FAILED && moved != m);
  base = moved;
  TRY("moved", moved[5] = 1);
  TRY("grown", moved[45 * P] = 1);
  CHECK(mprotect(moved, 50 * P, RW) == 0 && same(moved, 0, 20) && zeros(moved, 20, 50));
  CHECK(same(m, 20, N));
  CHECK(mprotect(moved, 20 * P, PROT_READ) == 0);
  char* fixed = mremap(moved, 20 * P, 20 * P, MREMAP_MAYMOVE | MREMAP_FIXED, m + 30 * P);
  CHECK(fixed == m + 30 * P);
  CHECK(same(m, 20, 30) && same(m, 50, N));
  for (int i = 0; i < 20 * P; ++i) CHECK(fixed[i] == (char)(i * 31 + (i >> 9)));
  base = m;
  TRY("fixed", fixed[7] = 1);
  CHECK(munmap(m + 20 * P, (N - 20) * P) == 0 && munmap(moved + 20 * P, 30 * P) == 0);
}

// Other mappings of the kernel's within what was reserved: one memory file twice, side by side.
static void kernel(void) {
  char* m = area(PROT_NONE);
  const int file = memfd_create("ring", 0);
  CHECK(file >= 0 && ftruncate(file, 10 * P) == 0);
  CHECK(mmap(m + 5 * P, 10 * P, RW, MAP_SHARED | MAP_FIXED, file, 0) == m + 5 * P);
  CHECK(mmap(m + 15 * P, 10 * P, RW, MAP_SHARED | MAP_FIXED, file, 0) == m + 15 * P);
  for (int i = 0; i < 10 * P; ++i) m[5 * P + i] = (char)(i * 7);
  for (int i = 0; i < 10 * P; ++i) CHECK(m[15 * P + i] == (char)(i * 7));
  CHECK(pwrite(file, "kernel", 6, 100) == 6 && memcmp(m + 15 * P + 100, "kernel", 6) == 0);
  CHECK(mprotect(m, 5 * P, RW) == 0 && mprotect(m + 25 * P, 5 * P, RW) == 0);
  fill(m, 0, 5);
  fill(m, 25, 30);
  push_out(3 << 20);
  CHECK(same(m, 0, 5) && same(m, 25, 30) && memcmp(m + 5 * P + 100, "kernel", 6) == 0);
  wmemset((wchar_t*)m, 'w', P / sizeof(wchar_t));  // maps pages of the neighbourhood
  CHECK(memcmp(m + 15 * P + 100, "kernel", 6) == 0);
  CHECK(mprotect(m + 6 * P, P, PROT_READ) == 0);
  TRY("store", m[6 * P + 1] = 1);
  CHECK(pread(file, m + 16 * P, 8 * P, P) == 8 * P);
  // Spilled memory again.
  CHECK(mmap(m + 5 * P, 10 * P, RW, AN | MAP_FIXED, -1, 0) == m + 5 * P);
  CHECK(zeros(m, 5, 15));
  fill(m, 5, 15);
  CHECK(munmap(m + 15 * P, 5 * P) == 0);
  push_out(3 << 20);
  CHECK(same(m, 1, 15) && same(m, 25, 30) && m[20 * P + 1] == (char)((5 * P + 1) * 7));
  CHECK(munmap(m, N * P) == 0);
  close(file);
  CHECK(mmap(m, P, RW, MAP_SHARED | MAP_FIXED, -1, 0) == MAP_FAILED);
  printf("%s\n", strerror(errno));
}

static void execute(void) {
  static const unsigned char code[] = {0x8d, 0x47, 0x2a, 0xc3};  // lea 42(%rdi), %eax; ret
  char* m = area(PROT_NONE);
  CHECK(mprotect(m, 30 * P, RW) == 0);
  for (int i = 0; i < 30; ++i) memcpy(m + i * P + i, code, sizeof code);
  CHECK(mprotect(m, 20 * P, PROT_READ | PROT_EXEC) == 0);
  push_out(3 << 20);
  int (*volatile function)(int);
  int sum = 0;
  for (int i = 0; i < 20; ++i) {
    function = (int (*)(int))(m + i * P + i);
    sum += function(i);
  }
  printf("%d\n", sum);
  TRY("store", m[3 * P] = 1);
  function = (int (*)(int))(m + 25 * P + 25);
  TRY("call", function(1));
  CHECK(mprotect(m + 20 * P, 10 * P, RW | PROT_EXEC) == 0);
  m[25 * P + 27] = 43;
  printf("%d\n", function(1));
  CHECK(munmap(m, N * P) == 0);
}

static void in_child(void) {
  char* m = area(RW);
  fill(m, 0, N);
  CHECK(mprotect(m + 3 * P, 20 * P, PROT_NONE) == 0);
  CHECK(mprotect(m + 30 * P, 10 * P, PROT_READ) == 0);
  for (int round = 0; round < 3; ++round) {
    fflush(stdout);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      TRY("child", m[5 * P] = 1);
      TRY("child", m[35 * P] = 1);
      CHECK(same(m, 0, 3) && same(m, 23, N));
      CHECK(mprotect(m, N * P, RW) == 0 && same(m, 0, N));
      memset(m, 0, N * P);
      push_out(3 << 20);
      CHECK(zeros(m, 0, N));
      fflush(stdout);
      _exit(7);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    TRY("parent", m[5 * P] = 1);
    TRY("parent", m[35 * P] = 1);
    CHECK(same(m, 0, 3) && same(m, 23, N));
  }
  CHECK(mprotect(m, N * P, RW) == 0 && same(m, 0, N));
  CHECK(munmap(m, N * P) == 0);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  static const struct {
    const char* name;
    void (*run)(void);
  } parts[] = {{"none", none},     {"calls", calls},    {"kept", kept},     {"read", only_read},
               {"repeat", repeat}, {"remap", remap},    {"kernel", kernel}, {"execute", execute},
               {"fork", in_child}, {"numbers", numbers}};
  for (unsigned i = 0; i < sizeof parts / sizeof *parts; ++i)
    if (strcmp(argv[1], parts[i].name) == 0) parts[i].run();
  puts("end");
  return 0;
}
