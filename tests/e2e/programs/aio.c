// Asynchronous I/O into spilled memory: files, lists, pipes whose other end comes later, signals and threads that tell of
// the end, control blocks that are spilled and buffers that are not; requests that fail.
// levels: O0 O2
// pages: 4K 16K
// chaos: 2
// expect: cache.evictions>=100
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "e2e.h"

enum { kBytes = 300000, kCount = 20 };

static struct aiocb* request(int file, void* buffer, size_t bytes, off_t offset) {
  struct aiocb* block = spilled_zeros(sizeof *block);
  block->aio_fildes = file;
  block->aio_buf = buffer;
  block->aio_nbytes = bytes;
  block->aio_offset = offset;
  return block;
}
static void wait_for(struct aiocb* block, int error, ssize_t result) {
  const struct aiocb** list = spilled_zeros(3 * sizeof *list);
  list[1] = block;
  while (aio_error(block) == EINPROGRESS) CHECK(aio_suspend(list, 3, NULL) == 0 || errno == EINTR);
  CHECK(aio_suspend(list, 3, NULL) == 0);
  CHECK(aio_error(block) == error);
  CHECK(aio_return(block) == result);
  free(list);
}
static char byte_of(size_t i, int n) { return (char)(i * 7 + i / 251 + (size_t)n); }

static int new_file(void) {
  char path[] = "aio-XXXXXX";
  const int file = mkstemp(path);
  CHECK(file >= 0 && unlink(path) == 0);
  return file;
}

static void files(void) {
  const int file = new_file();
  struct aiocb* blocks[kCount];
  for (int n = 0; n < kCount; ++n) {
    char* bytes = malloc(kBytes);
    for (size_t i = 0; i < kBytes; ++i) bytes[i] = byte_of(i, n);
    HIDE(bytes);
    blocks[n] = request(file, bytes, kBytes, (off_t)n * kBytes);
    CHECK(aio_write(blocks[n]) == 0);
  }
  for (int n = 0; n < kCount; ++n) wait_for(blocks[n], 0, kBytes);
  struct aiocb* sync_ = request(file, NULL, 0, 0);
  CHECK(aio_fsync(O_SYNC, sync_) == 0);
  wait_for(sync_, 0, 0);
  for (int n = 0; n < kCount; ++n) {
    memset((void*)blocks[n]->aio_buf, 0, kBytes);
    CHECK(aio_read(blocks[n]) == 0);
  }
  for (int n = kCount; n-- > 0;) {
    wait_for(blocks[n], 0, kBytes);
    const char* bytes = (const char*)blocks[n]->aio_buf;
    for (size_t i = 0; i < kBytes; ++i) CHECK(bytes[i] == byte_of(i, n));
  }
  // Past the end, on a descriptor that is none, with a priority that is none.
  blocks[0]->aio_offset = (off_t)kCount * kBytes - 1000;
  CHECK(aio_read(blocks[0]) == 0);
  wait_for(blocks[0], 0, 1000);
  blocks[0]->aio_fildes = -1;
  CHECK(aio_read(blocks[0]) == 0);
  wait_for(blocks[0], EBADF, -1);
  blocks[0]->aio_reqprio = 1000;
  CHECK(aio_read(blocks[0]) == -1 && errno == EINVAL);
  CHECK(aio_cancel(file, NULL) == AIO_ALLDONE && aio_cancel(file, blocks[1]) == AIO_ALLDONE);
  // Nothing to wait for.
  const struct aiocb** none = spilled_zeros(2 * sizeof *none);
  CHECK(aio_suspend(none, 2, NULL) == 0 && aio_suspend(none, 0, NULL) == 0);
  // Of a list: read, nothing, write, and a buffer that is not spilled.
  static char plain[kBytes];
  struct aiocb** list = spilled_zeros(5 * sizeof *list);
  for (int mode = 0; mode < 2; ++mode) {
    for (int n = 0; n < 5; ++n) list[n] = n == 3 ? NULL : blocks[n + 1];
    list[0]->aio_lio_opcode = LIO_READ;
    list[1]->aio_lio_opcode = LIO_NOP;
    list[2]->aio_lio_opcode = LIO_WRITE;
    memset((void*)list[0]->aio_buf, 0, kBytes);
    memset(plain, 0, kBytes);
    list[4] = request(file, plain, kBytes, 2 * kBytes);
    list[4]->aio_lio_opcode = LIO_READ;
    CHECK(lio_listio(mode ? LIO_WAIT : LIO_NOWAIT, list, 5, NULL) == 0);
    wait_for(list[0], 0, kBytes);
    wait_for(list[2], 0, kBytes);
    wait_for(list[4], 0, kBytes);
    const char* bytes = (const char*)list[0]->aio_buf;
    for (size_t i = 0; i < kBytes; ++i) CHECK(bytes[i] == byte_of(i, 1) && plain[i] == byte_of(i, 2));
  }
  list[0]->aio_fildes = -1;
  CHECK(lio_listio(LIO_WAIT, list, 1, NULL) == -1 && errno == EIO && aio_error(list[0]) == EBADF);
  close(file);
  puts("files");
}

