// What is flushed and fenced without a call: what the thread's variable (abi.inc) says, and nothing else. Which calls come the stand-in counts.
#include <stdlib.h>
#include <string.h>

#include "region.h"

enum { kPageBytes = 4096, kLines = 12 * kPageBytes / kLineBytes, kEntries = 256 };

struct put_off {
  uint64_t mark, entries[kEntries];
};
struct thread {
  uint64_t ranges[3];
  const struct put_off* put_off;
  uint32_t pending;
  int32_t fences;
};
extern _Thread_local struct thread __spillway_persist_thread __attribute__((tls_model("initial-exec")));
static struct thread* const own(void) { return &__spillway_persist_thread; }

void stand_in_counts(unsigned counts[3]);

static unsigned calls(void) {
  unsigned counts[3];
  stand_in_counts(counts);
  return counts[0] + counts[1] + counts[2];
}

static void fail(const char* what, unsigned long number) {
  printf("%s %lu\n", what, number);
  exit(1);
}

// Whether it came to a call.
static unsigned flush(unsigned instruction, char* line) {
  const unsigned before = calls();
  line += (uintptr_t)line / kLineBytes % kLineBytes;
  switch (instruction) {
    case 0: __asm__ volatile("clwb %0" : "+m"(*(volatile char*)line)); break;
    case 1: __asm__ volatile("clflushopt %0" : "+m"(*(volatile char*)line)); break;
    default: __asm__ volatile("clflush %0" : "+m"(*(volatile char*)line)); break;
  }
  own()->pending = 0;
  return calls() - before;
}
static unsigned fence(void) {
  const unsigned before = calls();
  __asm__ volatile("sfence" ::: "memory");
  return calls() - before;
}

static void check_ranges(void) {
  static const unsigned first[3] = {2, 3, 9}, count[3] = {3, 1, 2};
  const uint64_t page = (uintptr_t)REGION / kPageBytes;
  for (unsigned k = 0; k < 3; ++k) own()->ranges[k] = (page + first[k]) << 28 | count[k];
  for (unsigned k = 0; k < 3; ++k)
    for (unsigned line = 0; line < kLines; ++line) {
      const unsigned at = line * kLineBytes / kPageBytes;
      const int is_direct = at >= first[k] && at < first[k] + count[k];
      memset(REGION + line * kLineBytes, (int)line, kLineBytes);
      if (flush(k, REGION + line * kLineBytes) != (is_direct ? 0 : 1)) fail("range", k * 1000 + line);
    }
  memset(own()->ranges, 0, sizeof own()->ranges);
}

static void check_put_off(void) {
  static struct put_off table;
  const struct put_off* const before = own()->put_off;
  own()->put_off = &table;
  const uint64_t first = (uintptr_t)REGION / kLineBytes;
  table.mark = 0x123 << 2 | 3;
  for (unsigned line = 0; line < kLines; ++line) {
    const uint64_t number = first + line, index = (number ^ number / kEntries) % kEntries;
    table.entries[index] = number << 14 | table.mark;
    // Others of the same entry, and the same number with other marks, are not put off.
    for (unsigned other = 0; other < kLines; ++other)
      if ((other % 61 == 0 || other == line) &&
          flush(other % 2, REGION + other * kLineBytes) != (other != line))
        fail("put off", line * 1000 + other);
    if (flush(2, REGION + line * kLineBytes) != 1) fail("clflush", line);
    for (unsigned bit = 0; bit < 14; ++bit) {
      table.entries[index] ^= 1ull << bit;
      if (flush(0, REGION + line * kLineBytes) != 1) fail("mark", line * 1000 + bit);
      table.entries[index] ^= 1ull << bit;
    }
    table.entries[index] = 0;
  }
  own()->put_off = before;
}

static void check_fences(void) {
  for (unsigned left = 0; left < 5; ++left) {
    own()->fences = (int32_t)left;
    for (unsigned i = 0; i < 8; ++i)
      if (fence() != (i < left ? 0 : 1)) fail("fence", left * 10 + i);
    if (own()->fences != 0) fail("fences left", left);
  }
  own()->fences = 3;
  own()->pending = 1;
  if (fence() != 1 || own()->fences != 3) fail("pending", 0);
  own()->fences = -2;
  if (fence() != 1 || own()->fences != -2) fail("fences left", 9);
}

int main(void) {
  map_region();
  check_ranges();
  check_put_off();
  check_fences();
  printf("direct\n");
  return 0;
}
