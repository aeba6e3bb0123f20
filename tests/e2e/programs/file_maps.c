// Files that are mapped to be read, and privately: what they hold, what stores and what writes to the file do, and the end.
// case: all
// case: past => 135
// case: past-foreign => 135
// expect: spill.file_maps>=8 cache.origin_reads>=1000 spill.file_maps_ended>=5
// flags: -pthread
// memory: 4M
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "e2e.h"

#define P 4096
#define PAGES 512
#define TAIL 1234
#define BYTES (PAGES * P + TAIL)
#define RW (PROT_READ | PROT_WRITE)

static char path[64];

static uint64_t word(uint64_t i, uint64_t version) {
  uint64_t state = i * 2 + 1 + version * 0x10001;
  return next_random(&state);
}

static void make(uint64_t version) {
  static uint64_t page[P / 8];
  unlink(path);
  int file = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
  CHECK(file >= 0);
  for (size_t at = 0; at < BYTES; at += P) {
    for (size_t i = 0; i < P / 8; ++i) page[i] = word(at / 8 + i, version);
    size_t n = BYTES - at < P ? BYTES - at : P;
    CHECK(write(file, page, n) == (ssize_t)n);
  }
  close(file);
}

static char* map_part(int protection, int flags, size_t bytes, off_t offset) {
  int file = open(path, O_RDONLY);
  CHECK(file >= 0);
  char* map = mmap(NULL, bytes, protection, flags, file, offset);
  CHECK(map != MAP_FAILED);
  close(file);
  return map;
}
static char* map(int protection, int flags) {
  char* all = map_part(protection, flags, BYTES, 0);
  CHECK_SPILLED(all);
  return all;
}

static void expect(const char* map, size_t from, size_t to, uint64_t version) {
  for (size_t i = from / 8; i < to / 8; ++i) CHECK(((const uint64_t*)map)[i] == word(i, version));
}
static void expect_all(const char* map, uint64_t version) {
  expect(map, 0, BYTES / 8 * 8, version);
  uint64_t last = word(BYTES / 8, version);
  CHECK(memcmp(map + BYTES / 8 * 8, &last, BYTES % 8) == 0);
  for (size_t i = BYTES; i < (BYTES + P - 1) / P * P; ++i) CHECK(map[i] == 0);
}

static void write_all(uint64_t version) {
  int file = open(path, O_WRONLY);
  CHECK(file >= 0);
  for (size_t i = 0; i < BYTES / 8; ++i) {
    uint64_t value = word(i, version);
    if (i % 64 == 0 || version != 0) CHECK(pwrite(file, &value, 8, i * 8) == 8);
    if (version != 0) i += 63;
  }
  close(file);
}

static void read_only(void) {
  for (int shared = 0; shared < 2; ++shared) {
    make(0);
    char* all = map(PROT_READ, shared ? MAP_SHARED : MAP_PRIVATE);
    expect_all(all, 0);
    push_out(8 << 20);
    expect_all(all, 0);
    for (size_t i = PAGES; i-- > 0;) CHECK((unsigned char)all[i * P] == (unsigned char)word(i * P / 8, 0));
    CHECK(foreign_load(all + 77 * P) == (unsigned char)all[77 * P]);
    static char copy[3 * P];
    memcpy(copy, all + 100 * P + 5, sizeof copy);
    CHECK(memcmp(copy, all + 100 * P + 5, sizeof copy) == 0);
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], all + 7 * P - 100, 200) == 200 &&
          read(ends[0], copy, 200) == 200);
    CHECK(memcmp(copy, all + 7 * P - 100, 200) == 0);
    CHECK(msync(all, BYTES, MS_SYNC) == 0 && madvise(all, BYTES, MADV_WILLNEED) == 0);
    CHECK(mprotect(all, BYTES, PROT_READ) == 0);
    char* part = map_part(PROT_READ, MAP_SHARED, 40 * P, 30 * P);
    for (size_t i = 0; i < 40 * P; i += 8) CHECK(*(uint64_t*)(part + i) == word((30 * P + i) / 8, 0));
    CHECK(munmap(part, 40 * P) == 0);
    CHECK(munmap(all + 10 * P, 20 * P) == 0);
    expect(all, 0, 10 * P, 0);
    expect(all, 30 * P, BYTES / 8 * 8, 0);
    CHECK(munmap(all, BYTES) == 0);
  }
  puts("read only");
}

