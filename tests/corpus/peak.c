// Preloaded into native runs: each process that ends by itself says how much memory it had at most.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((destructor)) static void tell(void) {
  const char* path = getenv("CORPUS_PEAKS");
  int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  char text[2048] = "";
  if (path == NULL || status < 0 || read(status, text, sizeof text - 1) <= 0) return;
  const char* peak = strstr(text, "VmHWM:");
  char name[64];
  long kib;
  if (peak == NULL || sscanf(text, "Name: %63s", name) != 1 || sscanf(peak, "VmHWM: %ld", &kib) != 1) return;
  char line[128];
  int length = snprintf(line, sizeof line, "%s\t%ld\n", name, kib);
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file >= 0 && write(file, line, (size_t)length) < 0) perror(path);
}

void _exit(int status) {
  tell();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}
