#include "storage/spdk/environment.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spdk/env.h>
#include <spdk/log.h>
#include <spdk/nvme.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <deque>
#include <list>
#include <mutex>

#include "storage/spdk/descriptors.h"

namespace storage::spdk {
namespace {

constexpr uint64_t kPollNs = 100'000'000;
// How much memory SPDK gets. Plain memory is taken from the system as it is used.
constexpr uint64_t kMinHugeBytes = uint64_t{64} << 20;
constexpr int kPlainMebibytes = 512;

// Leaked: threads may still use it when the process exits.
struct Control {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  std::deque<std::function<void()>> jobs;
  std::list<std::function<bool()>> polls;  // used by the thread only
  pthread_t thread = {};
  // The first error that SPDK has logged since the job began; used by the thread only.
  char said[sizeof SpdkError::reason] = {};
  int environment_error = 0;
};
Control* control = nullptr;
std::mutex start_mutex;

class Locked {
 public:
  Locked() { pthread_mutex_lock(&control->mutex); }
  ~Locked() { pthread_mutex_unlock(&control->mutex); }
};

// Receives what SPDK logs. Nothing is printed: what matters becomes part of the errors.
void keep_first_error(int level, const char*, int, const char*, const char* format, va_list arguments) {
  if (level != SPDK_LOG_ERROR || !pthread_equal(pthread_self(), control->thread) || control->said[0] != 0)
    return;
  char text[600];
  vsnprintf(text, sizeof text, format, arguments);
  // Messages about controllers and queues begin with "[host,subsystem,address,...][state] ", which the user knows.
  const char* what = text;
  while (*what == '[' && strchr(what, ']') != nullptr) {
    what = strchr(what, ']') + 1;
    while (*what == ' ') ++what;
  }
  snprintf(control->said, sizeof control->said, "%s", what);
  control->said[strcspn(control->said, "\n")] = 0;
}

// How much memory free huge pages have now.
uint64_t free_huge_bytes() {
  FILE* file = fopen("/proc/meminfo", "re");
  if (file == nullptr) return 0;
  uint64_t count = 0, kibibytes = 0;
  char line[128];
  while (fgets(line, sizeof line, file) != nullptr) {
    sscanf(line, "HugePages_Free: %lu", &count);
    sscanf(line, "Hugepagesize: %lu", &kibibytes);
  }
  fclose(file);
  return count * (kibibytes << 10);
}

int initialise() {
  // spdk_env_init pins the thread to one CPU. (A cpu_set_t has 1,024 CPUs.)
  unsigned long before[128] = {};
  const long before_bytes = syscall(SYS_sched_getaffinity, 0, sizeof before, before);
  // Otherwise OpenSSL would clean up when the process exits, on one of the program's threads.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  spdk_log_open(keep_first_error);
  spdk_log_set_print_level(SPDK_LOG_DISABLED);
  spdk_log_set_level(SPDK_LOG_ERROR);
  // One logical core for DPDK, on a processor that this process may use.
  char cores[32];
  snprintf(cores, sizeof cores, "0@%d", sched_getcpu());
  char arguments[] = "--log-level=*:1";
  spdk_env_opts options = {};
  options.opts_size = sizeof options;
  spdk_env_opts_init(&options);
  options.name = "spillway";
  options.core_mask = nullptr;
  options.lcore_map = cores;
  options.env_context = arguments;
  options.no_huge = free_huge_bytes() < kMinHugeBytes;
  if (options.no_huge) options.mem_size = kPlainMebibytes;
  const int result = spdk_env_init(&options);
  if (before_bytes > 0) syscall(SYS_sched_setaffinity, 0, before_bytes, before);
  return result < 0 ? -result : 0;
}

void* run_control(void*) {
  pthread_setname_np(pthread_self(), "spillway-spdk");
  control->thread = pthread_self();
  while (true) {
    std::function<void()> job;
    {
      Locked locked;
      if (control->jobs.empty()) {
        timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += kPollNs;
        if (until.tv_nsec >= 1'000'000'000) until.tv_nsec -= 1'000'000'000, ++until.tv_sec;
        pthread_cond_clockwait(&control->changed, &control->mutex, CLOCK_MONOTONIC, &until);
      }
      if (!control->jobs.empty()) {
        job = std::move(control->jobs.front());
        control->jobs.pop_front();
      }
    }
    control->said[0] = 0;
    if (job) job();
    control->polls.remove_if([](const auto& poll) { return !poll(); });
  }
  return nullptr;
}

int start_thread() {
  // The new thread inherits this one's signal mask.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const int result = pthread_create(&control->thread, &attributes, run_control, nullptr);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

// Has the control thread run the job, without waiting for it.
void post_to_control(std::function<void()> job) {
  Locked locked;
  control->jobs.push_back(std::move(job));
  pthread_cond_broadcast(&control->changed);
}

}  // namespace

int start_environment(const SpdkHost& host, SpdkError& error) {
  std::lock_guard<std::mutex> guard(start_mutex);
  if (control == nullptr) {
    use_host(host);
    control = new Control;
    if (const int failed = start_thread(); failed != 0) {
      delete control;
      control = nullptr;
      error.number = failed;
      snprintf(error.reason, sizeof error.reason, "no thread for it");
      return failed;
    }
    run_on_control([&] { error.number = control->environment_error = initialise(); }, &error);
  }
  if (control->environment_error == 0) return 0;
  error.number = control->environment_error;
  if (error.reason[0] == 0) snprintf(error.reason, sizeof error.reason, "SPDK's environment does not start");
  return error.number;
}

void run_on_control(const std::function<void()>& job, SpdkError* error) {
  bool done = false;
  post_to_control([&] {
    job();
    if (error != nullptr && error->number != 0 && error->reason[0] == 0)
      snprintf(error->reason, sizeof error->reason, "%s", control->said);
    Locked locked;
    done = true;
    pthread_cond_broadcast(&control->changed);
  });
  Locked locked;
  while (!done) pthread_cond_wait(&control->changed, &control->mutex);
}

void poll_on_control(std::function<bool()> poll) {
  post_to_control([poll = std::move(poll)] { control->polls.push_back(poll); });
}

NoCancellation::NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_); }
NoCancellation::~NoCancellation() { pthread_setcancelstate(state_, nullptr); }

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The library is linked with --wrap for this function, which SPDK calls from a destructor: when a process exits, its threads still run, and
// would lose their memory.
extern "C" int __wrap_rte_eal_cleanup() { return 0; }

}  // namespace storage::spdk
