// Every call of the batched update table's C API and every status, from C.
#include "batch_test.h"

int main(void) {
  check_status_texts(SPILLWAY_BATCH_IN_USE, SPILLWAY_BATCH_STOPPED);
  test_errors();
  test_calls();
  puts("all calls of the batched update table's C API do what they should");
  return 0;
}
