// With pages larger than the machine's a spilled global stays plain memory at its ends. What the kernel reads and writes, from a part that
// is plain into one that is spilled and the other way round, is all of it: bytes, objects and strings. So is what functions go
// through backwards.
// spillcc: -fspill-globals
// levels: O2
// pages: 16K 64K
// chaos: 4
// expect: cache.evictions>=10 spill.globals_bytes>=1000000
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "e2e.h"

enum { kBytes = 1000003, kHalf = kBytes / 2, kMessage = 50000, kEnd = 70000, kName = 50, kTogether = 8 };

static union {
  unsigned char bytes[kBytes];
  struct stat facts[kBytes / sizeof(struct stat)];
  struct pollfd waits[kBytes / sizeof(struct pollfd)];
  char names[kBytes / kName][kName];
} all;
static unsigned char* const data = all.bytes;

static unsigned char begun[200000] = {1, [199999] = 2};

static unsigned char byte_of(size_t i, int round) { return (unsigned char)(i * 7 + i / 251 + (size_t)round); }
static void fill(int round) {
  for (size_t i = 0; i < kBytes; ++i) data[i] = byte_of(i, round);
  HIDE(round);
}
static void check(int round) {
  for (size_t i = 0; i < kBytes; ++i) CHECK(data[i] == byte_of(i, round));
}

static void whole(int file) {
  fill(1);
  CHECK(pwrite(file, data, kBytes, 0) == kBytes);
  fill(2);
  CHECK(pread(file, data, kBytes, 0) == kBytes);
  check(1);
  fill(3);
  CHECK(write(file, data, kBytes) == kBytes && lseek(file, 0, SEEK_SET) == 0);
  fill(4);
  CHECK(read(file, data, kBytes) == kBytes && lseek(file, 0, SEEK_SET) == 0);
  check(3);
}

static void halves(int file) {
  struct iovec vector[2] = {{data + kHalf, kBytes - kHalf}, {data, kHalf}};
  fill(5);
  CHECK(pwritev(file, vector, 2, 0) == kBytes);
  fill(6);
  CHECK(preadv(file, vector, 2, 0) == kBytes);
  check(5);
  // What lies in the middle of it ends in the end.
  CHECK(pread(file, data + kHalf, kBytes - kHalf, 0) == kBytes - kHalf);
  check(5);
}

static void streams(int file) {
  FILE* stream = fdopen(file, "r+");
  CHECK(stream != NULL);
  rewind(stream);
  fill(7);
  CHECK(fwrite(data, kBytes, 1, stream) == 1 && fflush(stream) == 0);
  rewind(stream);
  fill(8);
  CHECK(fread(data, 1, kBytes, stream) == kBytes);
  check(7);
  fclose(stream);
}

// What a stream is given as its buffer, and a text that is longer than one.
static void texts_and_buffers(void) {
  char path[] = "globals-XXXXXX", read_back[256];
  const int file = mkstemp(path);
  CHECK(file >= 0 && unlink(path) == 0);
  FILE* stream = fdopen(dup(file), "w");
  CHECK(stream != NULL && setvbuf(stream, (char*)data, _IOFBF, kBytes) == 0);
  for (size_t i = 0; i < kBytes + kHalf; ++i) putc(byte_of(i, 11), stream);
  CHECK(fclose(stream) == 0 && lseek(file, 0, SEEK_END) == kBytes + kHalf);
  for (size_t i = 0; i + sizeof read_back < kBytes + kHalf; i += 9973) {
    CHECK(pread(file, read_back, sizeof read_back, (off_t)i) == sizeof read_back);
    for (size_t j = 0; j < sizeof read_back; ++j) CHECK((unsigned char)read_back[j] == byte_of(i + j, 11));
  }
  memset(data, 'x', kEnd);
  data[kEnd] = 0;
  CHECK(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0);
  stream = fdopen(file, "w");
  CHECK(stream != NULL && fputs((char*)data, stream) >= 0 && fflush(stream) == 0);
  CHECK(lseek(file, 0, SEEK_END) == kEnd);
  CHECK(fprintf(stream, "%.*s|%s", kEnd - 1, (char*)data, (char*)data) == 2 * kEnd && fflush(stream) == 0);
  CHECK(lseek(file, 0, SEEK_END) == 3 * kEnd);
  fclose(stream);
}

