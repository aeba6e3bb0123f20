// System calls by number, through syscall(): one of each shape of those that have a function, those that have none
// or whose numbers do otherwise, masks, and groups of one thread. Structures and buffers are spilled, and cross the end
// of a page.
// levels: O2
// pages: 4K 16K
// chaos: 1
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "call_arguments.h"

// Those that have a function, one of each shape.
static void same(void) {
  char* path = text("numbered");
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_RDWR | O_TRUNC, 0640);
  CHECK(file >= 0);
  char* bytes = text("some bytes");
  CHECK(syscall(SYS_write, file, bytes, 10) == 10);
  CHECK(syscall(SYS_pread64, file, bytes + 100, 10, 0L) == 10 && memcmp(bytes + 100, "some bytes", 10) == 0);
  struct iovec* vector = zeros(2 * sizeof *vector);
  vector[0] = (struct iovec){bytes + 200, 5};
  vector[1] = (struct iovec){bytes + 300, 5};
  CHECK(syscall(SYS_preadv, file, vector, 2, 0L, 0L) == 10 && memcmp(bytes + 300, "bytes", 5) == 0);
  memset(bytes + 200, 0, 200);
  CHECK(syscall(SYS_preadv2, file, vector, 2, 0L, 0L, 0) == 10 && memcmp(bytes + 200, "some ", 5) == 0);
  CHECK(syscall(SYS_pwritev2, file, vector, 2, 10L, 0L, 0) == 10);
  struct stat* status = NEW(struct stat);
  CHECK(syscall(SYS_newfstatat, AT_FDCWD, path, status, 0) == 0 && status->st_size == 20);
  CHECK((status->st_mode & 0777) == (0640 & 0777));
  CHECK(syscall(SYS_fchmodat, AT_FDCWD, path, 0600) == 0 && syscall(SYS_fstat, file, status) == 0);
  CHECK((status->st_mode & 0777) == 0600);
  CHECK(syscall(SYS_faccessat, AT_FDCWD, path, R_OK) == 0);
  CHECK_REACHES(syscall(SYS_faccessat2, AT_FDCWD, path, R_OK, 0));
  struct flock* lock = NEW(struct flock);
  lock->l_type = F_WRLCK;
  CHECK(syscall(SYS_fcntl, file, F_SETLK, lock) == 0);
  CHECK(syscall(SYS_unlink, path) == 0);
  CHECK(syscall(SYS_unlink, path) == -1 && errno == ENOENT);
  struct utsname* name = NEW(struct utsname);
  CHECK(syscall(SYS_uname, name) == 0 && strcmp(name->sysname, "Linux") == 0);
  CHECK(syscall(SYS_getrandom, bytes, 100, 0) == 100);
  struct timespec* now = NEW(struct timespec);
  CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, now) == 0 && now->tv_sec > 1000000000);
  int* ends = zeros(8);
  CHECK(syscall(SYS_pipe2, ends, O_CLOEXEC) == 0 && syscall(SYS_write, ends[1], "x", 1) == 1);
  CHECK(syscall(SYS_gettid) == getpid());
  // Memory of the program's own.
  char* mapped =
      (char*)syscall(SYS_mmap, NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
  CHECK((void*)mapped != MAP_FAILED);
  memset(mapped, 7, 1 << 20);
  mapped = (char*)syscall(SYS_mremap, mapped, 1 << 20, 2 << 20, MREMAP_MAYMOVE);
  CHECK((void*)mapped != MAP_FAILED && mapped[77777] == 7 && mapped[(1 << 20) + 5] == 0);
  CHECK(syscall(SYS_madvise, mapped, 4096, MADV_DONTNEED) == 0 && mapped[7] == 0 && mapped[4096] == 7);
  CHECK(syscall(SYS_munmap, mapped, 2 << 20) == 0);
  mapped = malloc(1 << 20);
  mapped[500000] = 5;
  unsigned char* pages = zeros(256);
  char* aligned = (char*)(((uint64_t)mapped + 500000) & ~4095ul);
  // It may leave between its use and the question, where everything may at any time.
  for (int i = 0; i < 1000 && pages[0] == 0; ++i)
    CHECK(((volatile char*)mapped)[500000] == 5 && mincore(aligned, 4096, pages) == 0);
  CHECK(pages[0] == 1);
  CHECK(mincore(aligned + 1, 4096, pages) == -1 && errno == EINVAL);
  CHECK(posix_madvise(aligned, 4096, POSIX_MADV_DONTNEED) == 0 && mapped[500000] == 5);
  CHECK(posix_madvise(aligned, 4096, POSIX_MADV_SEQUENTIAL) == 0);
  static char plain_pages[8192];
  HIDE(pages);
  CHECK(mincore((void*)(((uint64_t)plain_pages + 4095) & ~4095ul), 4096, pages) == 0);
  close((int)file);
}

