// The C library's string functions on spilled strings: results, and where they point.
// expect: cache.evictions>=1000
#define _GNU_SOURCE
#include <strings.h>
#include "e2e.h"

static int sign(int value) { return (value > 0) - (value < 0); }

int main(void) {
  // Two pages with strings that end and differ around the edge between them.
  char* a = malloc(64 << 10);
  char* b = malloc(64 << 10);
  CHECK_SPILLED(a);
  HIDE(a);
  HIDE(b);
  for (int shift = -20; shift < 20; ++shift) {
    char* at = a + 4096 - 8 + shift;
    char* other = b + 8192 - 8 - shift / 2;
    strcpy(at, "the quick brown fox");
    strcpy(other, "the quick brown fox");
    if (shift % 5 == 0) push_out(1500000);
    CHECK(strlen(at) == 19);
    CHECK(strcmp(at, other) == 0 && strncmp(at, other, 100) == 0);
    // Bytes compare as unsigned ones.
    other[10] = (char)0xe9;
    CHECK(strcmp(at, other) < 0 && strcmp(other, at) > 0);
    CHECK(strncmp(at, other, 11) < 0 && strncmp(at, other, 10) == 0);
    CHECK(memcmp(at, other, 19) < 0 && memcmp(other, at, 19) > 0);
    CHECK(sign(strcasecmp(at, "THE QUICK BROWN FOX")) == 0);
    CHECK(strchr(at, 'q') == at + 4 && strchr(at, 'x') == at + 18);
    CHECK(strchr(at, 0) == at + 19 && strchr(at, 'z') == NULL);
    CHECK(strchr(other, 0xe9) == other + 10 && strchr(other, (char)0xe9) == other + 10);
    CHECK(strrchr(at, 'o') == at + 17 && strrchr(at, 'z') == NULL);
    CHECK(strchrnul(at, 'z') == at + 19);
    CHECK(memchr(at, 'x', 19) == at + 18 && memchr(at, 'x', 18) == NULL);
    CHECK(memrchr(at, 't', 19) == at);
    CHECK(rawmemchr(at, 'x') == at + 18);
    CHECK(strstr(at, "brown") == at + 10 && strstr(at, "browm") == NULL);
    CHECK(strcasestr(at, "BROWN") == at + 10);
    CHECK(memmem(at, 19, "fox", 3) == at + 16);
    CHECK(strspn(at, "teh ") == 4 && strcspn(at, "qb") == 4);
    CHECK(strpbrk(at, "xk") == at + 8);
    CHECK(stpcpy(other, at) == other + 19 && strcmp(other, at) == 0);
    CHECK(stpncpy(other, at, 30) == other + 19 && other[29] == 0);
    CHECK(stpncpy(other, at, 5) == other + 5);
    CHECK(mempcpy(other, at, 20) == other + 20);
    CHECK(strcat(other, " jumps") == other && strcmp(other, "the quick brown fox jumps") == 0);
    CHECK(strncat(other, " over", 3) == other && strlen(other) == 28);
    CHECK(memccpy(other, at, 'q', 100) == other + 5);
    char* copied = strndup(at, 9);
    CHECK_SPILLED(copied);
    CHECK(strcmp(copied, "the quick") == 0);
    free(copied);
    strcpy(other, "  -1234567890123xyz");
    char* end;
    CHECK(strtol(other, &end, 10) == -1234567890123 && end == other + 16);
    strcpy(other, "1.5e3;");
    CHECK(strtod(other, &end) == 1500 && end == other + 5);
    strcpy(other, "a,b;c");
    char* state;
    CHECK(strcmp(strtok_r(other, ",;", &state), "a") == 0);
    CHECK(strcmp(strtok_r(NULL, ",;", &state), "b") == 0);
    CHECK(strcmp(strtok_r(NULL, ",;", &state), "c") == 0);
    CHECK(strtok_r(NULL, ",;", &state) == NULL);
    char* rest = strcpy(other, "x:y");
    CHECK(strcmp(strsep(&rest, ":"), "x") == 0 && rest == other + 2);
    memmove(at + 1, at, 20);
    CHECK(strcmp(at, "tthe quick brown fox") == 0);
    memmove(at, at + 1, 20);
    CHECK(strcmp(at, "the quick brown fox") == 0);
  }
  // Long overlapping moves, both ways.
  for (size_t i = 0; i < 60000; ++i) a[i] = (char)(i % 251);
  memmove(a + 4097, a, 50000);
  for (size_t i = 0; i < 50000; ++i) CHECK(a[4097 + i] == (char)(i % 251));
  memmove(a + 5, a + 4097, 50000);
  for (size_t i = 0; i < 50000; ++i) CHECK(a[5 + i] == (char)(i % 251));
  free(a);
  free(b);
  printf("strings\n");
  return 0;
}
