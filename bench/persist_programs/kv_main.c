/* A key-value program over libpmemobj, with keys and values of many sizes in objects of their own: persist-kv POOL separate|together RECORDS OPERATIONS SEED

   POOL is a file, made if it is not there, else only read. RECORDS are loaded, then OPERATIONS of YCSB's workload A follow: half of them read a value, half give a key another one, of which some keys are far
   more popular. An update is a new object for the value, as the first one was, and the old one is freed. Each change is one transaction. Prints one line of the content, which is the same whatever
   the way of allocation.

   separate   the value is allocated, then the key: each where libpmemobj has room
   together   whoever allocates says what for. The allocation of a value takes room for its key as well, one block of whole lines as spillway_persist_layout() lays it out, and that of
              the key hands out the room that is there (Ribbon, PACT'20, 2.3). An updated value has its key beside it again */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "maps.h"
#include "spillway/persist.h"

enum {
  kPoolBytes = 256 << 20,
  kLineBytes = 64,
  kMaxLines = 16, /* of a key with its value */
  kMinKey = 8,
  kKeySpread = 24,
  kMinValue = 16,
  kValueSpread = 112
};

struct entry {
  PMEMoid next, key, value;
  uint32_t key_bytes, value_bytes;
};
struct root {
  uint64_t chains;
  PMEMoid table;
};

/* What is allocated for a key or a value. */
enum purpose { kForKey, kForValue };

static int is_together;
static unsigned line_classes[kMaxLines + 1]; /* libpmemobj's allocation classes of so many whole lines */
static struct {
  PMEMoid room; /* for the key of the value that was allocated last */
  size_t bytes;
} key_room;

static void make_classes(PMEMobjpool *pool) {
  for (size_t lines = 1; lines <= kMaxLines; ++lines) {
    struct pobj_alloc_class_desc class = {.unit_size = lines * kLineBytes,
                                          .alignment = kLineBytes,
                                          .units_per_block = 1024,
                                          .header_type = POBJ_HEADER_NONE};
    if (pmemobj_ctl_set(pool, "heap.alloc_class.new.desc", &class) != 0) die("allocation class");
    line_classes[lines] = class.class_id;
  }
}

/* Room for `bytes`; `key_bytes` is what the key that comes next takes, if this is for a value. */
static PMEMoid allocate(enum purpose purpose, size_t bytes, size_t key_bytes) {
  if (!is_together) {
    const PMEMoid made = pmemobj_tx_alloc(bytes, 0);
    if (OID_IS_NULL(made)) die("allocation");
    return made;
  }
  if (purpose == kForKey) {
    if (key_room.bytes != bytes) die("room for a key");
    return key_room.room;
  }
  const size_t parts[] = {bytes, key_bytes};
  size_t offsets[2];
  const size_t block_bytes = spillway_persist_layout(parts, 2, 8, offsets);
  if (block_bytes == 0 || block_bytes > kMaxLines * kLineBytes) die("layout");
  PMEMoid made = pmemobj_tx_xalloc(
      block_bytes, 0, POBJ_CLASS_ID(line_classes[block_bytes / kLineBytes]) | POBJ_XALLOC_NO_FLUSH);
  if (OID_IS_NULL(made)) die("allocation");
  key_room.room = (PMEMoid){made.pool_uuid_lo, made.off + offsets[1]};
  key_room.bytes = key_bytes;
  made.off += offsets[0];
  return made;
}

/* The block that a value and its key are in begins with whichever lies lower. */
static void release(const struct entry *entry) {
  if (!is_together) return tx_free(entry->value);
  PMEMoid block = entry->value.off < entry->key.off ? entry->value : entry->key;
  block.off -= (uint64_t)((uintptr_t)at(block) % kLineBytes);
  tx_free(block);
}

struct record {
  char key[kMinKey + kKeySpread], value[kMinValue + kValueSpread];
  size_t key_bytes, value_bytes;
};

/* A key and its value are written: in one block, that is flushed here at once; else libpmemobj flushes each object when the transaction ends. */
static void flush_block(PMEMobjpool *pool, PMEMoid value, PMEMoid key, const struct record *record) {
  if (!is_together) return;
  const PMEMoid low = value.off < key.off ? value : key, high = value.off < key.off ? key : value;
  pmemobj_flush(pool, at(low),
                high.off - low.off + (high.off == key.off ? record->key_bytes : record->value_bytes));
}

static void fill_randomly(char *to, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; ++i) to[i] = (char)(mixed(seed + i / 8) >> i % 8 * 8);
}

static struct record record_of(uint64_t number, uint64_t version) {
  struct record record;
  record.key_bytes = kMinKey + mixed(number) % kKeySpread;
  record.value_bytes = kMinValue + mixed(mixed(number) + version) % kValueSpread;
  fill_randomly(record.key, record.key_bytes, number << 20);
  memcpy(record.key, &number, sizeof number);
  fill_randomly(record.value, record.value_bytes, (number << 20) + version * 64 + 32);
  return record;
}

static PMEMoid *chain_of(const struct root *root, uint64_t number) {
  return (PMEMoid *)at(root->table) + mixed(number) % root->chains;
}