// The kernel's, whose header does not go with the C library's.
struct scheduling {
  uint32_t size, policy;
  uint64_t flags;
  uint32_t nice, priority;
  uint64_t times[3];
  uint32_t clamps[2];
};

static void queues(void) {
  struct mq_attr *attributes = NEW(struct mq_attr), *before = NEW(struct mq_attr);
  attributes->mq_maxmsg = 3;
  attributes->mq_msgsize = 100;
  char* name = zeros(100);
  sprintf(name, "numbered-%d", (int)getpid());
  const long queue = syscall(SYS_mq_open, name, (long)(O_CREAT | O_RDWR | O_EXCL), 0600L, attributes);
  CHECK(queue >= 0);
  attributes->mq_flags = O_NONBLOCK;
  CHECK(syscall(SYS_mq_getsetattr, queue, attributes, before) == 0);
  CHECK(before->mq_maxmsg == 3 && before->mq_msgsize == 100 && before->mq_flags == 0);
  CHECK(syscall(SYS_mq_getsetattr, queue, NULL, before) == 0 && before->mq_flags == O_NONBLOCK);
  CHECK(close((int)queue) == 0 && syscall(SYS_mq_unlink, name) == 0);
}

static void administration(void) {
  struct __user_cap_header_struct* header = NEW(struct __user_cap_header_struct);
  header->version = _LINUX_CAPABILITY_VERSION_3;
  struct __user_cap_header_struct plain_header = *header;
  struct __user_cap_data_struct plain_sets[2], *sets = zeros(sizeof plain_sets);
  CHECK(syscall(SYS_capget, &plain_header, plain_sets) == 0);
  CHECK(syscall(SYS_capget, header, sets) == 0 && memcmp(sets, plain_sets, sizeof plain_sets) == 0);
  CHECK(syscall(SYS_capset, header, sets) == 0);
  CHECK_REACHES(syscall(SYS_delete_module, text("no-such-module"), 0L));
  CHECK_REACHES(syscall(SYS_fsconfig, -1L, 1L, text("key"), text("value"), 0L));
  CHECK_REACHES(syscall(SYS_syslog, 3L, zeros(100), 100L));
}

