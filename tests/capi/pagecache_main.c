// Every call of the page cache's C API and every status, from C.
#define _GNU_SOURCE
#include <sys/stat.h>
#include <unistd.h>

#include "pagecache_test.h"

#include "folder.h"

int main(void) {
  char folder[150];
  make_folder(folder, sizeof folder);
  CHECK(chmod(folder, 0755) == 0);
  test_errors(folder);
  test_calls(folder);
  test_queue();
  CHECK(rmdir(folder) == 0);
  puts("all calls of the page cache's C API do what they should");
  return 0;
}
