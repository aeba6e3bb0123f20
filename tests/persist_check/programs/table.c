// A table in persistent memory: keys, each with a record of two lines. A record is written to a free place, and published by a store of 8
// bytes to a slot. Free is what no slot refers to, so that a crash leaves nothing to mend.
//
//   table run FILE BUG          some operations; BUG 0 is correct
//   table verify FILE DONE BUG  exit status 0: FILE is as after DONE operations, or one more
#include "pm.h"

enum {
  kMissingFlush = 1,   // of the record
  kMissingFence,       // between the record and what publishes it
  kPublishFirst,       // and the record after it
  kPublishNotFlushed,  // what was acknowledged is lost
  kPublishNotFenced,   // the same
  kWrongRange,         // of memory behind the record
  kHalfRange,          // of the first of its two lines
  kFlushFirst,         // and stored to after it
  kTornSlot,           // tag and record by one store of 16 bytes
  kInPlace,            // a record that is published is changed
  kTrustedCount,       // the recovery believes a count that is written after the slot
  kTagFirst,           // a slot's tag before its record, in the same line
  kMagicFirst,         // the file counts as made before it is
};

enum { kSlots = 16, kRecords = 32, kWords = 14, kOperations = 14, kBytes = 64 << 10 };

struct record {
  uint64_t key, number, words[kWords];
};
struct slot {
  uint64_t tag,
      record;  // the key, or 0: nothing yet; 1 more than which record, or kGone. A tag has one or the other
};
struct table {
  uint64_t magic, slot_count, entry_count, zero[5];
  struct slot slots[kSlots];
  char rest[4096 - 64 - sizeof(struct slot[kSlots])];
  struct record records[kRecords];
};
static const uint64_t kMagic = 0x656c6261545f4d50, kGone = ~0ull;

static uint64_t word_of(uint64_t key, uint64_t number, unsigned i) {
  return (key << 32) + number * 100 + i + 1;
}

static int bug;

static void persist(const void* address, size_t bytes) {
  PERSIST_FLUSH(address, bytes);
  PERSIST_FENCE();
}

static void make(struct table* table) {
  if (bug == kMagicFirst) {
    STORE(&table->magic, kMagic);
    persist(table, 64);
    STORE(&table->slot_count, kSlots);
    persist(table, 64);
    return;
  }
  STORE(&table->slot_count, kSlots);
  STORE(&table->magic, kMagic);
  persist(table, 64);
}

static struct slot* slot_of(struct table* table, uint64_t key) {
  for (unsigned i = 0; i < kSlots; ++i) {
    struct slot* const slot = &table->slots[(key * 5 + i) % kSlots];
    if (slot->tag == key || slot->tag == 0) return slot;
  }
  abort();
}

static unsigned free_record(const struct table* table) {
  for (unsigned i = 0; i < kRecords; ++i) {
    int is_used = 0;
    for (unsigned s = 0; s < kSlots; ++s) is_used |= table->slots[s].record == i + 1;
    if (!is_used) return i;
  }
  abort();
}

static void write_record(struct record* record, uint64_t key, uint64_t number) {
  if (bug == kFlushFirst) PERSIST_FLUSH(record, sizeof *record);
  STORE(&record->key, key);
  STORE(&record->number, number);
  for (unsigned i = 0; i < kWords; ++i) STORE(&record->words[i], word_of(key, number, i));
  if (bug == kWrongRange)
    PERSIST_FLUSH(record + 1, sizeof *record);
  else if (bug == kHalfRange)
    PERSIST_FLUSH(record, 64);
  else if (bug != kMissingFlush && bug != kFlushFirst)
    PERSIST_FLUSH(record, sizeof *record);
  if (bug != kMissingFence) PERSIST_FENCE();
}

