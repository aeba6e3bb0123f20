// What belongs to a process: its configuration, forks, threads that end, signals, its end.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "persist_test.h"

#if defined(__SANITIZE_THREAD__) || (defined(__has_feature) && __has_feature(thread_sanitizer))
enum { kThreadSanitizer = 1 };
#else
enum { kThreadSanitizer = 0 };
#endif
enum { kBytes = 1 << 16 };

// A child of fork goes on with its parent's domains; both see what is in the file.
static void forks(const char *folder) {
  const char *const path = path_in(folder, "file");
  const char *const kinds[] = {"file", "dram"};
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < 2; ++i) {
      // Under the thread sanitizer, a child of a process with threads cannot start threads.
      CHECK_OK(spillway_persist_set_policy(i == 0 || kThreadSanitizer ? "epoch" : "decoupled"));
      char *const memory = map_new(path, kBytes, kinds[k]);
      memory[0] = 'p';
      spillway_persist_flush(memory, kBytes);
      const pid_t child = fork();
      if (child == 0) {
        for (int round = 0; round < 100; ++round) {
          memory[64 * round + 1] = 'c';
          for (int again = 0; again < 3; ++again) spillway_persist_flush(memory + 64 * round, 2);
          CHECK_OK(spillway_persist_fence());
        }
        if (k == 0) CHECK(dirty_bytes(path) == 0);
        if (!kThreadSanitizer) CHECK_OK(spillway_persist_set_policy("decoupled"));
        CHECK_OK(spillway_persist(memory, kBytes));
        CHECK_OK(spillway_persist_unmap(memory));
        _exit(0);
      }
      int status = 1;
      CHECK(waitpid(child, &status, 0) == child && status == 0);
      CHECK(memory[0] == 'p' && memory[64 * 99 + 1] == 'c');
      CHECK_OK(spillway_persist(memory, kBytes));
      CHECK_OK(spillway_persist_unmap(memory));
    }
  unlink(path);
}

static char *shared;

static void *flush_and_end(void *policy) {
  CHECK_OK(spillway_persist_set_policy(policy));
  for (int i = 0; i < 200; ++i) {
    shared[i % 60 * 1000] = (char)i;
    spillway_persist_flush(shared + i % 60 * 1000, 1);
  }
  return NULL;
}

// A thread that ends fences the lines that wait for its fence.
static void threads_that_end(const char *folder) {
  char *const policies[] = {"epoch", "decoupled", "auto"};
  const char *const path = path_in(folder, "file");
  shared = map_new(path, kBytes, "file");
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, flush_and_end, policies[i]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(dirty_bytes(path) == 0);
    CHECK(statistic("fences") == (uint64_t)i + 1);
  }
  CHECK_OK(spillway_persist_unmap(shared));
  unlink(path);
}

// Another thread unmaps the file before the fence.
static void *unmap_it(void *memory) {
  CHECK_OK(spillway_persist_unmap(memory));
  return NULL;
}
static void mappings_that_go(const char *folder) {
  const char *const path = path_in(folder, "file");
  const char *const kinds[] = {"file", "dram"};
  CHECK_OK(spillway_persist_set_policy("epoch"));
  for (int round = 0; round < 20; ++round) {
    char *const memory = map_new(path, kBytes, kinds[round % 2]);
    for (int i = 0; i < 3; ++i) {
      memory[4096 * i * 3] = 'z';
      spillway_persist_flush(memory + 4096 * i * 3, 64);
      spillway_persist_flush(memory + 4096 * i * 3, 64);
    }
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, unmap_it, memory) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(spillway_persist_fence());
    const int file = open(path, O_RDONLY);
    char last = 0;
    CHECK(pread(file, &last, 1, 4096 * 6) == 1 && last == 'z');
    close(file);
  }
  unlink(path);
}

static char *handled[2];
static volatile sig_atomic_t handler_count, handler_failures;

static void handle(int signal) {
  (void)signal;
  char *const memory = handled[handler_count % 2];
  ++handler_count;
  if (memory == NULL) return;
  ++memory[64 * (handler_count % 16)];
  spillway_persist_flush(memory, 1024);
  if (handler_count % 3 != 0 && spillway_persist_fence() != SPILLWAY_PERSIST_OK) handler_failures = 1;
}

