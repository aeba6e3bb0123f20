// Spilled buffers and strings given to the C library's streams and to system calls.
// expect: cache.evictions>=1000
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "e2e.h"

#define BYTES (700u << 10)

static char value_of(size_t i) { return (char)('a' + (i * 7 + (i >> 9)) % 26); }

int main(void) {
  // Strings on their own pages, so that each call needs several.
  char* strings = malloc(64 * 5000);
  CHECK_SPILLED(strings);
  for (int i = 0; i < 64; ++i)
    snprintf(strings + i * 5000, 5000, "string %d of %s", i, i % 2 ? "odd" : "even");
  push_out(2 << 20);
  for (int i = 0; i + 3 < 64; i += 4)
    printf("[%s|%-30s|%.5s|%*d|%s]\n", strings + i * 5000, strings + (i + 1) * 5000, strings + (i + 2) * 5000,
           6, i, strings + (i + 3) * 5000);
  fprintf(stderr, "%s\n", strings + 5000);
  puts(strings);
  fputs(strings + 5000, stdout);
  putchar('\n');
  push_out(2 << 20);
  int* number = malloc(sizeof(int));
  char* word = malloc(100);
  CHECK(sscanf(strings + 7 * 5000, "%99s %d of", word, number) == 2);
  printf("%s %d\n", word, *number);

  char* data = malloc(BYTES);
  for (size_t i = 0; i < BYTES; ++i) data[i] = value_of(i);
  for (size_t i = 79; i < BYTES; i += 80) data[i] = '\n';
  char* name = malloc(5000);
  strcpy(name, "stdio-XXXXXX");
  int file = mkstemp(name);
  CHECK(file >= 0);
  // Unaligned, across many pages, through a stream and through the descriptor.
  FILE* stream = fopen(name, "w+");
  CHECK(stream != NULL);
  CHECK(fwrite(data + 1, 1, BYTES - 1, stream) == BYTES - 1);
  CHECK(fflush(stream) == 0);
  push_out(2 << 20);
  char* back = malloc(BYTES);
  rewind(stream);
  CHECK(fread(back + 3, 1, BYTES - 3, stream) == BYTES - 3);
  CHECK(memcmp(back + 3, data + 1, BYTES - 3) == 0);
  rewind(stream);
  char* line = malloc(200);
  size_t at = 1, lines = 0;
  while (fgets(line, 200, stream) != NULL) {
    CHECK(memcmp(line, data + at, strlen(line)) == 0);
    at += strlen(line);
    ++lines;
  }
  printf("%zu lines\n", lines);
  rewind(stream);
  size_t* capacity = malloc(sizeof(size_t));
  char** grown = malloc(sizeof(char*));
  *capacity = 0;
  *grown = NULL;
  size_t total = 0;
  ssize_t length;
  while ((length = getline(grown, capacity, stream)) > 0) total += (size_t)length;
  CHECK(total == BYTES - 1);
  free(*grown);
  fclose(stream);

  memset(back, 0, BYTES);
  CHECK(pwrite(file, data, BYTES, 100) == (ssize_t)BYTES);
  for (size_t done = 0; done < BYTES;) {
    ssize_t n = pread(file, back + done, BYTES - done, (off_t)(100 + done));
    CHECK(n > 0);
    done += (size_t)n;
  }
  CHECK(memcmp(back, data, BYTES) == 0);
  CHECK(lseek(file, 100, SEEK_SET) == 100);
  struct iovec* parts = malloc(4 * sizeof(struct iovec));
  for (int i = 0; i < 4; ++i) parts[i] = (struct iovec){back + i * 50001, 40000};
  memset(back, 0, BYTES);
  CHECK(readv(file, parts, 4) == 160000);
  for (int i = 0; i < 4; ++i) CHECK(memcmp(back + i * 50001, data + i * 40000, 40000) == 0);
  CHECK(lseek(file, 0, SEEK_SET) == 0);
  CHECK(writev(file, parts, 4) == 160000);
  CHECK(pread(file, back, 160000, 0) == 160000);
  CHECK(memcmp(back, data, 160000) == 0);

  int* ends = malloc(2 * sizeof(int));
  CHECK(pipe(ends) == 0);
  CHECK(write(ends[1], data + 4090, 12) == 12);
  CHECK(read(ends[0], back + 4095, 100) == 12);
  CHECK(memcmp(back + 4095, data + 4090, 12) == 0);
  errno = 0;
  CHECK(read(-1, back, 10) == -1 && errno == EBADF);
  CHECK(unlink(name) == 0);
  return 0;
}