static struct entry *find(const struct root *root, uint64_t number, const struct record *record) {
  for (PMEMoid next = *chain_of(root, number); !OID_IS_NULL(next);) {
    struct entry *const entry = at(next);
    if (entry->key_bytes == record->key_bytes && memcmp(at(entry->key), record->key, record->key_bytes) == 0)
      return entry;
    next = entry->next;
  }
  return NULL;
}

static void load(PMEMobjpool *pool, struct root *root, uint64_t number) {
  const struct record record = record_of(number, 0);
  tx_begin(pool);
  const PMEMoid value = allocate(kForValue, record.value_bytes, record.key_bytes);
  memcpy(at(value), record.value, record.value_bytes);
  const PMEMoid key = allocate(kForKey, record.key_bytes, 0);
  memcpy(at(key), record.key, record.key_bytes);
  flush_block(pool, value, key, &record);
  const PMEMoid made = tx_new(sizeof(struct entry));
  PMEMoid *const chain = chain_of(root, number);
  *(struct entry *)at(made) =
      (struct entry){*chain, key, value, (uint32_t)record.key_bytes, (uint32_t)record.value_bytes};
  TX_ASSIGN(*chain, made);
  tx_end();
}

static void update(PMEMobjpool *pool, const struct root *root, uint64_t number, uint64_t version) {
  const struct record record = record_of(number, version);
  struct entry *const entry = find(root, number, &record);
  if (entry == NULL) die("looking for a key");
  tx_begin(pool);
  const PMEMoid value = allocate(kForValue, record.value_bytes, record.key_bytes);
  memcpy(at(value), record.value, record.value_bytes);
  tx_add(entry, sizeof *entry);
  release(entry);
  entry->value = value;
  entry->value_bytes = (uint32_t)record.value_bytes;
  if (is_together) {
    entry->key = allocate(kForKey, record.key_bytes, 0);
    memcpy(at(entry->key), record.key, record.key_bytes);
    flush_block(pool, value, entry->key, &record);
  }
  tx_end();
}

/* Zipf's law with YCSB's exponent, near enough: the rank grows as a power of a uniform number. */
static uint64_t popular(uint64_t drawn, uint64_t records) {
  const double uniform = (double)(drawn >> 11) * 0x1p-53;
  const uint64_t rank = (uint64_t)pow((double)records, uniform) - 1;
  return mixed(rank) % records;
}

static uint64_t digest_of(const struct root *root) {
  uint64_t digest = 0;
  for (uint64_t i = 0; i < root->chains; ++i)
    for (PMEMoid next = ((PMEMoid *)at(root->table))[i]; !OID_IS_NULL(next);) {
      const struct entry *const entry = at(next);
      uint64_t own = 0;
      for (uint32_t j = 0; j < entry->key_bytes; ++j) own = mixed(own + ((unsigned char *)at(entry->key))[j]);
      for (uint32_t j = 0; j < entry->value_bytes; ++j)
        own = mixed(own + ((unsigned char *)at(entry->value))[j]);
      digest += own;
      next = entry->next;
    }
  return digest;
}

static uint64_t number_of(const char *text) {
  char *end = NULL;
  const unsigned long long number = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == 0 ? number : ~0ULL;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int count, char **words) {
  const uint64_t records = count == 6 ? number_of(words[3]) : 0,
                 operations = count == 6 ? number_of(words[4]) : 0,
                 seed = count == 6 ? number_of(words[5]) : 0;
  is_together = count == 6 && strcmp(words[2], "together") == 0;
  if (count != 6 || records == 0 || records > 1000000 || operations == ~0ULL || seed == ~0ULL ||
      (!is_together && strcmp(words[2], "separate") != 0)) {
    fprintf(stderr, "usage: persist-kv POOL separate|together RECORDS OPERATIONS SEED\n");
    return 2;
  }
  const int is_there = access(words[1], F_OK) == 0;
  PMEMobjpool *pool =
      is_there ? pmemobj_open(words[1], "kv") : pmemobj_create(words[1], "kv", kPoolBytes, 0600);
  if (pool == NULL) die("pool");
  struct root *const root = at(pmemobj_root(pool, sizeof(struct root)));
  if (root == NULL) die("root");
  const double began = seconds_now();
  if (!is_there) {
    if (is_together) make_classes(pool);
    tx_begin(pool);
    tx_add(root, sizeof *root);
    root->chains = records;
    root->table = tx_new(records * sizeof(PMEMoid));
    tx_end();
    for (uint64_t i = 0; i < records; ++i) load(pool, root, i);
    for (uint64_t i = 0; i < operations; ++i) {
      const uint64_t drawn = mixed(seed ^ mixed(i)), number = popular(mixed(drawn), records);
      if (drawn % 2 == 0) {
        update(pool, root, number, i + 1);
      } else {
        const struct record record = record_of(number, 0);
        if (find(root, number, &record) == NULL) die("looking for a key");
      }
    }
  }
  const double seconds = seconds_now() - began;
  printf("{\"digest\": \"%016llx\", \"seconds\": %.6f}\n", (unsigned long long)digest_of(root), seconds);
  pmemobj_close(pool);
  return 0;
}
