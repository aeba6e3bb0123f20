// Compiled by clang: what a static archive that spillcc never saw does.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void* foreign_malloc(size_t n) { return malloc(n); }
void* foreign_calloc(size_t n) { return calloc(n, 1); }
void* foreign_realloc(void* block, size_t n) { return realloc(block, n); }
void* foreign_aligned(size_t n) { return aligned_alloc(4096, n); }
void foreign_free(void* block) { free(block); }

// Whether the file at `path` holds `n` bytes as at `bytes` after they were written there in several ways.
int foreign_io(const char* path, char* bytes, char* room, size_t n) {
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || write(file, bytes, n) != (ssize_t)n || pread(file, room, n, 0) != (ssize_t)n) return 0;
  if (close(file) != 0 || memcmp(room, bytes, n) != 0) return 0;
  FILE* stream = fopen(path, "r+");
  memset(room, 0, n);
  if (stream == NULL || fread(room, 1, n, stream) != n || fseek(stream, 0, SEEK_SET) != 0) return 0;
  if (fwrite(bytes, 1, n, stream) != n || fclose(stream) != 0) return 0;
  return unlink(path) == 0 && access(path, F_OK) != 0;
}

int foreign_lock(pthread_mutex_t* mutex) { return pthread_mutex_lock(mutex); }
int foreign_unlock(pthread_mutex_t* mutex) { return pthread_mutex_unlock(mutex); }

int foreign_handle(int number, void (*handler)(int)) {
  struct sigaction action = {.sa_handler = handler};
  return sigaction(number, &action, NULL);
}

int foreign_start(pthread_t* thread, void* (*routine)(void*), void* argument) {
  return pthread_create(thread, NULL, routine, argument);
}

// Closes all that it did not open.
void foreign_close_all(void) {
  for (int i = 3; i < 1024; ++i) close(i);
}

// Names of the runtime's own and of its allocator.
int spillway_translate(void) { return 1; }
int spillway_plain_memcpy(void) { return 2; }
int je_malloc(void) { return 4; }
int spillje_mallctl(void) { return 8; }
int foreign_names(void) {
  return spillway_translate() + spillway_plain_memcpy() + je_malloc() + spillje_mallctl();
}
