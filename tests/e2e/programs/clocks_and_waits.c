// Clocks, calendars and timers; what waits until a time by one of several clocks, or for signals, children and connections; limits, and how programs
// are started: functions that kernel_calls.c does not have. Structures are spilled, and cross the end of a page.
// flags: -pthread
// levels: O2
// pages: 4K 16K
// chaos: 1
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "call_arguments.h"

extern char** environ;

static void calendars(void) {
  time_t* when = NEW(time_t);
  *when = 1000000000;
  struct tm* there = NEW(struct tm);
  char* shown = zeros(26);
  fputs(asctime(gmtime(when)), stdout);
  fputs(ctime(when), stdout);
  CHECK(ctime_r(when, shown) == shown && localtime_r(when, there) == there && mktime(there) == *when);
  fputs(shown, stdout);
  *there = *localtime(when);
  fputs(asctime(there), stdout);
  there->tm_mday += 60;  // no day of a month, as yet
  CHECK(timelocal(there) > *when && there->tm_mday <= 31);
  fputs(asctime(there), stdout);
}

// In seconds from now.
static struct timespec* in(clockid_t clock, int seconds) {
  struct timespec* until = NEW(struct timespec);
  CHECK(clock_gettime(clock, until) == 0);
  until->tv_sec += seconds;
  return until;
}
static struct timespec* soon(clockid_t clock) {
  struct timespec* until = in(clock, 0);
  until->tv_nsec += 2000000;
  until->tv_sec += until->tv_nsec / 1000000000;
  until->tv_nsec %= 1000000000;
  return until;
}

static void clocks(void) {
  struct timeval* now = NEW(struct timeval);
  struct timezone* zone = NEW(struct timezone);
  CHECK(gettimeofday(now, zone) == 0 && now->tv_sec > 1000000000 && now->tv_usec < 1000000);
  struct timespec* time_ = NEW(struct timespec);
  CHECK(clock_getres(CLOCK_MONOTONIC, time_) == 0 && time_->tv_sec == 0 && time_->tv_nsec > 0);
  CHECK(timespec_get(time_, TIME_UTC) == TIME_UTC && time_->tv_sec >= now->tv_sec);
  CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, soon(CLOCK_MONOTONIC), NULL) == 0);
  *time_ = (struct timespec){0, 1000000};
  CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, time_, time_) == 0);
  struct timex* state = NEW(struct timex);
  CHECK(clock_adjtime(CLOCK_REALTIME, state) >= 0 && state->tick > 0);
  // No clock is set by these. A container may forbid to try.
  CHECK(clock_settime(CLOCK_MONOTONIC, time_) == -1 && (errno == EINVAL || errno == EPERM));
  *now = (struct timeval){1, 2000000};
  CHECK(settimeofday(now, NULL) == -1 && errno == EINVAL);
}

static void timers(void) {
  struct itimerval *set = NEW(struct itimerval), *left = NEW(struct itimerval);
  set->it_value.tv_sec = 1000;
  set->it_interval.tv_sec = 7;
  CHECK(setitimer(ITIMER_VIRTUAL, set, NULL) == 0 && getitimer(ITIMER_VIRTUAL, left) == 0);
  CHECK(left->it_value.tv_sec >= 990 && left->it_interval.tv_sec == 7);
  CHECK(setitimer(ITIMER_VIRTUAL, memset(set, 0, sizeof *set), NULL) == 0);
  struct itimerspec *until = NEW(struct itimerspec), *rest = NEW(struct itimerspec);
  until->it_value.tv_sec = 1000;
  until->it_interval.tv_sec = 9;
  struct sigevent* silent = NEW(struct sigevent);
  silent->sigev_notify = SIGEV_NONE;
  timer_t* timer = NEW(timer_t);
  CHECK(timer_create(CLOCK_MONOTONIC, silent, timer) == 0 && timer_settime(*timer, 0, until, NULL) == 0);
  CHECK(timer_gettime(*timer, rest) == 0 && rest->it_value.tv_sec >= 990 && rest->it_interval.tv_sec == 9);
  CHECK(timer_delete(*timer) == 0);
  const int descriptor = timerfd_create(CLOCK_MONOTONIC, 0);
  memset(rest, 0, sizeof *rest);
  CHECK(descriptor >= 0 && timerfd_settime(descriptor, 0, until, NULL) == 0 &&
        timerfd_gettime(descriptor, rest) == 0);
  CHECK(rest->it_value.tv_sec >= 990 && rest->it_interval.tv_sec == 9 && close(descriptor) == 0);
}

