// Transactions on an LMDB database, and what must be there after some of them.
//   lmdb_writer write FOLDER KEYS COUNT [nosync]   goes on after the last transaction that is there, COUNT more, 0: for
//                                                  ever; a line on standard output says its process id, one each commit.
//                                                  Then it waits for the end of standard input
//   lmdb_writer verify FOLDER KEYS                 everything that the transactions up to the last one that is there did is
//                                                  there, and nothing else; prints its number
// Transaction t stores one of KEYS keys at a time, and deletes one; which, and what is stored, depends on t alone.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lmdb.h"

#define STORES 40
#define LONGEST 3000

static void check(int status, const char* what) {
  if (status == 0) return;
  fprintf(stderr, "%s: %s\n", what, mdb_strerror(status));
  exit(1);
}
static void require(int condition, const char* what, uint64_t number) {
  if (condition) return;
  fprintf(stderr, "%s: %llu\n", what, (unsigned long long)number);
  exit(1);
}

static uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9e3779b97f4a7c15 + b * 0xd1342543de82ef95 + 0x2545f4914f6cdd1d;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static uint64_t key_of(uint64_t transaction, unsigned i, uint64_t keys) {
  return 1 + mixed(transaction, i) % keys;
}
static size_t value_of(uint64_t key, uint64_t transaction, uint64_t* to) {
  const size_t words = 4 + mixed(key, transaction) % (LONGEST / 8 - 4);
  for (size_t i = 0; i < words; ++i) to[i] = mixed(key + i, transaction);
  to[0] = transaction;
  return words * 8;
}

static MDB_env* open_database(const char* folder, unsigned flags) {
  MDB_env* environment;
  check(mdb_env_create(&environment), "create");
  check(mdb_env_set_mapsize(environment, (size_t)1 << 30), "map size");
  check(mdb_env_open(environment, folder, flags, 0600), "open");
  return environment;
}

// Key 0 has the number of the last transaction.
static uint64_t last_of(MDB_txn* transaction, MDB_dbi database) {
  uint64_t zero = 0, last = 0;
  MDB_val key = {8, &zero}, value;
  const int status = mdb_get(transaction, database, &key, &value);
  if (status == MDB_NOTFOUND) return 0;
  check(status, "get the last");
  memcpy(&last, value.mv_data, 8);
  return last;
}

static void run(MDB_env* environment, uint64_t keys, uint64_t count) {
  static uint64_t words[LONGEST / 8];
  for (uint64_t done = 0; count == 0 || done < count; ++done) {
    MDB_txn* transaction;
    MDB_dbi database;
    check(mdb_txn_begin(environment, NULL, 0, &transaction), "begin");
    check(mdb_dbi_open(transaction, NULL, MDB_INTEGERKEY, &database), "open the database");
    uint64_t number = last_of(transaction, database) + 1;
    for (unsigned i = 0; i <= STORES; ++i) {
      uint64_t name = key_of(number, i, keys);
      MDB_val key = {8, &name}, value = {0, words};
      if (i == STORES) {
        const int status = mdb_del(transaction, database, &key, NULL);
        if (status != MDB_NOTFOUND) check(status, "delete");
        break;
      }
      value.mv_size = value_of(name, number, words);
      check(mdb_put(transaction, database, &key, &value, 0), "put");
    }
    uint64_t zero = 0;
    MDB_val key = {8, &zero}, value = {8, &number};
    check(mdb_put(transaction, database, &key, &value, 0), "put the last");
    check(mdb_txn_commit(transaction), "commit");
    printf("%llu\n", (unsigned long long)number);
    fflush(stdout);
  }
}

static void verify(MDB_env* environment, uint64_t keys) {
  static uint64_t words[LONGEST / 8];
  MDB_txn* transaction;
  MDB_dbi database;
  MDB_cursor* cursor;
  check(mdb_txn_begin(environment, NULL, MDB_RDONLY, &transaction), "begin");
  check(mdb_dbi_open(transaction, NULL, MDB_INTEGERKEY, &database), "open the database");
  const uint64_t last = last_of(transaction, database);
  uint64_t* versions = calloc(keys + 1, 8);  // 0: not there
  for (uint64_t t = 1; t <= last; ++t)
    for (unsigned i = 0; i <= STORES; ++i) versions[key_of(t, i, keys)] = i < STORES ? t : 0;
  check(mdb_cursor_open(transaction, database, &cursor), "open a cursor");
  MDB_val key, value;
  uint64_t found = 0, name;
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
    memcpy(&name, key.mv_data, 8);
    if (name == 0) continue;
    require(name <= keys && versions[name] != 0, "a key that should not be there", name);
    require(value.mv_size == value_of(name, versions[name], words), "a value's length", name);
    require(memcmp(value.mv_data, words, value.mv_size) == 0, "a value", name);
    ++found;
  }
  for (uint64_t i = 1; i <= keys; ++i) found -= versions[i] != 0;
  require(found == 0, "keys are missing", -found);
  mdb_txn_abort(transaction);
  printf("%llu\n", (unsigned long long)last);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int writes = strcmp(argv[1], "write") == 0;
  const unsigned nosync = argc > 5 && strcmp(argv[5], "nosync") == 0 ? MDB_NOSYNC : 0;
  MDB_env* environment = open_database(argv[2], writes ? MDB_WRITEMAP | nosync : MDB_RDONLY);
  const uint64_t keys = strtoull(argv[3], NULL, 10);
  if (writes) {
    printf("%d\n", (int)getpid());
    fflush(stdout);
    run(environment, keys, argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
    while (getchar() != EOF) continue;
  } else {
    verify(environment, keys);
  }
  mdb_env_close(environment);
  return 0;
}
