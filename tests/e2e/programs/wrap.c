// A wrapper of the program's own for a replaced function, as docs/spill.md has it.
// flags: -Wl,--wrap=strtol
// spillcc: -Wl,--wrap=__spill_strtol,--defsym=__wrap___spill_strtol=__wrap_strtol -D__real_strtol=__real___spill_strtol
// evictions: none, it has next to no data
#include "e2e.h"

long __real_strtol(const char* text, char** end, int base);
long __wrap_strtol(const char* text, char** end, int base);
long __wrap_strtol(const char* text, char** end, int base) { return 1000 + __real_strtol(text, end, base); }

int main(void) {
  char* text = (char*)malloc(100);
  char** end = (char**)malloc(sizeof *end);
  CHECK_SPILLED(text);
  strcpy(text, "42 and more");
  const long value = strtol(text, end, 10);
  printf("%ld %d\n", value, (int)(*end - text));
  free(text);
  free(end);
  return 0;
}
