// Every call of the batched update table's C API and every status, from C.
#define _GNU_SOURCE
#include <unistd.h>

#include "batch_test.h"
#include "folder.h"

int main(void) {
  check_status_texts(SPILLWAY_BATCH_DAMAGED, SPILLWAY_BATCH_STOPPED);
  test_errors();
  test_calls();
  char folder[4096];
  make_folder(folder, sizeof folder);
  test_stored(folder);
  CHECK(rmdir(folder) == 0);
  puts("all calls of the batched update table's C API do what they should");
  return 0;
}