// Reads wait for what the same thread writes later, and get it in their order.
static void pipes(void) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  struct aiocb* blocks[kCount];
  for (int n = 0; n < kCount; ++n) {
    blocks[n] = request(ends[0], spilled_zeros(1000), 100 + (size_t)n, 0);
    CHECK(aio_read(blocks[n]) == 0);
  }
  const struct aiocb** list = spilled_zeros(sizeof *list);
  list[0] = blocks[0];
  struct timespec* little = spilled_zeros(sizeof *little);
  little->tv_nsec = 5000000;
  CHECK(aio_suspend(list, 1, little) == -1 && errno == EAGAIN);
  CHECK(aio_error(blocks[kCount - 1]) == EINPROGRESS);
  for (int n = 0; n < kCount; ++n) {
    char* bytes = spilled_zeros(1000);
    for (size_t i = 0; i < 100 + (size_t)n; ++i) bytes[i] = byte_of(i, n);
    CHECK(write(ends[1], bytes, 100 + (size_t)n) == 100 + n);
    wait_for(blocks[n], 0, 100 + n);
    // By the same turn in which the C library ends one it begins the next.
    if (n + 1 < kCount) CHECK(aio_cancel(ends[0], blocks[n + 1]) == AIO_NOTCANCELED);
    for (size_t i = 0; i < 100 + (size_t)n; ++i) CHECK(((char*)blocks[n]->aio_buf)[i] == byte_of(i, n));
    free(bytes);
  }
  struct aiocb* written = request(ends[1], strcpy(spilled_zeros(100), "by a thread"), 12, 0);
  CHECK(aio_write(written) == 0);
  wait_for(written, 0, 12);
  char* seen = spilled_zeros(100);
  CHECK(read(ends[0], seen, 100) == 12 && strcmp(seen, "by a thread") == 0);
  // A child has none of its parent's. (The C library's own threads are lost to it.)
  struct aiocb* left = request(ends[0], spilled_zeros(100), 5, 0);
  CHECK(aio_read(left) == 0);
  fflush(stdout);
  const pid_t child = runs_spilled() ? fork() : 1;
  if (child == 0) {
    int own[2];
    CHECK(pipe(own) == 0 && dup2(own[0], ends[0]) == ends[0]);
    struct aiocb* of_child = request(ends[0], spilled_zeros(100), 3, 0);
    CHECK(aio_read(of_child) == 0 && write(own[1], "abc", 3) == 3);
    wait_for(of_child, 0, 3);
    _exit(memcmp((char*)of_child->aio_buf, "abc", 3));
  }
  int status;
  if (runs_spilled()) CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(write(ends[1], "12345", 5) == 5);
  wait_for(left, 0, 5);
  puts("pipes");
}

static volatile int signals, calls;
static struct aiocb* volatile told;
static void on_signal(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  struct aiocb* block = info->si_value.sival_ptr;
  CHECK(info->si_code == SI_ASYNCIO && aio_error(block) == 0 && aio_return(block) == 10);
  ++signals;
}
static void on_end(union sigval value) {
  struct aiocb* block = value.sival_ptr;
  CHECK(aio_error(block) == 0 && ((char*)block->aio_buf)[9] == 'x');
  ++calls;
}
static void telling(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGRTMIN, &action, NULL) == 0);
  const int file = new_file();
  CHECK(write(file, "xxxxxxxxxx", 10) == 10);
  for (int i = 0; i < 20; ++i) {
    struct aiocb* block = request(file, spilled_zeros(100), 10, 0);
    block->aio_sigevent.sigev_notify = i % 2 ? SIGEV_SIGNAL : SIGEV_THREAD;
    block->aio_sigevent.sigev_signo = SIGRTMIN;
    block->aio_sigevent.sigev_notify_function = on_end;
    block->aio_sigevent.sigev_value.sival_ptr = block;
    CHECK(aio_read(block) == 0);
    while (signals + calls <= i) usleep(100);
  }
  struct sigevent* event = spilled_zeros(sizeof *event);
  struct aiocb** list = spilled_zeros(2 * sizeof *list);
  list[0] = request(file, spilled_zeros(100), 10, 0);
  event->sigev_notify = SIGEV_THREAD;
  event->sigev_notify_function = on_end;
  event->sigev_value.sival_ptr = list[0];
  CHECK(lio_listio(LIO_NOWAIT, list, 2, event) == 0);
  while (signals + calls < 21) usleep(100);
  printf("%d %d\n", signals, calls);
}