// A writer comes: what it writes is seen.
static void written_later(void) {
  for (int kind = 0; kind < 4; ++kind) {
    make(0);
    char* all = map(PROT_READ, kind & 1 ? MAP_SHARED : MAP_PRIVATE);
    expect(all, 0, 100 * P, 0);
    CHECK(foreign_load(all + 3 * P) == (unsigned char)word(3 * P / 8, 0));
    CHECK(munmap(all + 40 * P, P) == 0);
    if (kind & 2) {
      pid_t child = fork();
      if (child == 0) {
        write_all(1);
        _exit(0);
      }
      expect_end(child);
    } else {
      write_all(1);
    }
    for (size_t i = 0; i < BYTES / 8; i += 64)
      if (i / (P / 8) != 40)
        CHECK(((uint64_t*)all)[i] == word(i, 1) && ((uint64_t*)all)[i + 1] == word(i + 1, 0));
    CHECK(foreign_load(all + 3 * P) == (unsigned char)word(3 * P / 8, 1));
    CHECK(munmap(all, BYTES) == 0);
  }
  puts("written later");
}

static void change_private(void) {
  make(0);
  char* all = map(RW, MAP_PRIVATE);
  char* other = map(PROT_READ, MAP_SHARED);
  for (size_t i = 0; i < PAGES; i += 3) all[i * P + 17] ^= 0x55;
  // A store that changes nothing is a store.
  for (size_t i = 1; i < PAGES; i += 3) {
    volatile char* byte = all + i * P;
    *byte = *byte;
  }
  push_out(8 << 20);
  expect_all(other, 0);
  CHECK(munmap(other, BYTES) == 0);
  write_all(1);
  push_out(8 << 20);
  for (size_t i = 0; i < PAGES; ++i) {
    if (i % 3 == 0)
      CHECK(all[i * P + 17] == (char)(((const char*)(uint64_t[]){word(i * P / 8 + 2, 0)})[1] ^ 0x55));
    if (i % 3 == 1) CHECK(*(uint64_t*)(all + i * P) == word(i * P / 8, 0));
  }
  CHECK(madvise(all, 6 * P, MADV_DONTNEED) == 0);
  CHECK(*(uint64_t*)(all + 3 * P) == word(3 * P / 8, 1) &&
        *(uint64_t*)(all + 3 * P + 8) == word(3 * P / 8 + 1, 0));
  CHECK(all[6 * P + 17] == (char)(((const char*)(uint64_t[]){word(6 * P / 8 + 2, 0)})[1] ^ 0x55));
  CHECK(munmap(all + 8 * P, 100 * P) == 0 && munmap(all, BYTES) == 0);
  // Nothing is left of one mapping in the next.
  make(2);
  for (int round = 0; round < 3; ++round) {
    char* again = map(RW, MAP_PRIVATE);
    expect_all(again, 2);
    memset(again, 1, 100 * P);
    CHECK(munmap(again, BYTES) == 0);
  }
  puts("private");
}

static sigjmp_buf out;
static volatile int seen_code;
static void* volatile seen_address;
static void on_bus(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  seen_code = info->si_code;
  seen_address = info->si_addr;
  siglongjmp(out, 1);
}
static int raises(const char* at, int foreign) {
  seen_code = 0;
  if (sigsetjmp(out, 1) == 0) {
    unsigned char value = foreign ? foreign_load(at) : *(volatile const unsigned char*)at;
    HIDE(at);
    (void)value;
    return 0;
  }
  CHECK(seen_code == BUS_ADRERR && seen_address == at);
  return 1;
}

