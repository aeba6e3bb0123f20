// program KILOBYTES: fills so much memory with a planted text, reads it twice, prints a line.
#include "../programs/e2e.h"

enum { kLineBytes = 64 };

static void write_line(char* to, size_t number) {
  snprintf(to, kLineBytes, "planted where nobody shall find it, line %zu", number);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const size_t lines = strtoull(argv[1], NULL, 10) * 1024 / kLineBytes;
  char(*memory)[kLineBytes] = malloc(lines * kLineBytes);
  char line[kLineBytes];
  for (size_t i = 0; i < lines; ++i) {
    write_line(line, i);
    memcpy(memory[i], line, kLineBytes);
  }
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < lines; ++i) {
      write_line(line, i);
      CHECK(strcmp(memory[i], line) == 0);
    }
  printf("whole\n");
  return 0;
}
