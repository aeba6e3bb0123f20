// flags: -pthread
// expect: cache.evictions>=100
//
// Lookups that end later, with requests, names and lists in spilled memory; and timers that call the program in threads, in
// which the C library has blocked all signals.
#define _GNU_SOURCE
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "e2e.h"

enum { kWords = 1 << 18, kRequests = 40 };
static int* words;
static int told, timed;

static int sum_of(int from) {
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum += words[(from + i * 4099) % kWords];
  return sum;
}
static void tell(union sigval value) {
  __atomic_store_n(&told, value.sival_int + (sum_of(7) == 8 * 3), __ATOMIC_SEQ_CST);
}
static void on_time(union sigval value) {
  int* cell = value.sival_ptr;
  const int right = sum_of(*cell) == 8 * 3;
  __atomic_fetch_add(&timed, right ? 1 : 1000000, __ATOMIC_SEQ_CST);
}

static int ticks;
static void on_tick(int number) { ticks += number == SIGALRM; }

static void await(const int* word, int value) {
  for (int i = 0; i < 20000 && __atomic_load_n(word, __ATOMIC_SEQ_CST) < value; ++i) usleep(1000);
}

static struct gaicb** make_requests(void) {
  struct gaicb** list = malloc((kRequests + 1) * sizeof *list);
  for (int i = 0; i < kRequests; ++i) {
    list[i] = calloc(1, sizeof **list);
    char name[32];
    snprintf(name, sizeof name, i % 5 == 4 ? "no address %d" : "127.0.0.%d", i + 1);
    list[i]->ar_name = strdup(name);
    struct addrinfo* hints = calloc(1, sizeof *hints);
    hints->ai_flags = AI_NUMERICHOST;
    hints->ai_socktype = SOCK_STREAM;
    list[i]->ar_request = hints;
  }
  list[kRequests] = NULL;
  return list;
}
static void show(struct gaicb** list) {
  for (int i = 0; i < kRequests; ++i) {
    const int error = gai_error(list[i]);
    char text[64] = "none";
    if (error == 0)
      getnameinfo(list[i]->ar_result->ai_addr, list[i]->ar_result->ai_addrlen, text, sizeof text, NULL, 0,
                  NI_NUMERICHOST);
    printf("%d %s %d\n", error, text, list[i]->ar_result != NULL);
    if (list[i]->ar_result != NULL) freeaddrinfo(list[i]->ar_result);
    // The C library's worker keeps a request it has answered on its list for a moment.
    const int cancelled = gai_cancel(list[i]);
    CHECK(cancelled == EAI_ALLDONE || cancelled == EAI_NOTCANCELED);
  }
}

int main(void) {
  words = malloc(kWords * sizeof *words);
  CHECK_SPILLED(words);
  for (int i = 0; i < kWords; ++i) words[i] = 3;

  struct gaicb** list = make_requests();
  printf("%d\n", getaddrinfo_a(GAI_WAIT, list, kRequests + 1, NULL));
  show(list);

  // Signals do not end the wait.
  struct sigaction tick = {.sa_handler = on_tick};
  const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  CHECK(sigaction(SIGALRM, &tick, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
  for (int round = 0; round < 1000 && (round < 20 || ticks < 20); ++round) {
    list = make_requests();
    CHECK(getaddrinfo_a(GAI_WAIT, list, kRequests, NULL) == 0);
    for (int i = 0; i < kRequests; ++i) CHECK(gai_error(list[i]) == (i % 5 == 4 ? EAI_NONAME : 0));
  }
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);

  list = make_requests();
  struct sigevent* event = calloc(1, sizeof *event);
  event->sigev_notify = SIGEV_THREAD;
  event->sigev_notify_function = tell;
  event->sigev_value.sival_int = 5;
  CHECK(getaddrinfo_a(GAI_NOWAIT, list, kRequests, event) == 0);
  await(&told, 5);
  CHECK(told == 6);
  show(list);

  list = make_requests();
  event->sigev_notify = SIGEV_NONE;
  CHECK(getaddrinfo_a(GAI_NOWAIT, list, kRequests, event) == 0);
  const struct timespec long_time = {60, 0};
  // The C library's gai_suspend leaves its stack frame on the list of a request that ends just then.
  if (runs_spilled())
    for (int result = 0; result == 0;) {
      result = gai_suspend((const struct gaicb* const*)list, kRequests, &long_time);
      CHECK(result == 0 || result == EAI_ALLDONE);
    }
  else
    for (int i = 0; i < kRequests; ++i)
      while (gai_error(list[i]) == EAI_INPROGRESS) usleep(1000);
  show(list);
  CHECK(getaddrinfo_a(7, list, 1, NULL) == EAI_SYSTEM && errno == EINVAL);
  CHECK(getaddrinfo_a(GAI_WAIT, NULL, 0, NULL) == 0);

  // The same function and different values, attributes of the program's own in one of them.
  pthread_attr_t* attributes = malloc(sizeof *attributes);
  pthread_attr_init(attributes);
  pthread_attr_setstacksize(attributes, 1 << 20);
  timer_t* timers = malloc(3 * sizeof *timers);
  for (int i = 0; i < 3; ++i) {
    int* cell = malloc(sizeof *cell);
    *cell = i * 1000;
    event->sigev_notify = SIGEV_THREAD;
    event->sigev_notify_function = on_time;
    event->sigev_value.sival_ptr = cell;
    event->sigev_notify_attributes = i == 1 ? attributes : NULL;
    CHECK(timer_create(CLOCK_MONOTONIC, event, &timers[i]) == 0);
    struct itimerspec* often = calloc(1, sizeof *often);
    often->it_value.tv_nsec = often->it_interval.tv_nsec = 50000000;
    CHECK(timer_settime(timers[i], 0, often, NULL) == 0);
  }
  await(&timed, 12);
  for (int i = 0; i < 3; ++i) CHECK(timer_delete(timers[i]) == 0);
  CHECK(timed >= 12 && timed < 1000000);
  pthread_attr_destroy(attributes);
  CHECK(timer_create(CLOCK_MONOTONIC, NULL, timers) == 0 && timer_delete(timers[0]) == 0);
  return 0;
}