static void publish(struct slot* slot, uint64_t key, uint64_t record) {
  if (bug == kTornSlot) {
    _mm_store_si128((__m128i*)slot, _mm_set_epi64x((long long)record, (long long)key));
  } else if (bug == kTagFirst) {
    STORE(&slot->tag, key);
    STORE(&slot->record, record);
  } else {
    STORE(&slot->record, record);
    if (slot->tag == 0) STORE(&slot->tag, key);
  }
  if (bug != kPublishNotFlushed) PERSIST_FLUSH(slot, sizeof *slot);
  if (bug != kPublishNotFenced) PERSIST_FENCE();
}

static void put(struct table* table, uint64_t key, uint64_t number) {
  struct slot* const slot = slot_of(table, key);
  if (bug == kInPlace && slot->tag == key && slot->record != kGone) {
    write_record(&table->records[slot->record - 1], key, number);
    return;
  }
  const unsigned place = free_record(table);
  const int is_new = slot->tag == 0 || slot->record == kGone;
  if (bug == kPublishFirst) {
    publish(slot, key, place + 1);
    write_record(&table->records[place], key, number);
  } else {
    write_record(&table->records[place], key, number);
    publish(slot, key, place + 1);
  }
  if (bug == kTrustedCount && is_new) {
    STORE(&table->entry_count, table->entry_count + 1);
    persist(&table->entry_count, 8);
  }
}

static void delete(struct table* table, uint64_t key) {
  struct slot* const slot = slot_of(table, key);
  STORE(&slot->record, kGone);
  persist(slot, sizeof *slot);
  if (bug == kTrustedCount) {
    STORE(&table->entry_count, table->entry_count - 1);
    persist(&table->entry_count, 8);
  }
}

// Operation i, from 1 on, to a table, or to what it should hold: model[key] is the number of its value, or 0.
enum { kKeys = 6 };
static void operate(unsigned i, struct table* table, unsigned model[kKeys]) {
  const unsigned key = (i * 2 + i / 4) % (kKeys - 1) + 1;
  const int is_delete = i % 4 == 0 && model[key] != 0;
  if (table != NULL && is_delete) delete (table, key);
  if (table != NULL && !is_delete) put(table, key, i);
  model[key] = is_delete ? 0 : i;
}

static int matches(const struct table* table, unsigned done) {
  unsigned model[kKeys] = {0}, entries = 0;
  for (unsigned i = 1; i <= done && i <= kOperations; ++i) operate(i, NULL, model);
  for (unsigned s = 0; s < kSlots; ++s) {
    const struct slot* const slot = &table->slots[s];
    if (slot->tag == 0) continue;
    if (slot->tag >= kKeys) return 0;
    if (slot->record == 0) return 0;
    if (slot->record == kGone) continue;
    ++entries;
    const struct record* const record = &table->records[slot->record - 1];
    if (record->key != slot->tag || record->number != model[slot->tag]) return 0;
    for (unsigned i = 0; i < kWords; ++i)
      if (record->words[i] != word_of(record->key, record->number, i)) return 0;
  }
  unsigned wanted = 0;
  for (unsigned key = 0; key < kKeys; ++key) wanted += model[key] != 0;
  if (bug == kTrustedCount && table->entry_count != entries) return 0;
  return entries == wanted;
}

static int verify(const struct table* table, unsigned done) {
  if (table->magic == 0 && done == 0) return 0;  // not made yet: whoever opens it makes it
  if (table->magic != kMagic || table->slot_count != kSlots)
    return pm_fail("not a table, though made and used", done);
  if (matches(table, done) || matches(table, done + 1)) return 0;
  return pm_fail("not as it was after operation", done);
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  struct table* const table = pm_open(arguments[2], kBytes);
  if (strcmp(arguments[1], "verify") == 0) {
    bug = count > 4 ? atoi(arguments[4]) : 0;
    return verify(table, (unsigned)atoi(arguments[3]));
  }
  bug = atoi(arguments[3]);
  pm_domain(table, kBytes);
  make(table);
  unsigned model[kKeys] = {0};
  for (unsigned i = 1; i <= kOperations; ++i) {
    operate(i, table, model);
    pm_done(i);
  }
  pm_domain_ends(table, kBytes);
  return 0;
}
