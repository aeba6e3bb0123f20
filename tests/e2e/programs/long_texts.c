// Items read one after the other from a long text: each costs what it takes, not what follows.
// memory: 1M
// expect: cache.evictions>=500 cache.misses<=60000
#define _GNU_SOURCE
#include <time.h>

#include "e2e.h"

enum { kBytes = 6 << 20, kLine = 48, kItems = 800 };

int main(void) {
  char* text = (char*)malloc(kBytes + 1);
  CHECK_SPILLED(text);
  const int lines = kBytes / kLine;
  for (int i = 0; i < lines; ++i) {
    char line[kLine + 1];
    const int n = snprintf(line, sizeof line, "%04d-%02d-%02d %d %d.25 word%d", 1900 + i % 200, 1 + i % 12,
                           1 + i % 28, i, i * 3, i);
    memset(line + n, ' ', (size_t)(kLine - n));
    line[kLine - 1] = '\n';
    memcpy(text + (size_t)i * kLine, line, kLine);
  }
  text[(size_t)lines * kLine] = 0;

  const char* at = text;
  long sum = 0;
  double real_sum = 0;
  for (int i = 0; i < kItems; ++i) {
    int year, month, day, number, taken = 0;
    double real;
    char word[20];
    CHECK(sscanf(at, "%d-%d-%d %d %lf %19s%n", &year, &month, &day, &number, &real, word, &taken) == 6);
    CHECK(number == i && atoi(word + 4) == i);
    sum += year + month + day + taken;
    real_sum += real;
    at += taken;
  }
  printf("%ld %.2f\n", sum, real_sum);
  int nothing = -1;
  CHECK(sscanf(at, "no %d", &nothing) == 0 && nothing == -1);

  sum = 0;
  at = text;
  for (int i = 0; i < kItems; ++i) {
    struct tm time;
    memset(&time, 0, sizeof time);
    const char* end = strptime(at, "%Y-%m-%d", &time);
    CHECK(end == at + 10);
    CHECK(strptime(at, "%H:%M", &time) == NULL);
    sum += time.tm_year + time.tm_mon + time.tm_mday;
    at += kLine;
  }
  printf("%ld\n", sum);

  // What ends where the text ends, or behind much white space.
  const char* last = text + (size_t)(lines - 1) * kLine;
  char word[20], more[20];
  int count = sscanf(last, "%*s %*d %*f %19s %19s", word, more);
  printf("%d %s\n", count, word);
  memset(text, ' ', 3000000);
  struct tm time;
  memset(&time, 0, sizeof time);
  memcpy(text + 3000000, "12 Sep 1987", 11);
  text[3000011] = 0;
  const char* end = strptime(text, " %d %b %Y", &time);
  printf("%ld %d %d %d\n", end == NULL ? -1L : (long)(end - text), time.tm_mday, time.tm_mon, time.tm_year);
  count = sscanf(text, "%d %3s %d%n", &time.tm_mday, word, &time.tm_year, &time.tm_sec);
  printf("%d %d %s %d %d\n", count, time.tm_mday, word, time.tm_year, time.tm_sec);
  text[3000003] = 0;
  printf("%d %d\n", strptime(text, " %d %b", &time) == NULL, sscanf(text, "%d %19s", &nothing, word));
  text[3000000] = 0;
  printf("%d\n", sscanf(text, "%d", &nothing));
  free(text);
  return 0;
}