// What the program says of its memory is said of all of it.
static void advice(void) {
  enum { kMachinePage = 4096 };
  const size_t first = -(uintptr_t)data % kMachinePage;
  const size_t length = (kBytes - first) / kMachinePage * kMachinePage;
  fill(12);
  CHECK(madvise(data + first, length, MADV_DONTNEED) == 0);
  for (size_t i = 0; i < kBytes; ++i) CHECK(data[i] == (i - first < length ? 0 : byte_of(i, 12)));
  CHECK(mprotect(data + first, length, PROT_READ | PROT_WRITE) == 0);
  if (runs_spilled()) CHECK(mprotect(data + first, length, PROT_READ) == -1 && errno == EACCES);
  // Natively they are what they were at first.
  const size_t begin = -(uintptr_t)begun % kMachinePage;
  const size_t whole_pages = (sizeof begun - begin) / kMachinePage * kMachinePage;
  memset(begun, 5, sizeof begun);
  if (runs_spilled()) CHECK(madvise(begun + begin, whole_pages, MADV_DONTNEED) == -1 && errno == EINVAL);
  for (size_t i = 0; i < kEnd; ++i) CHECK(begun[kEnd + i] == 5);
  fill(13);
  check(13);
  for (size_t i = 0; i < kBytes; i += 911) CHECK(foreign_load((char*)data + i) == byte_of(i, 13));
}

static int is_near_end(size_t at) { return at < kEnd || at > kBytes - kEnd; }

// Of objects beside each other one lies on the edge.
static void objects(int file) {
  for (size_t i = 0; i < sizeof all.facts / sizeof *all.facts; ++i)
    if (is_near_end(i * sizeof *all.facts))
      CHECK(fstat(file, &all.facts[i]) == 0 && all.facts[i].st_size == kBytes);
  for (size_t i = 0; i < sizeof all.names / kName; ++i) {
    if (!is_near_end(i * kName)) continue;
    memset(all.names[i], '/', kName - 1);
    all.names[i][kName - 1] = 0;
    CHECK(access(all.names[i], F_OK) == 0);
  }
  for (size_t i = 0; i + kTogether < sizeof all.waits / sizeof *all.waits; i += kTogether - 1) {
    if (!is_near_end(i * sizeof *all.waits)) continue;
    for (size_t j = i; j < i + kTogether; ++j) all.waits[j] = (struct pollfd){file, POLLIN, 0};
    CHECK(poll(&all.waits[i], kTogether, 0) == kTogether);
    for (size_t j = i; j < i + kTogether; ++j) CHECK(all.waits[j].revents == POLLIN);
  }
}

static void backwards(void) {
  enum { kShift = 7, kRest = kBytes - kHalf - kShift };
  fill(10);
  memmove(data + kHalf + kShift, data + kHalf, kRest);
  for (size_t i = 0; i < kBytes; ++i) CHECK(data[i] == byte_of(i < kHalf + kShift ? i : i - kShift, 10));
  memset(data, 1, kBytes);
  unsigned char* const wanted = data + kBytes - 2 * kEnd;
  *wanted = 2;
  CHECK(memrchr(data + kHalf, 2, kBytes - kHalf) == wanted);
}

static void messages(void) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  unsigned char* const last = data + kBytes - kMessage;
  fill(9);
  CHECK(send(ends[0], data, kMessage, 0) == kMessage);
  CHECK(recv(ends[1], last, kMessage, MSG_WAITALL) == kMessage);
  for (size_t i = 0; i < kMessage; ++i) CHECK(last[i] == byte_of(i, 9));
  CHECK(send(ends[1], last, kMessage, 0) == kMessage);
  memset(data, 0, kMessage);
  CHECK(recv(ends[0], data, kMessage, MSG_WAITALL) == kMessage);
  for (size_t i = 0; i < kMessage; ++i) CHECK(data[i] == byte_of(i, 9));
}

int main(void) {
  char path[] = "globals-XXXXXX";
  const int file = mkstemp(path);
  CHECK(file >= 0 && unlink(path) == 0);
  whole(file);
  halves(file);
  objects(file);
  advice();
  backwards();
  streams(file);
  texts_and_buffers();
  messages();
  puts("ends");
  return 0;
}