static void* result_of(void* result) {
  usleep(1000);
  return result;
}
static void* post_later(void* semaphore) {
  usleep(1000);
  CHECK(sem_post(semaphore) == 0);
  return NULL;
}
static void count_up(void* number) { ++*(int*)number; }
static pthread_rwlock_t* lock;
static void* wait_for_lock(void* unused) {
  (void)unused;
  CHECK(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)) == ETIMEDOUT);
  CHECK(pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, soon(CLOCK_REALTIME)) == ETIMEDOUT);
  return lock;
}
static void threads(void) {
  pthread_t thread;
  void** result = NEW(void*);
  char* name = zeros(16);
  CHECK(pthread_setname_np(pthread_self(), text("renamed")) == 0 &&
        pthread_getname_np(pthread_self(), name, 16) == 0);
  CHECK(strcmp(name, "renamed") == 0);
  CHECK(pthread_create(&thread, NULL, result_of, name) == 0);
  CHECK(pthread_clockjoin_np(thread, result, CLOCK_MONOTONIC, in(CLOCK_MONOTONIC, 50)) == 0 &&
        *result == name);
  int* number = NEW(int);
  pthread_cleanup_push_defer_np(count_up, number);
  CHECK(*number == 0);
  pthread_cleanup_pop_restore_np(1);
  CHECK(*number == 1);
  lock = NEW(pthread_rwlock_t);
  CHECK(pthread_rwlock_init(lock, NULL) == 0 && pthread_rwlock_wrlock(lock) == 0);
  CHECK(pthread_create(&thread, NULL, wait_for_lock, NULL) == 0 && pthread_join(thread, result) == 0 &&
        *result == lock);
  CHECK(pthread_rwlock_unlock(lock) == 0);
  CHECK(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, in(CLOCK_MONOTONIC, 50)) == 0 &&
        pthread_rwlock_unlock(lock) == 0);
  CHECK(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, in(CLOCK_MONOTONIC, 50)) == 0 &&
        pthread_rwlock_unlock(lock) == 0);
  CHECK(pthread_rwlock_destroy(lock) == 0);
  sem_t* semaphore = NEW(sem_t);
  CHECK(sem_init(semaphore, 0, 0) == 0);
  CHECK(sem_clockwait(semaphore, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)) == -1 && errno == ETIMEDOUT);
  CHECK(sem_post(semaphore) == 0 && sem_clockwait(semaphore, CLOCK_REALTIME, in(CLOCK_REALTIME, 50)) == 0);
  CHECK(pthread_create(&thread, NULL, post_later, semaphore) == 0);
  CHECK(sem_clockwait(semaphore, CLOCK_MONOTONIC, in(CLOCK_MONOTONIC, 50)) == 0);
  CHECK(pthread_join(thread, NULL) == 0 && sem_destroy(semaphore) == 0);
  pthread_spinlock_t* spin = (pthread_spinlock_t*)NEW(pthread_spinlock_t);
  CHECK(pthread_spin_init(spin, 0) == 0 && pthread_spin_trylock(spin) == 0 &&
        pthread_spin_trylock(spin) == EBUSY);
  CHECK(pthread_spin_unlock(spin) == 0 && pthread_spin_destroy(spin) == 0);
  pthread_barrier_t* barrier = NEW(pthread_barrier_t);
  CHECK(pthread_barrier_init(barrier, NULL, 1) == 0 &&
        pthread_barrier_wait(barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
  CHECK(pthread_barrier_destroy(barrier) == 0);
}

// A condition of the kind that its attributes say, and mutexes.
static void attributes(void) {
  pthread_condattr_t* of_condition = NEW(pthread_condattr_t);
  pthread_cond_t* condition = NEW(pthread_cond_t);
  CHECK(pthread_condattr_init(of_condition) == 0 &&
        pthread_condattr_setclock(of_condition, CLOCK_MONOTONIC) == 0);
  CHECK(pthread_cond_init(condition, of_condition) == 0 && pthread_condattr_destroy(of_condition) == 0);
  pthread_mutexattr_t* of_mutex = NEW(pthread_mutexattr_t);
  pthread_mutex_t* mutex = NEW(pthread_mutex_t);
  CHECK(pthread_mutexattr_init(of_mutex) == 0 &&
        pthread_mutexattr_settype(of_mutex, PTHREAD_MUTEX_RECURSIVE) == 0);
  CHECK(pthread_mutex_init(mutex, of_mutex) == 0 && pthread_mutexattr_destroy(of_mutex) == 0);
  CHECK(pthread_mutex_lock(mutex) == 0 && pthread_mutex_lock(mutex) == 0 && pthread_mutex_unlock(mutex) == 0);
  CHECK(pthread_cond_timedwait(condition, mutex, soon(CLOCK_MONOTONIC)) == ETIMEDOUT);
  CHECK(pthread_mutex_unlock(mutex) == 0 && pthread_cond_destroy(condition) == 0 &&
        pthread_mutex_destroy(mutex) == 0);
}

// The C standard's threads: two that take turns, and a third that is told together with them.
enum { kTurns = 50 };
static mtx_t* turns;
static cnd_t *changed, *over;
static int turn, ended;
static int take_turns(void* mine) {
  for (int i = 0; i < kTurns; ++i) {
    CHECK(mtx_lock(turns) == thrd_success);
    while (turn % 2 != *(int*)mine) CHECK(cnd_wait(changed, turns) == thrd_success);
    ++turn;
    CHECK(cnd_signal(changed) == thrd_success && mtx_unlock(turns) == thrd_success);
  }
  CHECK(mtx_lock(turns) == thrd_success);
  while (!ended) CHECK(cnd_wait(over, turns) == thrd_success);
  CHECK(mtx_unlock(turns) == thrd_success);
  return *(int*)mine;
}
static int try_in_vain(void* unused) {
  (void)unused;
  return mtx_timedlock(turns, soon(CLOCK_REALTIME)) == thrd_timedout;
}
static void standard_threads(void) {
  turns = NEW(mtx_t);
  changed = NEW(cnd_t);
  over = NEW(cnd_t);
  CHECK(mtx_init(turns, mtx_timed) == thrd_success && cnd_init(changed) == thrd_success &&
        cnd_init(over) == thrd_success);
  int* numbers = zeros(2 * sizeof *numbers);
  numbers[1] = 1;
  thrd_t all[2], other;
  int result;
  for (int i = 0; i < 2; ++i) CHECK(thrd_create(&all[i], take_turns, &numbers[i]) == thrd_success);
  CHECK(mtx_lock(turns) == thrd_success);
  while (turn < 2 * kTurns) {
    const int now = cnd_timedwait(over, turns, soon(CLOCK_REALTIME));
    CHECK(now == thrd_timedout || now == thrd_success);
  }
  CHECK(thrd_create(&other, try_in_vain, NULL) == thrd_success && thrd_join(other, &result) == thrd_success &&
        result == 1);
  ended = 1;
  CHECK(cnd_broadcast(over) == thrd_success && mtx_unlock(turns) == thrd_success);
  for (int i = 0; i < 2; ++i) CHECK(thrd_join(all[i], &result) == thrd_success && result == i);
  CHECK(mtx_timedlock(turns, in(CLOCK_REALTIME, 50)) == thrd_success && mtx_unlock(turns) == thrd_success);
  cnd_destroy(changed);
  cnd_destroy(over);
  mtx_destroy(turns);
  printf("%d turns\n", turn);
}

static volatile sig_atomic_t handled;
static void handle(int number) { handled = handled * 10 + (number == SIGUSR1 ? 1 : 2); }
static sigjmp_buf* back;
static void leave(int number) {
  handle(number);
  _longjmp(*back, 5);
}
static void signals(void) {
  sigset_t *set = NEW(sigset_t), *none = NEW(sigset_t);
  int* number = NEW(int);
  siginfo_t* info = NEW(siginfo_t);
  CHECK(sigemptyset(set) == 0 && sigaddset(set, SIGUSR1) == 0 && sigprocmask(SIG_BLOCK, set, none) == 0);
  CHECK(raise(SIGUSR1) == 0 && sigwait(set, number) == 0 && *number == SIGUSR1);
  CHECK(raise(SIGUSR1) == 0 && sigwaitinfo(set, info) == SIGUSR1 && info->si_signo == SIGUSR1 &&
        info->si_pid == getpid());
  // Of the mask that it waits with: the handler runs meanwhile.
  CHECK(signal(SIGUSR1, handle) == SIG_DFL && raise(SIGUSR1) == 0);
  const int poller = epoll_create1(0);
  struct epoll_event* events = zeros(2 * sizeof *events);
  CHECK(epoll_pwait(poller, events, 2, 50000, none) == -1 && errno == EINTR && handled == 1);
  int* ends = zeros(8);
  CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
  events[0].events = EPOLLIN;
  events[0].data.u64 = 12345678901;
  CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], events) == 0);
  memset(events, 0, 2 * sizeof *events);
  CHECK(epoll_pwait(poller, events, 2, 50000, none) == 1 && events[0].data.u64 == 12345678901);
  CHECK(close(poller) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
  CHECK(sigprocmask(SIG_SETMASK, none, NULL) == 0);
  // As System V had it: once.
  struct sigaction* now = NEW(struct sigaction);
  CHECK(__sysv_signal(SIGUSR2, handle) == SIG_DFL && raise(SIGUSR2) == 0 && handled == 12);
  CHECK(sigaction(SIGUSR2, NULL, now) == 0 && now->sa_handler == SIG_DFL);
  back = NEW(sigjmp_buf);
  CHECK(__sysv_signal(SIGUSR2, leave) == SIG_DFL);
  if (sigsetjmp(*back, 1) == 0) raise(SIGUSR2);
  CHECK(handled == 122);
}

