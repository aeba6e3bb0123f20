// held MEGABYTES: writes that much, says "ready", and for each line of input checks all of it and says "fine". "pin" and "unpin" do that
// to all of it before.
#include "../../../include/spillway/spill.h"
#include "../programs/e2e.h"

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const size_t words = strtoull(argv[1], NULL, 10) << 17;
  uint64_t* data = malloc(words * sizeof *data);
  CHECK(data != NULL);
  for (size_t i = 0; i < words; ++i) data[i] = i * 0x9e3779b97f4a7c15;
  puts("ready");
  fflush(stdout);
  char line[16];
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strcmp(line, "pin\n") == 0) CHECK(spill_pin(data, words * sizeof *data) == 0);
    if (strcmp(line, "unpin\n") == 0) CHECK(spill_unpin(data, words * sizeof *data) == 0);
    for (size_t i = 0; i < words; ++i) CHECK(data[i] == i * 0x9e3779b97f4a7c15);
    puts("fine");
    fflush(stdout);
  }
  return 0;
}
