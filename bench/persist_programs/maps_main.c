/* Works on one map: persist-maps POOL MAP OPERATIONS KEYS SEED [report]

   POOL is a file, made if it is not there; one that is there is gone on with. MAP is ctree, btree, rbtree, hashmap_tx, hashmap_atomic. Operation i
   and its key are told by i and SEED alone: six of ten insert, two remove, two look up. Prints one line of the content and of what was looked up; the same wherever it ran.
   OPERATIONS of 0: only reads. With `report` each operation that is durable is one byte on standard output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "maps.h"

enum { kPoolBytes = 96 << 20 };

struct root {
  PMEMoid map;
};

struct content {
  uint64_t entries, digest;
};

static const struct map_kind *const kKinds[] = {&ctree_map, &btree_map, &rbtree_map, &hashmap_tx_map,
                                                &hashmap_atomic_map};

static _Noreturn void refuse(void) {
  fprintf(stderr,
          "usage: persist-maps POOL ctree|btree|rbtree|hashmap_tx|hashmap_atomic OPERATIONS KEYS SEED "
          "[report]\n");
  exit(2);
}

static uint64_t number_of(const char *text) {
  char *end = NULL;
  const unsigned long long number = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != 0) refuse();
  return number;
}

static void add_entry(uint64_t key, uint64_t value, void *argument) {
  struct content *const content = argument;
  ++content->entries;
  content->digest += mixed(mixed(key) ^ value);
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int count, char **words) {
  if (count < 6 || count > 7 || (count == 7 && strcmp(words[6], "report") != 0)) refuse();
  const struct map_kind *kind = NULL;
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i)
    if (strcmp(words[2], kKinds[i]->name) == 0) kind = kKinds[i];
  const uint64_t operations = number_of(words[3]), keys = number_of(words[4]), seed = number_of(words[5]);
  if (kind == NULL || keys == 0) refuse();

  PMEMobjpool *pool = access(words[1], F_OK) == 0 ? pmemobj_open(words[1], "maps")
                                                  : pmemobj_create(words[1], "maps", kPoolBytes, 0600);
  if (pool == NULL) die("pool");
  const PMEMoid root_object = pmemobj_root(pool, sizeof(struct root));
  if (OID_IS_NULL(root_object)) die("root");
  struct root *const root = at(root_object);

  uint64_t seen = 0;
  const double began = seconds_now();
  for (uint64_t i = 0; i < operations; ++i) {
    const uint64_t drawn = mixed(seed ^ mixed(i)), key = (drawn >> 8) % keys;
    uint64_t value = 0;
    switch (drawn % 10) {
      case 0:
      case 1: seen = mixed(seen + (uint64_t)kind->remove(pool, &root->map, key)); break;
      case 2:
      case 3: seen = mixed(seen + (kind->lookup(root->map, key, &value) ? value : 0)); break;
      default: kind->insert(pool, &root->map, key, mixed(drawn));
    }
    if (count == 7 && write(STDOUT_FILENO, ".", 1) != 1) die("report");
  }
  const double seconds = seconds_now() - began;

  struct content content = {0, 0};
  kind->visit(root->map, add_entry, &content);
  pmemobj_close(pool);
  printf(
      "{\"map\": \"%s\", \"entries\": %llu, \"digest\": \"%016llx\", \"seen\": \"%016llx\", \"seconds\": "
      "%.6f}\n",
      kind->name, (unsigned long long)content.entries, (unsigned long long)content.digest,
      (unsigned long long)seen, seconds);
  return 0;
}