static void connections(void) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in* here = NEW(struct sockaddr_in);
  socklen_t* length = NEW(socklen_t);
  *length = sizeof *here;
  here->sin_family = AF_INET;
  here->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(listener, (struct sockaddr*)here, sizeof *here) == 0 && listen(listener, 1) == 0);
  CHECK(getsockname(listener, (struct sockaddr*)here, length) == 0);
  CHECK(connect(client, (struct sockaddr*)here, sizeof *here) == 0);
  struct sockaddr_storage* other = NEW(struct sockaddr_storage);
  *length = sizeof *other;
  const int server = accept4(listener, (struct sockaddr*)other, length, SOCK_CLOEXEC);
  CHECK(server >= 0 && *length == sizeof *here && other->ss_family == AF_INET &&
        fcntl(server, F_GETFD) == FD_CLOEXEC);
  CHECK(close(server) == 0 && close(client) == 0 && close(listener) == 0);
}

static void queues(void) {
  char* name = zeros(50);
  sprintf(name, "/spillway-waits-%d", getpid());
  struct mq_attr *wanted = NEW(struct mq_attr), *before = NEW(struct mq_attr);
  wanted->mq_maxmsg = 1;
  wanted->mq_msgsize = 32;
  const mqd_t queue = mq_open(name, O_CREAT | O_RDWR | O_EXCL, 0600, wanted);
  if (queue == (mqd_t)-1) return;  // none are mounted here
  CHECK(mq_unlink(name) == 0);
  char* message = zeros(32);
  unsigned* priority = NEW(unsigned);
  CHECK(mq_timedsend(queue, text("message"), 8, 3, in(CLOCK_REALTIME, 50)) == 0);
  CHECK(mq_timedsend(queue, text("another"), 8, 3, soon(CLOCK_REALTIME)) == -1 && errno == ETIMEDOUT);
  CHECK(mq_timedreceive(queue, message, 32, priority, in(CLOCK_REALTIME, 50)) == 8);
  CHECK(*priority == 3 && strcmp(message, "message") == 0);
  CHECK(mq_timedreceive(queue, message, 32, priority, soon(CLOCK_REALTIME)) == -1 && errno == ETIMEDOUT);
  wanted->mq_flags = O_NONBLOCK;
  CHECK(mq_setattr(queue, wanted, before) == 0 && before->mq_flags == 0 && before->mq_msgsize == 32);
  CHECK(mq_receive(queue, message, 32, NULL) == -1 && errno == EAGAIN && mq_close(queue) == 0);
}