static void past_the_end(void) {
  // Pages that are larger than the machine's end with zeros.
  const int first = getenv("SPILLWAY_PAGE") != NULL ? 16 : 1;
  struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO}, old;
  sigaction(SIGBUS, &action, &old);
  for (int kind = 0; kind < 3; ++kind) {
    make(0);
    char* all = map_part(kind == 2 ? RW : PROT_READ, kind == 1 ? MAP_SHARED : MAP_PRIVATE, BYTES + 40 * P, 0);
    CHECK_SPILLED(all);
    expect_all(all, 0);
    for (int i = first; i < first + 3; ++i)
      CHECK(raises(all + (PAGES + i) * P + i, i & 1) && raises(all + (PAGES + i) * P + 3, 0));
    CHECK(!raises(all + PAGES * P, 0));
    // A file that grows has more.
    CHECK(truncate(path, BYTES + 20 * P) == 0);
    CHECK(!raises(all + (PAGES + 18) * P, 0) && all[(PAGES + 18) * P + 1] == 0);
    CHECK(!raises(all + (PAGES + 19) * P, 1) && raises(all + (PAGES + 36) * P, 1));
    CHECK(munmap(all, BYTES + 40 * P) == 0);
  }
  sigaction(SIGBUS, &old, NULL);
  puts("past the end");
}

static atomic_int stop;
static atomic_long reads;
static void* read_always(void* argument) {
  const uint64_t* all = argument;
  uint64_t state = 7;
  while (!atomic_load(&stop)) {
    size_t i = next_random(&state) % (BYTES / 8);
    uint64_t value = ((const volatile uint64_t*)all)[i];
    CHECK(value == word(i, 0) || (i % 64 == 0 && value == word(i, 1)));
    atomic_fetch_add(&reads, 1);
  }
  return NULL;
}
static void written_while_read(void) {
  for (int round = 0; round < 5; ++round) {
    make(0);
    char* all = map(PROT_READ, MAP_SHARED);
    pthread_t threads[3];
    atomic_store(&stop, 0);
    atomic_store(&reads, 0);
    for (int i = 0; i < 3; ++i) CHECK(pthread_create(&threads[i], NULL, read_always, all) == 0);
    while (atomic_load(&reads) < 2000) usleep(100);
    write_all(1);
    for (size_t i = 0; i < BYTES / 8; i += 64) CHECK(((uint64_t*)all)[i] == word(i, 1));
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    CHECK(munmap(all, BYTES) == 0);
  }
  puts("written while read");
}

static void* open_to_write(void* unused) {
  const int file = open(path, O_WRONLY);
  CHECK(file >= 0 && close(file) == 0);
  return unused;
}
// A mapping becomes one to write to just when it becomes the kernel's, since somebody wants to write to the file: what is stored stays.
static void stored_while_handed_over(void) {
  make(0);
  uint64_t state = 3;
  for (int round = 0; round < 24; ++round) {
    char* all = map(PROT_READ, MAP_PRIVATE);
    for (size_t i = 0; i < PAGES; ++i) CHECK(*(uint64_t*)(all + i * P) == word(i * P / 8, 0));
    pthread_t writer;
    CHECK(pthread_create(&writer, NULL, open_to_write, NULL) == 0);
    usleep(next_random(&state) % 1300);
    CHECK(mprotect(all, BYTES, RW) == 0);
    for (size_t i = PAGES; i-- > 0;) *(uint64_t*)(all + i * P) = i;
    CHECK(pthread_join(writer, NULL) == 0);
    for (size_t i = 0; i < PAGES; ++i) CHECK(*(uint64_t*)(all + i * P) == i);
    CHECK(munmap(all, BYTES) == 0);
  }
  puts("stored");
}

