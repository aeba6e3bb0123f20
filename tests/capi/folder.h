// Where the C tests of all C APIs work. REQUIRES: _GNU_SOURCE; CHECK.
#ifndef FOLDER_H
#define FOLDER_H
#include <stdio.h>
#include <stdlib.h>

// A new folder, which the caller removes.
static inline void make_folder(char *path, size_t bytes) {
  const char *const parent = getenv("TMPDIR");
  const int length = snprintf(path, bytes, "%s/spillway-capi-XXXXXX", parent != NULL ? parent : "/tmp");
  CHECK(length > 0 && (size_t)length < bytes && mkdtemp(path) != NULL);
}
#endif