// A list is waited for whole, whatever became of one request of it.
static void failing_list(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  static struct aiocb bad;
  static char buffer[10];
  bad.aio_fildes = -1;
  bad.aio_buf = buffer;
  bad.aio_nbytes = 10;
  bad.aio_lio_opcode = LIO_READ;
  struct aiocb* good = request(ends[0], spilled_zeros(100), 5, 0);
  good->aio_lio_opcode = LIO_READ;
  static struct aiocb odd;
  odd.aio_lio_opcode = 77;
  struct aiocb* list[] = {good, &bad, &odd};
  fflush(stdout);
  const pid_t writer = fork();
  if (writer == 0) {
    usleep(100000);
    _exit(write(ends[1], "hello", 5) == 5 ? 0 : 1);
  }
  CHECK(lio_listio(LIO_WAIT, list, 3, NULL) == -1 && errno == EIO);
  CHECK(aio_error(good) == 0 && aio_return(good) == 5 && aio_error(&bad) == EBADF);
  int status;
  CHECK(waitpid(writer, &status, 0) == writer && status == 0);
  puts("list");
}

// Requests of one descriptor are carried out in their order, wherever their buffers are.
static void in_order(void) {
  static char plain[4096];
  memset(plain, 'p', sizeof plain);
  for (int round = 0; round < 30; ++round) {
    const int file = new_file();
    CHECK(fcntl(file, F_SETFL, O_APPEND) == 0);
    struct aiocb* first = request(file, plain, sizeof plain, 0);
    struct aiocb* second = request(file, memset(spilled_zeros(5000), 's', 5000), 5000, 0);
    struct aiocb* third = request(file, plain, 100, 0);
    struct aiocb* flushed = request(file, NULL, 0, 0);
    CHECK(aio_write(first) == 0 && aio_write(second) == 0 && aio_write(third) == 0 &&
          aio_fsync(O_DSYNC, flushed) == 0);
    wait_for(flushed, 0, 0);
    wait_for(first, 0, sizeof plain);
    wait_for(second, 0, 5000);
    wait_for(third, 0, 100);
    char* all = spilled_zeros(9196);
    CHECK(pread(file, all, 9196, 0) == 9196);
    CHECK(all[0] == 'p' && all[4095] == 'p' && all[4096] == 's' && all[9095] == 's' && all[9096] == 'p');
    close(file);
  }
  CHECK(aio_fsync(12345, request(1, NULL, 0, 0)) == -1 && errno == EINVAL);
  CHECK(aio_cancel(12345, NULL) == -1 && errno == EBADF);
  puts("order");
}

// The end of a list that waits is told when the last request of it has ended.
static volatile int lists;
static void on_list(union sigval value) {
  struct aiocb** list = value.sival_ptr;
  CHECK(aio_error(list[0]) == 0 && aio_error(list[1]) == 0 && aio_return(list[1]) == 4);
  ++lists;
}
static void on_given_back(union sigval value) {
  (void)value;
  ++lists;
}
static void telling_list(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  struct aiocb** list = spilled_zeros(2 * sizeof *list);
  list[0] = request(new_file(), spilled_zeros(100), 10, 0);
  list[1] = request(ends[0], spilled_zeros(100), 4, 0);
  list[0]->aio_lio_opcode = LIO_WRITE;
  list[1]->aio_lio_opcode = LIO_READ;
  struct sigevent event = {
      .sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_list, .sigev_value.sival_ptr = list};
  CHECK(lio_listio(LIO_NOWAIT, list, 2, &event) == 0);
  usleep(20000);
  CHECK(lists == 0 && aio_error(list[1]) == EINPROGRESS);
  CHECK(write(ends[1], "told", 4) == 4);
  while (lists == 0) usleep(100);
  list[1]->aio_lio_opcode = 77;
  CHECK(lio_listio(LIO_WAIT, list, 2, NULL) == -1 && errno == EIO && aio_error(list[0]) == 0);
  puts("told");
}

// A control block is not looked at any more when its request has ended, though its list has not.
static void given_back(void) {
  enum { kMapped = 1 << 16 };
  int ends[2];
  CHECK(pipe(ends) == 0);
  struct aiocb* list[2];
  list[0] = request(ends[0], spilled_zeros(100), 4, 0);
  list[0]->aio_lio_opcode = LIO_READ;
  list[1] = mmap(NULL, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(list[1] != MAP_FAILED);
  CHECK_SPILLED(list[1]);
  list[1]->aio_fildes = new_file();
  list[1]->aio_buf = list[1] + 1;
  list[1]->aio_nbytes = 10;
  list[1]->aio_lio_opcode = LIO_WRITE;
  lists = 0;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_given_back};
  CHECK(lio_listio(LIO_NOWAIT, list, 2, &event) == 0);
  wait_for(list[1], 0, 10);
  usleep(50000);  // the C library looks at it a little longer
  CHECK(munmap(list[1], kMapped) == 0);
  CHECK(write(ends[1], "told", 4) == 4);
  while (lists == 0) usleep(100);
  wait_for(list[0], 0, 4);
  puts("given back");
}

int main(void) {
  files();
  in_order();
  telling_list();
  given_back();
  failing_list();
  pipes();
  telling();
  return 0;
}