// What only the kernel can do.
static void odd_calls(void) {
  make(0);
  char* all = map(PROT_READ, MAP_PRIVATE);
  expect(all, 0, 50 * P, 0);
  CHECK(mprotect(all + 4 * P, 4 * P, RW) == 0);
  all[5 * P] = 'x';
  CHECK(all[5 * P] == 'x' && *(uint64_t*)(all + 4 * P) == word(4 * P / 8, 0));
  char* zeros = mmap(all + 8 * P, 4 * P, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  CHECK(zeros == all + 8 * P && zeros[P] == 0);
  zeros[P] = 'y';
  expect(all, 12 * P, BYTES / 8 * 8, 0);
  CHECK(munmap(all, BYTES) == 0);

  all = map(PROT_READ, MAP_SHARED);
  expect(all, 0, 50 * P, 0);
  all = mremap(all, BYTES, 20 * P, 0);
  CHECK(all != MAP_FAILED);
  expect(all, 0, 20 * P, 0);
  all = mremap(all, 20 * P, BYTES, MREMAP_MAYMOVE);
  CHECK(all != MAP_FAILED);
  expect_all(all, 0);
  CHECK(munmap(all, BYTES) == 0);
  puts("odd calls");
}

static void forks(void) {
  make(0);
  char* reading = map(PROT_READ, MAP_SHARED);
  char* changed = map(RW, MAP_PRIVATE);
  for (size_t i = 0; i < PAGES; i += 2) changed[i * P] = 'a';
  expect(reading, 0, 60 * P, 0);
  int ends[2], back[2];
  CHECK(pipe(ends) == 0 && pipe(back) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    char byte = 0;
    expect_all(reading, 0);
    for (size_t i = 0; i < PAGES; ++i) CHECK(changed[i * P] == (i % 2 == 0 ? 'a' : (char)word(i * P / 8, 0)));
    changed[0] = 'c';
    CHECK(write(back[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1);
    for (size_t i = 0; i < BYTES / 8; i += 64) CHECK(((uint64_t*)reading)[i] == word(i, 1));
    CHECK(changed[0] == 'c' && changed[2 * P] == 'a');
    char* new_map = map_part(PROT_READ, MAP_SHARED, BYTES, 0);
    CHECK(((uint64_t*)new_map)[64] == word(64, 1));
    _exit(7);
  }
  char byte;
  CHECK(read(back[0], &byte, 1) == 1);
  write_all(1);
  CHECK(write(ends[1], "x", 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  CHECK(changed[0] == 'a' && ((uint64_t*)reading)[64] == word(64, 1));
  CHECK(munmap(reading, BYTES) == 0 && munmap(changed, BYTES) == 0);
  puts("forks");
}

static sigjmp_buf refused_at;
static void on_refused(int number) { siglongjmp(refused_at, number); }
// The signal that an access raises, or 0.
static int raised_by(char* at, int stores) {
  volatile int number = sigsetjmp(refused_at, 1);
  if (number != 0) return number;
  if (stores)
    *(volatile char*)at = 'y';
  else
    foreign_load(at);
  return 0;
}

// What may not be done to a map that has become the kernel's is refused as natively, by threads and children.
static void refused(void) {
  make(0);
  struct sigaction action = {.sa_handler = on_refused}, before;
  CHECK(sigaction(SIGSEGV, &action, &before) == 0);
  char* all = map(PROT_READ, MAP_PRIVATE);
  expect_all(all, 0);
  CHECK(mprotect(all, BYTES, PROT_NONE) == 0);
  CHECK(raised_by(all + 2 * P, 0) == SIGSEGV && raised_by(all + 2 * P, 1) == SIGSEGV);
  CHECK(mprotect(all, BYTES, PROT_READ) == 0);
  CHECK(raised_by(all + 2 * P, 0) == 0 && raised_by(all + 2 * P, 1) == SIGSEGV);
  char* other = map(PROT_READ, MAP_SHARED);
  expect_all(other, 0);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(raised_by(other + 9, 1) == SIGSEGV && raised_by(other + 9, 0) == 0 ? 7 : 8);
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  write_all(1);
  for (int i = 0; i < 3; ++i) CHECK(raised_by(other + 9, 1) == SIGSEGV);
  for (size_t i = 0; i < BYTES / 8; i += 64) CHECK(((uint64_t*)other)[i] == word(i, 1));
  CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
  CHECK(munmap(all, BYTES) == 0 && munmap(other, BYTES) == 0);
  puts("refused");
}

static atomic_int holds;
static void* hold_page(void* page) {
  holds = *(volatile char*)page != 0 ? 1 : 2;
  // No call, which would let go of it.
  while (holds != 0) {
  }
  return NULL;
}

// A page that a thread still holds from before somebody wrote to the file: a child finds what was written.
static void held_at_fork(void) {
  make(0);
  char* all = map(PROT_READ, MAP_SHARED);
  expect_all(all, 0);
  pthread_t thread;
  holds = 0;
  CHECK(pthread_create(&thread, NULL, hold_page, all + 2 * P) == 0);
  while (holds == 0) usleep(100);
  write_all(1);
  for (int kind = 0; kind < 2; ++kind) {
    fflush(stdout);
    const pid_t child = kind == 0 ? _Fork() : fork();
    if (child == 0) _exit(((uint64_t*)all)[2 * P / 8] == word(2 * P / 8, 1) ? 7 : 8);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  }
  holds = 0;
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(munmap(all, BYTES) == 0);
  // Nor does who wants to write to the file wait for such a thread once it is unmapped.
  make(0);
  all = map(PROT_READ, MAP_SHARED);
  CHECK(pthread_create(&thread, NULL, hold_page, all + 2 * P) == 0);
  while (holds == 0) usleep(100);
  CHECK(munmap(all, BYTES) == 0);
  const int writer = open(path, O_WRONLY | O_NONBLOCK);
  CHECK(writer >= 0 && close(writer) == 0);
  holds = 0;
  CHECK(pthread_join(thread, NULL) == 0);
  puts("held");
}

// The runtime's (include/spillway/spill.h); null natively.
extern int __spillway_pin(const void* p, size_t bytes) __attribute__((weak));
extern int __spillway_unpin(const void* p, size_t bytes) __attribute__((weak));

// What a thread is asked to read, and what it found. A number of turns that is odd is that thread's.
static struct {
  const uint64_t* place;
  uint64_t found;
} asked;
static atomic_int turn;

// Calls nothing from its first turn to its last: it holds the page that it read last.
static void* answer(void* unused) {
  for (int last = 0;;) {
    int now;
    while ((now = atomic_load_explicit(&turn, memory_order_acquire)) == last) {
    }
    if (now < 0) return unused;
    asked.found = *asked.place;
    last = now + 1;
    atomic_store_explicit(&turn, last, memory_order_release);
  }
}

static uint64_t ask(const char* place) {
  asked.place = (const uint64_t*)place;
  const int mine = turn + 1;
  turn = mine;
  while (turn == mine) usleep(100);
  return asked.found;
}

// Memory that a thread held when it was freed, or that was pinned, has nothing to do with a file that is mapped later.
static void at_addresses_of_others(void) {
  for (int pinned = 1; pinned >= 0; --pinned) {
    make(0);
    // The next map will be here.
    char* place = map(PROT_READ, MAP_SHARED);
    CHECK(munmap(place, BYTES) == 0);
    char* before = mmap(place, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(before == place);
    memset(before, 'b', BYTES);
    pthread_t thread;
    if (!pinned) {
      CHECK(pthread_create(&thread, NULL, answer, NULL) == 0);
      CHECK(ask(before + 2 * P) == 0x6262626262626262);
    } else if (__spillway_pin != NULL) {
      CHECK(__spillway_pin(before + 2 * P, P) == 0);
    }
    CHECK(munmap(before, BYTES) == 0);
    char* all = map(PROT_READ, MAP_SHARED);
    expect_all(all, 0);
    if (!pinned) CHECK(ask(all + 2 * P) == word(2 * P / 8, 0));
    CHECK(munmap(all, BYTES) == 0);
    if (!pinned) {
      turn = -1;
      CHECK(pthread_join(thread, NULL) == 0);
    } else if (__spillway_unpin != NULL) {
      CHECK(__spillway_unpin(before + 2 * P, P) == 0);
    }
  }
  puts("of others");
}

// madvise gives a private map the file's content back, whatever may be done with it, to the end of its last page.
static void private_again(void) {
  make(0);
  char* all = map(RW, MAP_PRIVATE);
  for (size_t i = 0; i < BYTES + 100; i += 50) all[i] = 'T';
  CHECK(mprotect(all, BYTES, PROT_READ) == 0);
  CHECK(madvise(all, BYTES, MADV_DONTNEED) == 0);
  expect_all(all, 0);
  CHECK(munmap(all, BYTES) == 0);
  puts("again");
}

// Of this process too: it asks for an open file.
static int has_locks(int file) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK(fcntl(file, F_OFD_GETLK, &lock) == 0);
  return lock.l_type != F_UNLCK;
}

// The process's record locks on a file stay when it is mapped and unmapped: those taken while it is mapped, those taken before, and
// where somebody has it open for writing.
static void locked(void) {
  make(0);
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  const int file = open(path, O_RDONLY);
  CHECK(file >= 0);
  char* all = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
  CHECK(all != MAP_FAILED);
  CHECK_SPILLED(all);
  CHECK(fcntl(file, F_SETLK, &lock) == 0);
  expect_all(all, 0);
  CHECK(munmap(all, BYTES) == 0 && has_locks(file));
  const int writer = open(path, O_RDWR);
  CHECK(writer >= 0);
  for (int written = 0; written < 2; ++written) {
    all = mmap(NULL, BYTES, PROT_READ, written ? MAP_SHARED : MAP_PRIVATE, file, 0);
    CHECK(all != MAP_FAILED && has_locks(file));
    if (!written) expect_all(all, 0);
    const char byte = 'w';
    CHECK(pwrite(writer, &byte, 1, 5 * P) == 1);
    CHECK(munmap(all, BYTES) == 0 && has_locks(file));
  }
  CHECK(close(writer) == 0 && close(file) == 0);
  puts("locked");
}

// Errors and what stays the kernel's are as natively.
static void plain_ones(void) {
  make(0);
  int file = open(path, O_RDONLY), writable = open(path, O_RDWR), write_only = open(path, O_WRONLY);
  CHECK(mmap(NULL, BYTES, PROT_READ, MAP_SHARED, write_only, 0) == MAP_FAILED && errno == EACCES);
  CHECK(mmap(NULL, BYTES, RW, MAP_SHARED, file, 0) == MAP_FAILED && errno == EACCES);
  CHECK(mmap(NULL, BYTES, PROT_READ, MAP_SHARED, 12345, 0) == MAP_FAILED && errno == EBADF);
  CHECK(mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 5) == MAP_FAILED && errno == EINVAL);
  CHECK(mmap(NULL, 0, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED && errno == EINVAL);
  char* reading = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
  char* writing = mmap(NULL, BYTES, RW, MAP_SHARED, writable, 0);
  CHECK(reading != MAP_FAILED && writing != MAP_FAILED);
  CHECK(!is_spilled(reading) && !is_spilled(writing));
  writing[5 * P] = 'q';
  CHECK(reading[5 * P] == 'q');
  char byte;
  CHECK(pread(file, &byte, 1, 5 * P) == 1 && byte == 'q');
  puts("plain");
}

int main(int argc, char** argv) {
  snprintf(path, sizeof path, "file_maps.%d", (int)getpid());
  if (argc > 1 && strcmp(argv[1], "all") != 0) {
    make(0);
    char* all = map_part(PROT_READ, MAP_SHARED, BYTES + 40 * P, 0);
    expect_all(all, 0);
    unlink(path);
    puts("now");
    fflush(stdout);
    if (strcmp(argv[1], "past") == 0) return ((volatile char*)all)[BYTES + 20 * P];
    return foreign_load(all + BYTES + 20 * P);
  }
  at_addresses_of_others();  // before there were other maps: those that are gone give their addresses back when they can
  read_only();
  written_later();
  change_private();
  past_the_end();
  written_while_read();
  stored_while_handed_over();
  odd_calls();
  forks();
  refused();
  held_at_fork();
  private_again();
  locked();
  plain_ones();
  unlink(path);
  return 0;
}
