// Every call of the key-value store's C API and every status, from C.
#define _GNU_SOURCE
#include <unistd.h>

#include "kv_test.h"

#include "folder.h"

int main(void) {
  char folder[150];
  make_folder(folder, sizeof folder);
  test_errors(folder);
  test_calls();
  test_iterate();
  test_queue();
  CHECK(rmdir(folder) == 0);
  puts("all calls of the key-value store's C API do what they should");
  return 0;
}
