// What mmap and its kin refuse of spilled memory, as natively or with an error that programs know.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "e2e.h"

#define RW (PROT_READ | PROT_WRITE)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)
#define BYTES (1 << 20)

// Sizes that are nothing when they are rounded up.
static void sizes(void) {
  char* kept = malloc(BYTES);
  HIDE(kept);
  memset(kept, 7, BYTES);
  char* map = mmap(NULL, BYTES, RW, ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  CHECK_SPILLED(map);
  memset(map, 8, BYTES);
  for (size_t bytes = (size_t)-1; bytes >= (size_t)-5000; bytes -= 999) {
    errno = 0;
    CHECK(mmap(NULL, bytes, RW, ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
    CHECK(mremap(map, BYTES, bytes, MREMAP_MAYMOVE) == MAP_FAILED);
    CHECK(munmap(map, bytes) == -1 && errno == EINVAL);
    CHECK(mprotect(map, bytes, PROT_NONE) == -1);
    CHECK(madvise(map, bytes, MADV_DONTNEED) == -1);
    unsigned char pages[1];
    CHECK(mincore(map, bytes, pages) == -1 && errno == ENOMEM);
  }
  // A reservation may be larger than all addresses of spilled memory, as long as the kernel has room.
  char* reserved = mmap(NULL, (size_t)40 << 40, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(reserved != MAP_FAILED && munmap(reserved, (size_t)40 << 40) == 0);
  push_out(3 << 20);
  for (size_t i = 0; i < BYTES; i += 1000) CHECK(map[i] == 8 && kept[i] == 7);
  CHECK(munmap(map, BYTES) == 0);
  free(kept);
}

// Advice that changes what a child finds is not taken and then forgotten.
static void advise(int advice) {
  char* map = mmap(NULL, BYTES, RW, ANONYMOUS, -1, 0);
  map[0] = 's';
  const int result = madvise(map, BYTES, advice);
  CHECK(result == 0 || errno == EINVAL);
  if (result == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(map[0] == 's' ? 8 : 7);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) == 7);
  }
  CHECK((result == 0) == (advice != MADV_REMOVE && !is_spilled(map)));
  CHECK(map[0] == 's' && munmap(map, BYTES) == 0);
}

// What means nothing.
static void nonsense(void) {
  CHECK(mmap(NULL, BYTES, RW, ANONYMOUS, -1, 512) == MAP_FAILED && errno == EINVAL);
  CHECK(mmap(NULL, BYTES, RW, MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
  char* map = mmap(NULL, BYTES, RW, ANONYMOUS, -1, 0);
  CHECK_SPILLED(map);
  map[0] = 's';
  CHECK(mmap(map, BYTES, RW, ANONYMOUS | MAP_FIXED, -1, 512) == MAP_FAILED && errno == EINVAL);
  CHECK(mmap(map, BYTES, RW, MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED && errno == EINVAL);
  CHECK(msync(map + 1, 4096, MS_SYNC) == -1 && errno == EINVAL);
  CHECK(msync(map, 4096, MS_SYNC | MS_ASYNC) == -1 && errno == EINVAL);
  CHECK(msync(map, 4096, 0x80) == -1 && errno == EINVAL);
  CHECK(msync(map, 4096, MS_INVALIDATE) == 0 && msync(map, 4096, 0) == 0);
  CHECK(mlock2(map, 4096, 0x80) == -1 && errno == EINVAL);
  unsigned char* pages = mmap(NULL, 4096, PROT_READ, ANONYMOUS, -1, 0);
  CHECK(mincore(map, BYTES, pages) == -1 && errno == EFAULT);
  CHECK(mincore(map, BYTES, NULL) == -1 && errno == EFAULT);
  CHECK(mprotect(pages, 4096, RW) == 0 && mincore(map, BYTES, pages) == 0 && munmap(pages, 4096) == 0);
  CHECK(mremap(map, BYTES, BYTES, MREMAP_MAYMOVE | 0x80) == MAP_FAILED && errno == EINVAL);
  CHECK(mremap(map, BYTES, 2 * BYTES, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) == MAP_FAILED && errno == EINVAL);
  CHECK(mremap(map, BYTES, BYTES, MREMAP_DONTUNMAP) == MAP_FAILED && errno == EINVAL);
  CHECK(map[0] == 's' && munmap(map, BYTES) == 0);
}

// What is not mapped, and what is again.
static void unmapped(void) {
  char* map = mmap(NULL, BYTES, RW, ANONYMOUS, -1, 0);
  CHECK_SPILLED(map);
  map[0] = 's';
  CHECK(mmap(map + 65536, 65536, RW, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED &&
        errno == EEXIST);
  CHECK(munmap(map + 65536, 65536) == 0);
  CHECK(mremap(map + 65536, 65536, 2 * 65536, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
  CHECK(mremap(map, 2 * 65536, 8 * 65536, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
  CHECK(mremap(map + 65536, 65536, 65536, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
  CHECK(mremap(map + 65536, 65536, 4096, 0) == MAP_FAILED && errno == EFAULT);
  CHECK(madvise(map + 65536, 65536, MADV_WILLNEED) == -1 && errno == ENOMEM);
  for (int hole = 0; hole < 2; ++hole) {
    CHECK(msync(map + (1 - hole) * 65536, 3 * 65536, MS_SYNC) == -1 && errno == ENOMEM);
    CHECK(munlock(map + (1 - hole) * 65536, 3 * 65536) == -1 && errno == ENOMEM);
  }
  CHECK(mmap(map + 65536, 2 * 65536, RW, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED &&
        errno == EEXIST);
  char* again = mmap(map + 65536, 65536, RW, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK(again == map + 65536 && again[5] == 0);
  again[5] = 5;
  CHECK(munmap(again, 65536) == 0);
  again = mmap(map + 65536, 65536, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK(again == map + 65536 && again[5] == 0);
  const int segment = shmget(IPC_PRIVATE, 65536, 0600);
  CHECK(segment >= 0);
  CHECK(shmat(segment, map, 0) == (void*)-1 && errno == EINVAL);
  CHECK(shmctl(segment, IPC_RMID, NULL) == 0);
  CHECK(map[0] == 's' && munmap(map, BYTES) == 0);
}

int main(void) {
  sizes();
  nonsense();
  unmapped();
  fflush(stdout);
  advise(MADV_WIPEONFORK);
  advise(MADV_DONTFORK);
  advise(MADV_REMOVE);
  puts("end");
  return 0;
}