static void limits(void) {
  struct rlimit64 *now = NEW(struct rlimit64), *again = NEW(struct rlimit64);
  CHECK(getrlimit64(RLIMIT_CORE, now) == 0);
  now->rlim_cur = 0;
  CHECK(setrlimit64(RLIMIT_CORE, now) == 0 && prlimit64(0, RLIMIT_CORE, NULL, again) == 0);
  CHECK(again->rlim_cur == 0 && again->rlim_max == now->rlim_max);
  struct sysinfo* system_ = NEW(struct sysinfo);
  CHECK(sysinfo(system_) == 0 && system_->totalram > 0 && system_->mem_unit > 0);
  cpu_set_t *allowed = NEW(cpu_set_t), *after = NEW(cpu_set_t);
  CHECK(sched_getaffinity(0, sizeof *allowed, allowed) == 0 &&
        sched_setaffinity(0, sizeof *allowed, allowed) == 0);
  CHECK(sched_getaffinity(0, sizeof *after, after) == 0 && CPU_EQUAL(allowed, after));
  struct sched_param* parameters = NEW(struct sched_param);
  CHECK(sched_setparam(0, parameters) == 0);
  parameters->sched_priority = 1;
  CHECK(sched_setparam(0, parameters) == -1 && errno == EINVAL);
  CHECK(setenv(text("CLOCKS"), text("a value"), 1) == 0 &&
        strcmp(secure_getenv(text("CLOCKS")), "a value") == 0);
  CHECK(unsetenv(text("CLOCKS")) == 0 && getenv(text("CLOCKS")) == NULL);
  double* loads = zeros(3 * sizeof *loads);
  loads[0] = loads[1] = loads[2] = -1;
  CHECK(getloadavg(loads, 3) == 3 && loads[0] >= 0 && loads[2] >= 0);
  char name[] = "clocks-XXXXXX";
  const int file = mkstemp(name);
  struct flock64* region = NEW(struct flock64);
  *region = (struct flock64){.l_type = F_WRLCK, .l_start = 5, .l_len = 10};
  CHECK(file >= 0 && fcntl64(file, F_SETLK64, region) == 0 && fcntl64(file, F_GETLK64, region) == 0);
  CHECK(region->l_type == F_UNLCK && close(file) == 0 && unlink(name) == 0);
}

