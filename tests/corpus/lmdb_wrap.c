// What LMDB's own tests are linked with: each database is a shared mapping that is written, and their random numbers are the
// same every time (they are compiled with -Dtime=fixed_time).
#include <time.h>
#include "lmdb.h"

int __real_mdb_env_open(MDB_env* environment, const char* path, unsigned flags, mdb_mode_t mode);
int __wrap_mdb_env_open(MDB_env* environment, const char* path, unsigned flags, mdb_mode_t mode);

int __wrap_mdb_env_open(MDB_env* environment, const char* path, unsigned flags, mdb_mode_t mode) {
  return __real_mdb_env_open(environment, path, flags | MDB_WRITEMAP, mode);
}

time_t fixed_time(time_t* to);
time_t fixed_time(time_t* to) {
  if (to) *to = 42;
  return 42;
}
