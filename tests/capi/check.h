// Shared by the C tests of all C APIs: checks that end the program with a line. REQUIRES: API(name) is defined as the API's symbol
// of that name, such as spillway_kv_##name.
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)
// Both are evaluated once; `session` may be null.
#define CHECK_STATUS(call, expected, session)                                                   \
  do {                                                                                          \
    const int status_ = (call), expected_ = (expected);                                         \
    if (status_ != expected_) {                                                                 \
      fprintf(stderr, "%s:%d: %s is %d (%s: %s), not %d\n", __FILE__, __LINE__, #call, status_, \
              API(status_text)(status_), API(error_text)(session), expected_);                  \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)
// The call fails with this status, and its line has these words.
#define CHECK_ERROR(call, expected, session, words)                                                         \
  do {                                                                                                      \
    CHECK_STATUS(call, expected, session);                                                                  \
    if (strstr(API(error_text)(session), words) == NULL) {                                                  \
      fprintf(stderr, "%s:%d: no \"%s\" in \"%s\"\n", __FILE__, __LINE__, words, API(error_text)(session)); \
      exit(1);                                                                                              \
    }                                                                                                       \
  } while (0)

// Each status has a text of its own.
static inline void check_status_texts(int least, int most) {
  for (int status = least; status <= most; ++status) {
    CHECK(strcmp(API(status_text)(status), "unknown status") != 0);
    for (int other = least; other < status; ++other)
      CHECK(strcmp(API(status_text)(status), API(status_text)(other)) != 0);
  }
  CHECK(strcmp(API(status_text)(1000), "unknown status") == 0);
}
#endif