static void by_kernel(void) {
  char* folder = zeros(4000);
  CHECK(syscall(SYS_getcwd, folder, 4000) > 1 && folder[0] == '/');
  cpu_set_t* processors = NEW(cpu_set_t);
  CHECK(syscall(SYS_sched_getaffinity, 0, sizeof *processors, processors) > 0 && CPU_COUNT(processors) > 0);
  struct scheduling* attributes = NEW(struct scheduling);
  CHECK(syscall(SYS_sched_getattr, 0, attributes, sizeof *attributes, 0) == 0 && attributes->size > 0);
  CHECK(syscall(SYS_sched_setattr, 0, attributes, 0) == 0);
  struct perf_event_attr* event = NEW(struct perf_event_attr);
  event->size = sizeof *event;
  event->type = PERF_TYPE_SOFTWARE;
  CHECK_REACHES(syscall(SYS_perf_event_open, event, 0, -1, -1, 0));
  // Without a size it is of the first version, whatever was copied before.
  const int with_size = errno;
  event->size = 0;
  const int nowhere = open("/dev/null", O_WRONLY);
  CHECK(write(nowhere, memset(zeros(200), 0xff, 200), 200) == 200);
  CHECK_REACHES(syscall(SYS_perf_event_open, event, 0, -1, -1, 0));
  CHECK(errno == with_size);
  struct open_how* how = NEW(struct open_how);
  how->flags = O_RDONLY;
  const long file = syscall(SYS_openat2, AT_FDCWD, text("/dev/zero"), how, sizeof *how);
  CHECK(file >= 0 || errno == ENOSYS);
  struct timespec* times = zeros(2 * sizeof *times);
  times[0].tv_sec = times[1].tv_sec = 1000000;
  const long touched = memfd_create("numbered", 0);
  struct stat* status_ = NEW(struct stat);
  CHECK(syscall(SYS_utimensat, touched, NULL, times, 0) == 0);
  CHECK(fstat((int)touched, status_) == 0 && status_->st_mtime == 1000000);
  CHECK(syscall(SYS_utimensat, AT_FDCWD, text("/no/such/file"), times, 0) == -1 && errno == ENOENT);
  CHECK(syscall(SYS_utimensat, touched, NULL, NULL, 0) == 0);
  const long root = open("/", O_RDONLY | O_DIRECTORY);
  char* entries = zeros(3000);
  CHECK(syscall(SYS_getdents, root, entries, 3000L) > 0 && *(unsigned long*)entries != 0);
  CHECK(syscall(SYS_mq_unlink, text("no-such-queue")) == -1 && errno != EFAULT);
  unsigned long *base = NEW(unsigned long), *head = NEW(unsigned long), *head_bytes = NEW(unsigned long);
  CHECK(syscall(SYS_arch_prctl, ARCH_GET_FS, base) == 0 && *base != 0);
  *base = 1;
  CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, base) == 0 && *base == 0);
  CHECK(syscall(SYS_get_robust_list, 0, head, head_bytes) == 0 && *head != 0 && *head_bytes == 24);
  if (runs_spilled()) {
    CHECK(syscall(SYS_set_robust_list, head, 24L) == -1 && errno == ENOTSUP);
    CHECK(syscall(SYS_set_tid_address, NEW(int)) == -1 && errno == ENOTSUP);
  }
  struct io_uring_params* ring = NEW(struct io_uring_params);
  const long made = syscall(SYS_io_uring_setup, 4, ring);
  CHECK(made < 0 ? errno != EFAULT : ring->sq_entries == 4);
  aio_context_t* context = NEW(aio_context_t);
  struct timespec* wait_ = NEW(struct timespec);
  struct io_event* events = zeros(2 * sizeof *events);
  if (syscall(SYS_io_setup, 4, context) == 0) {
    CHECK(syscall(SYS_io_getevents, *context, 0L, 2L, events, wait_) == 0);
    CHECK(syscall(SYS_io_destroy, *context) == 0);
  }
  struct landlock_ruleset_attr* rules = NEW(struct landlock_ruleset_attr);
  rules->handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE;
  CHECK_REACHES(syscall(SYS_landlock_create_ruleset, rules, sizeof *rules, 0));
  CHECK_REACHES(syscall(SYS_add_key, text("user"), text("spillway"), text("payload"), 7L, -1));
  CHECK_REACHES(syscall(SYS_request_key, text("user"), text("spillway"), NULL, -1));
  CHECK_REACHES(syscall(SYS_init_module, zeros(64), 64, text("")));
  CHECK_REACHES(syscall(SYS_finit_module, -1, text(""), 0));
  // Policies of memory nodes: masks whose length is told in bits.
  const long node_bits = 1025;
  int plain_policy, *policy = NEW(int);
  unsigned long plain_nodes[16], *nodes = zeros(sizeof plain_nodes);
  if (syscall(SYS_get_mempolicy, &plain_policy, plain_nodes, node_bits, NULL, 0L) == 0) {
    memset(nodes, 255, sizeof plain_nodes);
    *policy = ~plain_policy;
    CHECK(syscall(SYS_get_mempolicy, policy, nodes, node_bits, NULL, 0L) == 0);
    CHECK(*policy == plain_policy && memcmp(nodes, plain_nodes, sizeof plain_nodes) == 0);
    memset(nodes, 0, sizeof plain_nodes);
  }
  CHECK_REACHES(syscall(SYS_set_mempolicy, 0L, nodes, node_bits));
  CHECK_REACHES(syscall(SYS_mbind, NULL, 0L, 0L, nodes, node_bits, 0L));
  CHECK_REACHES(syscall(SYS_migrate_pages, 0L, node_bits, nodes, nodes));
  struct sigevent* event_ = NEW(struct sigevent);
  event_->sigev_notify = SIGEV_NONE;
  CHECK_REACHES(syscall(SYS_mq_notify, -1L, event_));
  int* ends = zeros(8);
  CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
  struct pollfd* wanted = NEW(struct pollfd);
  *wanted = (struct pollfd){.fd = ends[0], .events = POLLIN};
  sigset_t* mask = NEW(sigset_t);
  sigemptyset(mask);
  sigaddset(mask, SIGUSR2);
  CHECK(syscall(SYS_ppoll, wanted, 1L, wait_, mask, 8L) == 1 && wanted->revents == POLLIN);
  fd_set* set = NEW(fd_set);
  struct timeval* limit = NEW(struct timeval);
  FD_SET(ends[0], set);
  CHECK(syscall(SYS_select, ends[1] + 1, set, NULL, NULL, limit) == 1 && FD_ISSET(ends[0], set));
  FD_SET(ends[1], set);
  const void** mask_ = zeros(16);
  mask_[0] = mask;
  mask_[1] = (void*)8;
  CHECK(syscall(SYS_pselect6, ends[1] + 1, set, NULL, NULL, wait_, mask_) == 1);
  CHECK(FD_ISSET(ends[0], set) && !FD_ISSET(ends[1], set));
  // More descriptors than there is a table for, in a set with nothing behind it.
  char* pages = mmap(NULL, 1 << 17, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED && munmap(pages + (1 << 16), 1 << 16) == 0);
  set = (fd_set*)(pages + (1 << 16)) - 1;
  FD_SET(ends[0], set);
  FD_SET(ends[1], set);
  CHECK(syscall(SYS_pselect6, 1 << 20, set, NULL, NULL, wait_, mask_) == 1);
  CHECK(FD_ISSET(ends[0], set) && !FD_ISSET(ends[1], set));
  const int group = epoll_create1(0);
  struct epoll_event* ready = zeros(4 * sizeof *ready);
  ready->events = EPOLLIN;
  ready->data.u64 = 42;
  CHECK(syscall(SYS_epoll_ctl, group, EPOLL_CTL_ADD, ends[0], ready) == 0);
  ready->data.u64 = 0;
  CHECK(syscall(SYS_epoll_pwait, group, ready, 4, -1, mask, 8L) == 1 && ready->data.u64 == 42);
  CHECK_REACHES(syscall(SYS_epoll_pwait2, group, ready, 4, wait_, mask, 8L));
  sigprocmask(SIG_BLOCK, mask, NULL);
  siginfo_t* info = NEW(siginfo_t);
  info->si_signo = SIGUSR2;
  info->si_code = SI_QUEUE;
  info->si_int = 99;
  CHECK(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR2, info) == 0);
  uint64_t* pending = NEW(uint64_t);
  CHECK(syscall(SYS_rt_sigpending, pending, 8L) == 0 && *pending == 1ul << (SIGUSR2 - 1));
  memset(info, 0, sizeof *info);
  CHECK(syscall(SYS_rt_sigtimedwait, mask, info, wait_, 8L) == SIGUSR2 && info->si_int == 99);
  CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGUSR2, info) == 0);
  CHECK(syscall(SYS_rt_sigtimedwait, mask, info, wait_, 8L) == SIGUSR2);
  CHECK(syscall(SYS_signalfd4, -1, mask, 8L, 0) >= 0);
  int* timer = NEW(int);
  struct itimerspec *when = NEW(struct itimerspec), *old = NEW(struct itimerspec);
  when->it_value.tv_sec = 1000;
  CHECK(syscall(SYS_timer_create, CLOCK_MONOTONIC, event_, timer) == 0);
  CHECK(syscall(SYS_timer_settime, *timer, 0, when, old) == 0);
  CHECK(syscall(SYS_timer_gettime, *timer, old) == 0 && old->it_value.tv_sec >= 998);
  wait_->tv_nsec = 1000;
  CHECK(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, wait_, wait_) == 0);
  uint32_t word = 1;
  CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 1, wait_, NULL, 0) == -1 && errno == ETIMEDOUT);
  // An argument that the operation does not have is whatever was there before.
  char* gone = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK((void*)gone != MAP_FAILED && munmap(gone, 1 << 20) == 0);
  CHECK(syscall(SYS_futex, &word, FUTEX_WAKE, 1, gone) == 0);
  int* status = zeros(4 * 16);
  void** addresses = zeros(2 * sizeof *addresses);
  static char plain[5000] __attribute__((aligned(4096)));
  plain[0] = 1;
  addresses[0] = plain;
  CHECK_REACHES(syscall(SYS_move_pages, 0, 1L, addresses, NULL, status, 0));
  fflush(stdout);
  const long child = fork();
  if (child == 0) {
    struct sock_filter* code = zeros(sizeof *code);
    *code = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0x7fff0000);
    struct sock_fprog* filter = NEW(struct sock_fprog);
    filter->len = 1;
    filter->filter = code;
    CHECK(syscall(SYS_prctl, 38, 1L, 0L, 0L, 0L) == 0);
    CHECK(syscall(SYS_seccomp, 1, 0, filter) == 0 || errno == ENOSYS);
    _exit(5);
  }
  struct rusage* usage = zeros(200);
  CHECK(syscall(SYS_waitid, P_PID, child, info, WEXITED, usage) == 0 && info->si_status == 5);
}

