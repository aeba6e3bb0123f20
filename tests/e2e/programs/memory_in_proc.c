// The process's own memory in /proc, and userfaultfd. The kernel has nothing at spilled addresses: it would read zeros there, lose what is
// stored, and tell of no fault. All of that is refused, and nothing else.
// levels: O2
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "e2e.h"

enum { kBytes = 3 << 20, kMachinePage = 4096 };

static char plain[] = "plain memory";

static void expect_refusal(long result, int error) { CHECK(result == -1 && errno == error); }

static void spilled_places(int memory, off_t place) {
  char bytes[8] = "changed";
  struct iovec vector = {bytes, sizeof bytes};
  expect_refusal(pread(memory, bytes, sizeof bytes, place), EIO);
  expect_refusal(pread64(memory, bytes, sizeof bytes, place), EIO);
  expect_refusal(pwrite(memory, bytes, sizeof bytes, place), EIO);
  expect_refusal(preadv(memory, &vector, 1, place), EIO);
  expect_refusal(pwritev(memory, &vector, 1, place), EIO);
  expect_refusal(preadv2(memory, &vector, 1, place, 0), EIO);
  expect_refusal(pwritev2(memory, &vector, 1, place, 0), EIO);
  expect_refusal(lseek(memory, place, SEEK_SET), EIO);
  expect_refusal(lseek64(memory, place, SEEK_SET), EIO);
  expect_refusal(syscall(SYS_lseek, memory, place, SEEK_SET), EIO);
  CHECK(strcmp(bytes, "changed") == 0);
}

static void by_file(const char* path, char* data) {
  const int memory = open(path, O_RDWR);
  CHECK(memory >= 0);
  char bytes[sizeof plain];
  const off_t place = (off_t)(uintptr_t)plain;
  CHECK(pread(memory, bytes, sizeof bytes, place) == sizeof bytes && strcmp(bytes, plain) == 0);
  CHECK(lseek(memory, place, SEEK_SET) == place && read(memory, bytes, sizeof bytes) == sizeof bytes);
  if (runs_spilled()) spilled_places(memory, (off_t)(uintptr_t)data);
  close(memory);
}

// Another file has nothing as far behind its beginning.
static void others(char* data) {
  const off_t place = (off_t)(uintptr_t)data;
  char path[] = "others-XXXXXX", byte;
  const int file = mkstemp(path);
  CHECK(file >= 0 && unlink(path) == 0);
  CHECK(pread(file, &byte, 1, place) == 0 && lseek(file, 0, SEEK_SET) == 0);
  close(file);
}

static void faults(char* data) {
  const long handler = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
  if (handler < 0) return;
  struct uffdio_api api = {.api = UFFD_API};
  CHECK(ioctl((int)handler, UFFDIO_API, &api) == 0);
  struct uffdio_register* wanted = malloc(sizeof *wanted);
  *wanted = (struct uffdio_register){{(uintptr_t)data, kMachinePage}, UFFDIO_REGISTER_MODE_MISSING, 0};
  if (runs_spilled()) expect_refusal(ioctl((int)handler, UFFDIO_REGISTER, wanted), EINVAL);
  void* own =
      mmap(NULL, kMachinePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  wanted->range.start = (uintptr_t)own;
  CHECK(own != MAP_FAILED && ioctl((int)handler, UFFDIO_REGISTER, wanted) == 0 && wanted->ioctls != 0);
  close((int)handler);
}

int main(void) {
  char* data = aligned_alloc(kMachinePage, kBytes);
  CHECK_SPILLED(data);
  for (int i = 0; i < kBytes; ++i) data[i] = (char)(i >> 6);
  by_file("/proc/self/mem", data);
  by_file("/proc/thread-self/mem", data);
  others(data);
  faults(data);
  for (int i = 0; i < kBytes; ++i) CHECK(data[i] == (char)(i >> 6));
  printf("ok\n");
  return 0;
}
