// Shared by the C tests of all C APIs: a folder to work in, and a process that may only read there. REQUIRES: _GNU_SOURCE; CHECK.
#ifndef FOLDER_H
#define FOLDER_H
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// A new folder, which the caller removes.
static inline void make_folder(char *path, size_t bytes) {
  const char *const parent = getenv("TMPDIR");
  const int length = snprintf(path, bytes, "%s/spillway-capi-XXXXXX", parent != NULL ? parent : "/tmp");
  CHECK(length > 0 && (size_t)length < bytes && mkdtemp(path) != NULL);
}

// Calls `call` in a child that may read the file but not write to it, and removes the file. REQUIRES: this process has one thread.
static inline void call_as_reader(const char *path, void (*call)(const char *path)) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (getuid() == 0)
      CHECK(chmod(path, 0644) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
    else
      CHECK(chmod(path, 0400) == 0);
    call(path);
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(unlink(path) == 0);
}
#endif
