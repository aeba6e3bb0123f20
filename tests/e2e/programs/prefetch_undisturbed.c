// System calls of a thread last as long as they were asked to, and bring all of what they were asked for, while loads ahead
// of use end that the thread has begun.
// flags: -pthread
// levels: O2
// memory: 3M
// pages: 4K
// chaos: 0
// expect: cache.prefetches>=300
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "e2e.h"

enum { kBytes = 32 << 20, kPart = 256 << 10, kParts = kBytes / kPart, kRounds = 400, kMessage = 6000 };

static int ends[2];

static void* send_in_halves(void* unused) {
  static const char kText[kMessage] = "x";
  for (int i = 0; i < 2 * kRounds; ++i) {
    CHECK(send(ends[0], kText, kMessage / 2, 0) == kMessage / 2);
    usleep(500);
  }
  return unused;
}

int main(void) {
  char* data = aligned_alloc(4096, kBytes);
  CHECK_SPILLED(data);
  for (int i = 0; i < kBytes; i += 64) data[i] = (char)(i >> 12);
  const int events = epoll_create1(0);
  CHECK(events >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  int cut_waits = 0, cut_messages = 0;
  pthread_t sender;
  for (int kind = 0; kind < 2; ++kind) {
    if (kind == 1) CHECK(pthread_create(&sender, NULL, send_in_halves, NULL) == 0);
    for (int i = 0; i < kRounds; ++i) {
      CHECK(madvise(data + (size_t)(i * 37 % kParts) * kPart, kPart, MADV_WILLNEED) == 0);
      struct epoll_event event;
      static char message[kMessage];
      if (kind == 0)
        cut_waits += epoll_wait(events, &event, 1, 1) != 0;
      else
        cut_messages += recv(ends[1], message, kMessage, MSG_WAITALL) != kMessage;
    }
  }
  if (cut_messages == 0) CHECK(pthread_join(sender, NULL) == 0);
  for (int i = 0; i < kBytes; i += 4096) CHECK(data[i] == (char)(i >> 12));
  printf("%d waits and %d messages were cut short\n", cut_waits, cut_messages);
  return 0;
}
