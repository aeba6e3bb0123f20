// A program that closes every descriptor it can name, then opens files of its own and goes on spilling.
// case: loop
// case: closefrom
// case: close_range
// case: dup2
// expect: cache.evictions>=1000
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "e2e.h"

#define BYTES (3u << 20)

static void fill(unsigned* data, unsigned seed) {
  for (unsigned i = 0; i < BYTES / 4; ++i) data[i] = i * 2654435761u + seed;
}
static void check(const unsigned* data, unsigned seed) {
  for (unsigned i = 0; i < BYTES / 4; ++i) CHECK(data[i] == i * 2654435761u + seed);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const char* how = argv[1];
  unsigned* data = malloc(BYTES);
  CHECK_SPILLED(data);
  fill(data, 1);
  int out = dup(1);
  CHECK(out >= 3 && out < 10);  // the runtime's descriptors are not in the way
  char path[] = "own-file-XXXXXX";
  if (strcmp(how, "loop") == 0) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    long last = limit.rlim_cur > 70000 ? 70000 : (long)limit.rlim_cur;
    for (int descriptor = 0; descriptor < last; ++descriptor)
      if (descriptor != out) close(descriptor);
  } else if (strcmp(how, "closefrom") == 0) {
    dup2(out, 0);
    out = 0;
    closefrom(1);
  } else if (strcmp(how, "close_range") == 0) {
    close(0);
    CHECK(close_range((unsigned)out + 1, ~0u, 0) == 0);
    close(1);
    close(2);
  } else if (strcmp(how, "dup2") == 0) {
    // Numbers up to the limit: each works, or is refused; none of the runtime's is replaced.
    int worked = 0;
    for (int descriptor = 10; descriptor < 1024; ++descriptor) worked += dup2(out, descriptor) == descriptor;
    CHECK(worked > 900);
    for (int descriptor = 10; descriptor < 1024; ++descriptor) close(descriptor);
    close(0);
  }
  check(data, 1);
  int own = mkstemp(path);
  CHECK(own >= 0 && own < 4);
  CHECK(write(own, data, BYTES) == BYTES);
  fill(data, 2);
  check(data, 2);
  unsigned* back = malloc(BYTES);
  for (size_t done = 0; done < BYTES;) {
    ssize_t n = pread(own, (char*)back + done, BYTES - done, (off_t)done);
    CHECK(n > 0);
    done += (size_t)n;
  }
  check(back, 1);
  check(data, 2);
  unlink(path);
  CHECK(write(out, "spilled on\n", 11) == 11);
  return 0;
}
