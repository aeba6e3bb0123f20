// A log in persistent memory: records, one behind the other, of several lines. Each has a checksum: a recovery reads up to the first that
// is not whole, so that an append needs one fence. Every few records the log begins anew, with a larger generation.
//
//   log run FILE BUG          some appends; BUG 0 is correct
//   log verify FILE DONE BUG  exit status 0: FILE has all records of DONE appends, or one more
#include "pm.h"

enum {
  kNoChecksum = 1,      // a record counts as soon as it has a length
  kLengthFirst,         // a tail says how much there is, and is durable before the record
  kTailWithoutFence,    // the tail after the record, no fence between them
  kChecksumOfHead,      // the checksum leaves the content out
  kTailLineNotFlushed,  // the last line of a record
  kNotFenced,           // what was acknowledged is lost
  kStreamNotFenced,     // stores past the caches, without a fence
  kNoGeneration,        // records from before a new beginning are taken for newer ones
  kBeginNotDurable,     // the first record of a generation is written before the generation is
};

enum { kAppends = 13, kPerGeneration = 5, kBytes = 32 << 10, kMaxWords = 24 };

struct head {
  uint64_t magic, generation, tail, zero[5];
};
struct record {
  uint64_t length, number, checksum, words[kMaxWords];  // length: of words, in bytes
};
static const uint64_t kMagic = 0x676f4c5f4d50;

static int bug;
static int has_tail(void) { return bug == kLengthFirst || bug == kTailWithoutFence; }

static unsigned words_of(unsigned number) { return 3 + number * 7 % (kMaxWords - 2); }
static uint64_t word_of(unsigned number, unsigned i) { return number * 1000003ull + i * 101 + 1; }
static uint64_t mix(uint64_t hash, uint64_t word) {
  return (hash ^ word) * 0x9e3779b97f4a7c15 + (hash >> 29);
}
static uint64_t checksum(const struct record* record, uint64_t generation) {
  uint64_t hash = mix(mix(bug == kNoGeneration ? 1 : generation, record->length), record->number);
  for (unsigned i = 0; bug != kChecksumOfHead && i < record->length / 8; ++i)
    hash = mix(hash, record->words[i]);
  return hash | 1;
}
static uint64_t bytes_of(const struct record* record) { return 24 + record->length; }

static void persist(const void* address, size_t bytes) {
  PERSIST_FLUSH(address, bytes);
  PERSIST_FENCE();
}

static void begin(struct head* head, uint64_t generation) {
  STORE(&head->generation, generation);
  if (generation == 1) STORE(&head->magic, kMagic);
  if (has_tail()) STORE(&head->tail, 0);
  if (bug == kBeginNotDurable)
    PERSIST_FLUSH(head, sizeof *head);
  else
    persist(head, sizeof *head);
}

static uint64_t append(struct head* head, uint64_t at, unsigned number) {
  struct record* const record = (struct record*)((char*)head + sizeof *head + at);
  struct record whole = {.length = 8 * words_of(number), .number = number};
  for (unsigned i = 0; i < whole.length / 8; ++i) whole.words[i] = word_of(number, i);
  whole.checksum = checksum(&whole, head->generation);
  const uint64_t bytes = bytes_of(&whole), end = at + bytes;
  if (bug == kLengthFirst) {
    STORE(&head->tail, end);
    persist(head, sizeof *head);
  }
  const uint64_t* const words = &whole.length;
  uint64_t* const to = &record->length;
  for (unsigned i = 0; i < bytes / 8; ++i) {
    if (bug == kStreamNotFenced)
      _mm_stream_si64((long long*)&to[i], (long long)words[i]);
    else
      STORE(&to[i], words[i]);
  }
  if (bug == kTailLineNotFlushed)
    PERSIST_FLUSH(record, bytes - 64);
  else if (bug != kStreamNotFenced)
    PERSIST_FLUSH(record, bytes);
  if (bug != kNotFenced && bug != kStreamNotFenced && bug != kTailWithoutFence) PERSIST_FENCE();
  if (bug == kTailWithoutFence) {
    STORE(&head->tail, end);
    persist(head, sizeof *head);
  }
  return end;
}

static int verify(const struct head* head, unsigned done) {
  if (head->magic == 0 && done == 0) return 0;
  if (head->magic != kMagic || head->generation == 0) return pm_fail("not a log, though appended to", done);
  // The newest record there is.
  const unsigned first = (unsigned)(head->generation - 1) * kPerGeneration + 1;
  unsigned next = first;
  for (uint64_t at = 0; at + sizeof(struct record) < kBytes - sizeof *head;) {
    const struct record* const record = (const struct record*)((const char*)head + sizeof *head + at);
    if (has_tail() && at >= head->tail) break;
    if (record->length == 0 || record->length > 8 * kMaxWords) break;
    if (!has_tail() && bug != kNoChecksum && record->checksum != checksum(record, head->generation)) break;
    if (record->number != next || record->length != 8 * words_of(next))
      return pm_fail("another record instead of", next);
    for (unsigned i = 0; i < words_of(next); ++i)
      if (record->words[i] != word_of(next, i)) return pm_fail("a broken record", next);
    at += bytes_of(record);
    ++next;
  }
  // A new beginning drops what was before it, and is made by the append that comes next.
  const unsigned last = next - 1;
  return last == done || last == done + 1 ? 0 : pm_fail("not as it was after append", done);
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  struct head* const head = pm_open(arguments[2], kBytes);
  if (strcmp(arguments[1], "verify") == 0) {
    bug = count > 4 ? atoi(arguments[4]) : 0;
    return verify(head, (unsigned)atoi(arguments[3]));
  }
  bug = atoi(arguments[3]);
  pm_domain(head, kBytes);
  uint64_t at = 0;
  for (unsigned i = 1; i <= kAppends; ++i) {
    if ((i - 1) % kPerGeneration == 0) {
      begin(head, (i - 1) / kPerGeneration + 1);
      at = 0;
    }
    at = append(head, at, i);
    pm_done(i);
  }
  pm_domain_ends(head, kBytes);
  return 0;
}
