// The C library and the kernel with everything they are given on the heap: formats and their arguments,
// paths, buffers small and large, vectors, structures, sorting with a comparator of the program's own.
// expect: cache.evictions>=500
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "e2e.h"

// A copy on the heap, whose text lies across the edge of an OS page.
static char* heap_text(const char* text) {
  char* block = malloc(3 * 4096);
  CHECK_SPILLED(block);
  char* edge = (char*)(((uint64_t)block + 4096) & ~(uint64_t)4095) + 4096;
  char* copy = edge - strlen(text) / 2;
  strcpy(copy, text);
  HIDE(copy);
  return copy;
}

static int by_text(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

static void formats(void) {
  char* to = malloc(9000);
  int* count = malloc(sizeof *count);
  push_out(2000000);
  CHECK(sprintf(to, heap_text("%s-%5d|%.3f|%-8s|%n"), heap_text("text"), 42, 2.5, heap_text("left"), count) ==
        *count);
  puts(to);
  printf(heap_text("%2$s %1$s %3$Lg\n"), heap_text("second"), heap_text("first"), 1.25L);
  char* word = malloc(100);
  long* number = malloc(sizeof *number);
  double* real = malloc(sizeof *real);
  CHECK(sscanf(heap_text("word -12345678901 6.25 tail"), heap_text("%99s %ld %lf"), word, number, real) == 3);
  printf("%s %ld %g\n", word, *number, *real);
  char** made = malloc(sizeof *made);
  CHECK(asprintf(made, "<%s>", heap_text("made")) == 6);
  puts(*made);
  free(*made);
  char** end = malloc(sizeof *end);
  char* digits = heap_text("  0x1fz");
  CHECK(strtol(digits, end, 0) == 31 && *end == digits + 6);
}

static void files(char* folder) {
  char* path = malloc(400);
  sprintf(path, "%s/data", folder);
  int file = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
  CHECK(file >= 0);
  size_t n = 700001;
  unsigned char* bytes = malloc(n);
  uint64_t state = 5;
  for (size_t i = 0; i < n; ++i) bytes[i] = (unsigned char)next_random(&state);
  CHECK(write(file, bytes, n) == (ssize_t)n);
  CHECK(pwrite(file, bytes + 3, 5000, 1000000) == 5000);
  unsigned char* back = malloc(n + 100);
  push_out(2000000);
  CHECK(lseek(file, 0, SEEK_SET) == 0 && read(file, back, n) == (ssize_t)n && memcmp(bytes, back, n) == 0);
  CHECK(pread(file, back, 6000, 1000000) == 5000 && memcmp(back, bytes + 3, 5000) == 0);
  struct iovec* vector = malloc(2 * sizeof *vector);
  vector[0] = (struct iovec){back, 300000};
  vector[1] = (struct iovec){back + 300050, 400001};
  CHECK(preadv(file, vector, 2, 0) == (ssize_t)n);
  CHECK(memcmp(back, bytes, 300000) == 0 && memcmp(back + 300050, bytes + 300000, 400001) == 0);
  struct stat* status = malloc(sizeof *status);
  CHECK(stat(path, status) == 0 && fstat(file, status) == 0);
  printf("%ld bytes\n", (long)status->st_size);
  close(file);
  FILE* stream = fopen(path, heap_text("w+"));
  fputs(heap_text("one line\n"), stream);
  CHECK(fwrite(bytes, 1, n, stream) == n);
  rewind(stream);
  char* line = malloc(50);
  CHECK(fgets(line, 50, stream) == line);
  fputs(line, stdout);
  CHECK(fread(back, 1, n, stream) == n && memcmp(bytes, back, n) == 0);
  rewind(stream);
  char** text = calloc(1, sizeof *text);
  size_t* room = calloc(1, sizeof *room);
  CHECK(getline(text, room, stream) == 9 && strcmp(*text, "one line\n") == 0);
  free(*text);
  fclose(stream);
  errno = 0;
  CHECK(open(heap_text("/nonexistent/file"), O_RDONLY) == -1 && errno == ENOENT);
  CHECK(rename(path, strcat(strcpy(line, folder), "/moved")) == 0 && unlink(line) == 0);
}

static void pipes(void) {
  int* ends = malloc(2 * sizeof *ends);
  CHECK(pipe(ends) == 0);
  // The child needs no spilled memory: only its parent can load pages.
  int out = ends[1];
  pid_t child = fork();
  if (child == 0) _exit(write(out, "from the child", 14) == 14 ? 7 : 1);
  struct pollfd* polled = malloc(sizeof *polled);
  *polled = (struct pollfd){ends[0], POLLIN, 0};
  CHECK(poll(polled, 1, 10000) == 1 && polled->revents == POLLIN);
  char* to = malloc(200000);
  ssize_t n = read(ends[0], to, 200000);
  int* status = malloc(sizeof *status);
  CHECK(waitpid(child, status, 0) == child && WEXITSTATUS(*status) == 7);
  printf("%.*s\n", (int)n, to);
}

static void sorting(void) {
  enum { kCount = 5000 };
  char** texts = malloc(kCount * sizeof *texts);
  uint64_t state = 9;
  for (int i = 0; i < kCount; ++i) {
    texts[i] = malloc(24);
    snprintf(texts[i], 24, "%llu", (unsigned long long)next_random(&state) % 100000);
  }
  push_out(2000000);
  qsort(texts, kCount, sizeof *texts, by_text);
  for (int i = 1; i < kCount; ++i) CHECK(strcmp(texts[i - 1], texts[i]) <= 0);
  char* key = texts[1234];
  char** found = bsearch(&key, texts, kCount, sizeof *texts, by_text);
  CHECK(found != NULL && strcmp(*found, key) == 0);
  printf("%s %s\n", texts[0], texts[kCount - 1]);
}

static void times(void) {
  time_t* when = malloc(sizeof *when);
  *when = 1000000000;
  struct tm* calendar = malloc(sizeof *calendar);
  char* to = malloc(100);
  CHECK(gmtime_r(when, calendar) == calendar &&
        strftime(to, 100, heap_text("%Y-%m-%d %H:%M:%S"), calendar) == 19);
  puts(to);
  setenv(heap_text("HEAP_NAME"), heap_text("heap value"), 1);
  puts(getenv(heap_text("HEAP_NAME")));
}

int main(void) {
  char* folder = heap_text("libc-calls-XXXXXX");
  CHECK(mkdtemp(folder) == folder);
  formats();
  files(folder);
  pipes();
  sorting();
  times();
  CHECK(rmdir(folder) == 0);
  return 0;
}