// By number they are the thread's own.
static void* change_groups(void* unused) {
  gid_t* groups = malloc(64 << 10);
  groups[0] = 12345;
  CHECK(syscall(SYS_setgroups, 1L, groups) == 0 || errno == EPERM);
  free(groups);
  return unused;
}
static void groups_of_a_thread(void) {
  pthread_t thread;
  gid_t groups[256] = {0};
  CHECK(pthread_create(&thread, NULL, change_groups, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  const long count = syscall(SYS_getgroups, 256L, groups);
  CHECK(count != 1 || groups[0] != 12345);
}

static char* volatile far_memory;
static volatile int alarms;
static void load_far(int number) {
  (void)number;
  CHECK(foreign_load(far_memory + 5000 * ++alarms) == 7);
}
// What the fault path needs is never blocked, and the program is told that it is.
static void masks(void) {
  far_memory = malloc(1 << 20);
  memset(far_memory, 7, 1 << 20);
  push_out(3 << 20);
  struct sigaction action = {.sa_handler = load_far};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  uint64_t* all = zeros(8);
  uint64_t* old = zeros(8);
  *all = ~(uint64_t)0;
  CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, all, old, 8L) == 0);
  load_far(0);
  CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, old, all, 8L) == 0);
  CHECK((*all >> (SIGSEGV - 1) & 1) && (*all >> (SIGUSR1 - 1) & 1) && !(*old >> (SIGSEGV - 1) & 1));
  CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, old, NULL, 7L) == -1 && errno == EINVAL);
  // Whether memory can be read, as libraries that walk up the stack ask.
  void* nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  CHECK(nothing != MAP_FAILED);
  CHECK(syscall(SYS_rt_sigprocmask, ~0, nothing, NULL, 8L) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_rt_sigprocmask, ~0, &nothing, NULL, 8L) == -1 && errno == EINVAL);
  CHECK(syscall(SYS_rt_sigprocmask, ~0, all, NULL, 8L) == -1 && errno == EINVAL);
  static uint64_t plain_mask;
  plain_mask = ~(uint64_t)0 & ~((uint64_t)1 << (SIGALRM - 1));
  *all = plain_mask;
  const void** behind = zeros(16);
  for (int i = 0; i < 8; ++i) {
    struct itimerval soon = {{0, 0}, {0, 20000}};
    uint64_t* mask = i % 2 ? all : &plain_mask;
    CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    if (i < 2)
      CHECK(syscall(SYS_rt_sigsuspend, mask, 8L) == -1);
    else if (i < 4)
      CHECK(syscall(SYS_ppoll, NULL, 0L, NULL, mask, 8L) == -1);
    else if (i < 6)
      CHECK(syscall(SYS_epoll_pwait, (long)epoll_create1(0), zeros(100), 1L, -1L, mask, 8L) == -1);
    else {
      behind[0] = mask;
      behind[1] = (void*)8;
      CHECK(syscall(SYS_pselect6, 0L, NULL, NULL, NULL, NULL, behind) == -1);
    }
    CHECK(errno == EINTR);
  }
  CHECK(alarms == 9);
  char* pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pages[5] = 7;
  CHECK(syscall(SYS_pkey_mprotect, pages, 1L << 20, (long)PROT_READ, -1L) == 0);
  CHECK(foreign_load(pages + 5) == 7 && mprotect(pages, 8192, PROT_NONE) == 0);
  CHECK(syscall(SYS_rt_sigprocmask, ~0, pages, NULL, 8L) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_rt_sigprocmask, ~0, pages + 8192, NULL, 8L) == -1 && errno == EINVAL);
  CHECK(munmap(pages, 1 << 20) == 0);
  CHECK(syscall(SYS_rt_sigprocmask, ~0, pages, NULL, 8L) == -1 && errno == EFAULT);
}