static void execute(int by_name) {
  char **arguments = zeros(4 * sizeof *arguments), **environment = zeros(2 * sizeof *environment);
  arguments[0] = text("sh");
  arguments[1] = text("-c");
  arguments[2] = text("exit $CODE");
  environment[0] = text("CODE=23");
  if (by_name)
    execvpe(text("sh"), arguments, environment);
  else
    fexecve(open("/bin/sh", O_RDONLY | O_CLOEXEC), arguments, environment);
  _exit(1);
}
static void children(void) {
  int* status = NEW(int);
  for (int by_name = 0; by_name < 2; ++by_name) {
    struct rusage* usage = NEW(struct rusage);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) execute(by_name);
    const pid_t waited = by_name ? wait4(child, status, 0, usage) : wait3(status, 0, usage);
    CHECK(child > 0 && waited == child && WIFEXITED(*status) && WEXITSTATUS(*status) == 23 &&
          usage->ru_maxrss > 0);
  }
  posix_spawn_file_actions_t* actions = NEW(posix_spawn_file_actions_t);
  char *path = text("clocks.out"), *said = zeros(100), **arguments = zeros(4 * sizeof *arguments);
  arguments[0] = text("echo");
  arguments[1] = text("to a file");
  pid_t* started = NEW(pid_t);
  CHECK(posix_spawn_file_actions_init(actions) == 0);
  CHECK(posix_spawn_file_actions_addopen(actions, 1, path, O_WRONLY | O_CREAT | O_TRUNC, 0600) == 0);
  CHECK(posix_spawnp(started, arguments[0], actions, NULL, arguments, environ) == 0);
  CHECK(posix_spawn_file_actions_destroy(actions) == 0 && waitpid(*started, status, 0) == *started &&
        *status == 0);
  const int file = open(path, O_RDONLY);
  CHECK(file >= 0 && read(file, said, 100) == 10 && strcmp(said, "to a file\n") == 0 && close(file) == 0 &&
        unlink(path) == 0);
}

int main(void) {
  push_out(3 << 20);
  calendars();
  clocks();
  timers();
  threads();
  attributes();
  standard_threads();
  signals();
  connections();
  queues();
  limits();
  children();
  puts("end");
  return 0;
}