// Handlers that flush and fence, whatever they interrupt: the runtime's start, calls that change domains, forks, statistics.
static void signals(const char *folder) {
  handled[0] = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  handled[1] = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  const struct itimerval often = {{0, 150}, {0, 150}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  CHECK_OK(spillway_persist_add(handled[0], kBytes, "dram", -1));
  char *const own = map_new(path_in(folder, "file"), kBytes, "dram");
  for (int round = 0; handler_count < 2000; ++round) {
    CHECK_OK(spillway_persist_add(handled[1], kBytes, round % 2 == 0 ? "flush_on_fail" : "dram", -1));
    for (int i = 0; i < 300; ++i) {
      own[64 * (i % 50)] = (char)round;
      spillway_persist_flush(own + 64 * (i % 50), 1);
      if (i % 100 == 0) CHECK_OK(spillway_persist_fence());
    }
    CHECK(statistic("fences") > 0);
    CHECK_OK(spillway_persist_remove(handled[1], kBytes));
    if (round % 100 == 0 && !kThreadSanitizer) {
      const pid_t child = fork();
      if (child == 0) _exit(spillway_persist(own, 64) == SPILLWAY_PERSIST_OK ? 0 : 1);
      int status = 1;
      CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  CHECK(handler_failures == 0);
  CHECK_OK(spillway_persist_unmap(own));
  unlink(path_in(folder, "file"));
}

// What handlers flush in a file is written, whether they fence or the code that they interrupted.
static void signals_and_files(const char *folder) {
  const char *const path = path_in(folder, "file");
  handled[0] = handled[1] = map_new(path, kBytes, "file");
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  for (int i = 0; i < 30; ++i) {
    raise(SIGUSR1);
    if (handler_count % 3 == 0) CHECK_OK(spillway_persist_fence());
    CHECK(dirty_bytes(path) == 0);
  }
  CHECK(handler_failures == 0);
  CHECK_OK(spillway_persist_unmap(handled[0]));
  unlink(path);
}

static const spillway_persist_options kOptions = {.struct_bytes = sizeof kOptions, .policy = "epoch"};

static void configured(const char *folder) {
  spillway_persist_options options = kOptions;
  char stats[4200];
  strcpy(stats, path_in(folder, "stats-%p"));
  options.stats = stats;
  options.flushers = "1-2";
  options.instruction = "clflush";
  CHECK_OK(spillway_persist_configure(&options));
  strcpy(stats, "overwritten");
  char text[4096];
  CHECK_OK(spillway_persist_stats(text, sizeof text, NULL));
  CHECK(strstr(text, "\"instruction\": \"clflush\", \"policy\": \"epoch\"") != NULL);
  spillway_persist_flush(text, 64);
  CHECK_REFUSED(spillway_persist_configure(&options), SPILLWAY_PERSIST_IN_USE, "has started already");
}

// The process's statistics, written at its end.
static void the_end(const char *folder) {
  CHECK(in_child(configured, folder) == 0);
  char command[9000], line[4096];
  CHECK(snprintf(command, sizeof command, "cat %s/stats-*", folder) < (int)sizeof command);
  FILE *const written = popen(command, "r");
  CHECK(written != NULL && fgets(line, sizeof line, written) != NULL);
  CHECK(strncmp(line, "{\"persist\": {\"asked_lines\": ", 28) == 0 && strstr(line, "\"fences\": 1,") != NULL);
  pclose(written);
  CHECK(snprintf(command, sizeof command, "rm %s/stats-*", folder) < (int)sizeof command);
  CHECK(system(command) == 0);
}

// Headers of other versions: an older one's struct is shorter, a newer one's longer.
static void older(const char *folder) {
  (void)folder;
  spillway_persist_options options = {.struct_bytes = offsetof(spillway_persist_options, instruction),
                                      .policy = "inline",
                                      .instruction = "not read"};
  CHECK_OK(spillway_persist_configure(&options));
}
static void newer(const char *folder) {
  (void)folder;
  struct {
    spillway_persist_options known;
    uint64_t more;
  } later = {kOptions, 1};
  later.known.struct_bytes = sizeof later;
  CHECK_REFUSED(spillway_persist_configure(&later.known), SPILLWAY_PERSIST_INVALID, "does not know");
  later.more = 0;
  CHECK_OK(spillway_persist_configure(&later.known));
}
static void by_default(const char *folder) {
  (void)folder;
  setenv("SPILLWAY_PERSIST_POLICY", "nonsense", 1);  // not read, since the program configures itself
  CHECK_OK(spillway_persist_configure(NULL));
  CHECK(statistic("asked_lines") == 0);
}
static void after_a_flush(const char *folder) {
  spillway_persist_flush(folder, 1);
  CHECK_REFUSED(spillway_persist_configure(&kOptions), SPILLWAY_PERSIST_IN_USE,
                "before anything is flushed or mapped");
}
static void from_environment(const char *folder) {
  (void)folder;
  setenv("SPILLWAY_PERSIST_POLICY", "decoupled", 1);
  char text[4096];
  CHECK_OK(spillway_persist_stats(text, sizeof text, NULL));
  CHECK(strstr(text, "\"policy\": \"decoupled\"") != NULL);
}
static void wrong_environment(const char *folder) {
  setenv("SPILLWAY_PERSIST_FLUSHERS", "many", 1);
  CHECK(freopen("/dev/null", "w", stderr) != NULL);
  spillway_persist_flush(folder, 1);
}
// When changed bytes are counted, every flush is seen, and no thread has a policy.
static void observed(const char *folder) {
  (void)folder;
  static _Alignas(4096) char memory[8192];
  setenv("SPILLWAY_PERSIST_DIRTINESS", "1", 1);
  CHECK_OK(spillway_persist_add(memory, sizeof memory, "dram", -1));
  CHECK_REFUSED(spillway_persist_set_policy("epoch"), SPILLWAY_PERSIST_IN_USE, "observed");
  memset(memory, 1, 32);
  CHECK_OK(spillway_persist(memory, 128));
  CHECK(statistic("clean_lines") == 1 && statistic("dirty_bytes") == 32);
}

// A domain that was found by a flush is not in the way of one that the program adds later.
static void found(const char *folder) {
  setenv("SPILLWAY_PERSIST_DOMAIN", "file", 1);
  static _Alignas(4096) char memory[4096];  // in no domain
  spillway_persist_flush(memory, 64);
  CHECK(statistic("domains") == 1);
  CHECK_OK(spillway_persist_add(memory, sizeof memory, "dram", -1));
  CHECK(statistic("domains") == 1);
  CHECK_OK(spillway_persist_remove(memory, sizeof memory));
  // A file's mapping that ends without being announced, and another one in its place.
  const char *const path = path_in(folder, "file");
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(file >= 0 && ftruncate(file, kBytes) == 0);
  char *const mapped = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK_OK(spillway_persist(mapped, 64));
  CHECK(statistic("domains") == 1);
  CHECK(munmap(mapped, kBytes) == 0 && close(file) == 0);
  char *const own = map_new(path, kBytes, "file");
  CHECK(own == mapped);
  own[0] = 'x';
  CHECK_OK(spillway_persist(own, 1));
  CHECK(dirty_bytes(path) == 0 && statistic("noted_lines") == 2 && statistic("domains") == 1);
  CHECK_OK(spillway_persist_unmap(own));
  unlink(path);
}

// A program that configures itself does not undo what whoever runs it has asked to be observed.
static void configured_and_observed(const char *folder) {
  (void)folder;
  setenv("SPILLWAY_PERSIST_NOTHING", "1", 1);
  CHECK_REFUSED(spillway_persist_configure(&kOptions), SPILLWAY_PERSIST_INVALID, "there is no such option");
  unsetenv("SPILLWAY_PERSIST_NOTHING");
  setenv("SPILLWAY_PERSIST_DIRTINESS", "1", 1);
  CHECK_OK(spillway_persist_configure(&kOptions));
  CHECK_REFUSED(spillway_persist_set_policy("inline"), SPILLWAY_PERSIST_IN_USE, "observed");
}

void test_process(const char *folder) {
  void (*const all[])(const char *) = {forks,
                                       threads_that_end,
                                       mappings_that_go,
                                       signals,
                                       signals_and_files,
                                       the_end,
                                       older,
                                       newer,
                                       by_default,
                                       after_a_flush,
                                       from_environment,
                                       observed,
                                       found,
                                       configured_and_observed};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) CHECK(in_child(all[i], folder) == 0);
  CHECK(in_child(wrong_environment, folder) == 2);
}