static uint32_t plain_word;
static void* wait_there(void* unused) {
  CHECK(syscall(SYS_futex, &plain_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == 0);
  return unused;
}
// Who waits for a plain word is to wait for a spilled one instead, where it is woken.
static void moved_waiters(void) {
  static const int ways[] = {FUTEX_REQUEUE_PRIVATE, FUTEX_CMP_REQUEUE_PRIVATE};
  uint32_t* word = NEW(uint32_t);
  for (int i = 0; i < 2; ++i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_there, NULL) == 0);
    while (syscall(SYS_futex, &plain_word, ways[i], 0, 1L, word, 0) == 0) usleep(1000);
    CHECK(syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) >= 0);
    CHECK(pthread_join(thread, NULL) == 0);
  }
  CHECK(syscall(SYS_futex, &plain_word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1L, word, 5) == -1 && errno == EAGAIN);
}

static void* wait_at(void* word) {
  CHECK(syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 7, NULL, NULL, 0) == 0);
  return NULL;
}
static long wake_op(uint32_t* first, uint32_t* second, uint32_t change) {
  return syscall(SYS_futex, first, FUTEX_WAKE_OP_PRIVATE, 1, 1L, second, change);
}
// One call changes the second of two words and wakes who waits for the first one; for the second one, too, if it was as the call says.
static void changed_words(uint32_t* first, uint32_t* second) {
  static const struct {
    uint32_t change, result;
  } changes[] = {
      {FUTEX_OP(FUTEX_OP_SET, 5, FUTEX_OP_CMP_EQ, 0), 5},
      {FUTEX_OP(FUTEX_OP_ADD, -8, FUTEX_OP_CMP_EQ, 0), -1u},
      {FUTEX_OP(FUTEX_OP_OR, 24, FUTEX_OP_CMP_EQ, 0), 31},
      {FUTEX_OP(FUTEX_OP_ANDN, 5, FUTEX_OP_CMP_EQ, 0), 2},
      {FUTEX_OP(FUTEX_OP_XOR, 9, FUTEX_OP_CMP_EQ, 0), 14},
      {FUTEX_OP((8u | FUTEX_OP_ADD), 20, FUTEX_OP_CMP_EQ, 0), 7 + (1 << 20)},
  };
  for (int i = 0; i < 6; ++i) {
    *second = 7;
    CHECK(wake_op(first, second, changes[i].change) == 0 && *second == changes[i].result);
  }
  CHECK(wake_op(first, second, FUTEX_OP(7u, 0, FUTEX_OP_CMP_EQ, 0)) == -1 && errno == ENOSYS);
  CHECK(wake_op(first, (uint32_t*)((char*)second + 1), 0) == -1 && errno == EINVAL);
  static const struct {
    uint32_t holds, fails;
  } comparisons[] = {
      {FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 7), FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 8)},
      {FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_NE, 8), FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_NE, 7)},
      {FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 8), FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 7)},
      {FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LE, 7), FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LE, 6)},
      {FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_GT, -1), FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_GT, 7)},
      {FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_GE, 7), FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_GE, 8)},
  };
  *first = *second = 7;
  pthread_t thread;
  for (int i = 0; i < 6; ++i) {
    CHECK(pthread_create(&thread, NULL, wait_at, second) == 0);
    usleep(10000);
    CHECK(wake_op(first, second, comparisons[i].fails) == 0);
    while (wake_op(first, second, comparisons[i].holds) == 0) usleep(1000);
    CHECK(pthread_join(thread, NULL) == 0);
  }
  CHECK(pthread_create(&thread, NULL, wait_at, first) == 0);
  while (wake_op(first, second, comparisons[0].fails) == 0) usleep(1000);
  CHECK(pthread_join(thread, NULL) == 0);
}

int main(void) {
  same();
  masks();
  groups_of_a_thread();
  queues();
  moved_waiters();
  uint32_t *one = NEW(uint32_t), *other = NEW(uint32_t);
  changed_words(one, other);
  changed_words(one, &plain_word);
  changed_words(&plain_word, other);
  administration();
  by_kernel();
  puts("end");
  return 0;
}
