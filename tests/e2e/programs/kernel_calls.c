// Functions of the rarer system calls: events, several messages at once, identities, scheduling, System V's and POSIX's
// queues and semaphores, extended attributes, splices, times, limits, timers. Structures and buffers are spilled; what
// fewer programs call is in kernel_rare.c, calls by number in by_number.c.
// levels: O2
// flags: -pthread
// pages: 4K 16K
// chaos: 1
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include "e2e.h"
#define NEW(T) ((T*)spilled_zeros(sizeof(T)))
static void* sleeper(void* x) {
  usleep(1000);
  return x;
}
// What several of the functions use.
static char *path, *b0, *b1, *name;
static int fd, *sv, pp[2];
static struct iovec* iov;
static struct timespec* ts;
static char* gone;  // where nothing is mapped
static void events(void) {
  int ef = eventfd(0, 0);
  eventfd_t* ev = NEW(eventfd_t);
  CHECK(eventfd_write(ef, 5) == 0);
  CHECK(eventfd_read(ef, ev) == 0 && *ev == 5);
  sigset_t* ss = NEW(sigset_t);
  sigemptyset(ss);
  sigaddset(ss, SIGUSR2);
  sigprocmask(SIG_BLOCK, ss, 0);
  int sf = signalfd(-1, ss, 0);
  CHECK(sf >= 0);
  raise(SIGUSR2);
  struct signalfd_siginfo* si = NEW(struct signalfd_siginfo);
  CHECK((sf < 0 ? -1 : read(sf, si, sizeof *si)) == sizeof *si && si->ssi_signo == SIGUSR2);
  path = spilled_zeros(100);
  strcpy(path, "sysmisc.tmp");
  fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  int in = inotify_init();
  CHECK(inotify_add_watch(in, path, IN_MODIFY) >= 0);
}
static void messages(void) {
  sv = spilled_zeros(8);
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv) == 0);
  struct mmsghdr* mm = spilled_zeros(2 * sizeof *mm);
  iov = spilled_zeros(2 * sizeof *iov);
  b0 = spilled_zeros(100);
  b1 = spilled_zeros(100);
  strcpy(b0, "hello");
  strcpy(b1, "world!");
  iov[0].iov_base = b0;
  iov[0].iov_len = 6;
  iov[1].iov_base = b1;
  iov[1].iov_len = 7;
  mm[0].msg_hdr.msg_iov = iov;
  mm[0].msg_hdr.msg_iovlen = 1;
  mm[1].msg_hdr.msg_iov = iov + 1;
  mm[1].msg_hdr.msg_iovlen = 1;
  CHECK(sendmmsg(sv[0], mm, 2, 0) == 2 && mm[1].msg_len == 7);
  memset(b0, 0, 100);
  memset(b1, 0, 100);
  iov[0].iov_len = iov[1].iov_len = 100;
  CHECK(recvmmsg(sv[1], mm, 2, MSG_DONTWAIT, 0) == 2 && !strcmp(b0, "hello") && !strcmp(b1, "world!") &&
        mm[0].msg_len == 6);
  iov[0].iov_len = 6;
  iov[1].iov_len = 7;
  CHECK(pwritev2(fd, iov, 2, 0, 0) == 13);
  memset(b0, 0, 100);
  CHECK(preadv2(fd, iov, 2, 0, 0) == 13 && !strcmp(b0, "hello"));
}
static void identities(void) {
  uid_t* u = spilled_zeros(12);
  CHECK(getresuid(u, u + 1, u + 2) == 0 && u[0] == getuid());
  CHECK(getresgid(u, u + 1, u + 2) == 0);
}
static void scheduling(void) {
  struct sched_param* sp = NEW(struct sched_param);
  CHECK(sched_getparam(0, sp) == 0);
  CHECK(sched_setscheduler(0, SCHED_OTHER, sp) == 0);
  ts = NEW(struct timespec);
  CHECK(sched_rr_get_interval(0, ts) == 0);
  cpu_set_t* cs = NEW(cpu_set_t);
  CHECK(pthread_getaffinity_np(pthread_self(), sizeof *cs, cs) == 0 && CPU_COUNT(cs) > 0);
  CHECK(pthread_setaffinity_np(pthread_self(), sizeof *cs, cs) == 0);
  int* pol = spilled_zeros(4);
  CHECK(pthread_getschedparam(pthread_self(), pol, sp) == 0);
  CHECK(pthread_setschedparam(pthread_self(), *pol, sp) == 0);
}
static void threads(void) {
  pthread_attr_t* at = NEW(pthread_attr_t);
  CHECK(pthread_getattr_np(pthread_self(), at) == 0);
  void** sa = spilled_zeros(8);
  size_t* sz = spilled_zeros(8);
  CHECK(pthread_attr_getstack(at, sa, sz) == 0 && *sz > 0);
  pthread_attr_destroy(at);
  pthread_t th;
  void** res = spilled_zeros(8);
  pthread_create(&th, 0, sleeper, path);
  clock_gettime(CLOCK_REALTIME, ts);
  ts->tv_sec += 10;
  CHECK(pthread_timedjoin_np(th, res, ts) == 0 && *res == path);
}
static void semaphores(void) {
  int sem = semget(IPC_PRIVATE, 2, 0600);
  struct sembuf* sb = spilled_zeros(2 * sizeof *sb);
  sb[0].sem_op = 3;
  CHECK(semop(sem, sb, 1) == 0);
  sb[0].sem_op = -1;
  ts->tv_sec = 1;
  ts->tv_nsec = 0;
  CHECK(semtimedop(sem, sb, 1, ts) == 0);
  unsigned short* vals = spilled_zeros(8);
  CHECK(semctl(sem, 0, GETALL, vals) == 0 && vals[0] == 2);
  // What a command has no use for is left of what was there before.
  union {
    int value;
    void* pointer;
  } number = {.pointer = vals};
  __asm__ volatile("" : "+m"(number));
  number.value = 7;
  CHECK(semctl(sem, 1, SETVAL, number) == 0);
  gone = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(gone != MAP_FAILED && munmap(gone, 1 << 20) == 0);
  CHECK(semctl(sem, 1, GETVAL, gone) == 7);
  struct semid_ds* sd = NEW(struct semid_ds);
  CHECK(semctl(sem, 0, IPC_STAT, sd) == 0 && sd->sem_nsems == 2);
  semctl(sem, 0, IPC_RMID);
}
static void queues(void) {
  int mq = msgget(IPC_PRIVATE, 0600);
  struct {
    long t;
    char x[50];
  }* mb = spilled_zeros(sizeof *mb);
  mb->t = 4;
  strcpy(mb->x, "msg");
  CHECK(msgsnd(mq, mb, 10, 0) == 0);
  memset(mb, 0, sizeof *mb);
  CHECK(msgrcv(mq, mb, 50, 0, IPC_NOWAIT) == 10 && !strcmp(mb->x, "msg"));
  struct msqid_ds* md = NEW(struct msqid_ds);
  CHECK(msgctl(mq, IPC_STAT, md) == 0);
  struct msginfo* const mi = NEW(struct msginfo);
  CHECK(msgctl(0, MSG_INFO, (struct msqid_ds*)mi) >= 0 && mi->msgpool > 0);
  CHECK(msgctl(mq, IPC_RMID, (struct msqid_ds*)gone) == 0);
}
static void shared_memory(void) {
  int sh = shmget(IPC_PRIVATE, 4096, 0600);
  struct shmid_ds* shd = NEW(struct shmid_ds);
  CHECK(shmctl(sh, IPC_STAT, shd) == 0 && shd->shm_segsz == 4096);
  struct shminfo* const smi = NEW(struct shminfo);
  CHECK(shmctl(0, IPC_INFO, (struct shmid_ds*)smi) >= 0 && smi->shmmni > 0);
  struct shm_info* const smu = NEW(struct shm_info);
  CHECK(shmctl(0, SHM_INFO, (struct shmid_ds*)smu) >= 0 && smu->used_ids > 0);
  CHECK(shmctl(sh, IPC_RMID, (struct shmid_ds*)gone) == 0);
}
static void attributes(void) {
  char *xn = spilled_zeros(30), *xv = spilled_zeros(30);
  strcpy(xn, "user.test");
  strcpy(xv, "value");
  int xr = fsetxattr(fd, xn, xv, 5, 0);
  CHECK(xr == 0 || errno == ENOTSUP || errno == EPERM);
  if (xr == 0) {
    memset(xv, 0, 30);
    CHECK(fgetxattr(fd, xn, xv, 30) == 5 && !strcmp(xv, "value"));
    CHECK(flistxattr(fd, b0, 100) == 10);
    CHECK(lgetxattr(path, xn, xv, 30) == 5);
    CHECK(removexattr(path, xn) == 0);
    CHECK(llistxattr(path, b0, 100) == 0);
  }
}
static void pipes(void) {
  pipe(pp);
  iov[0].iov_base = b0;
  strcpy(b0, "hello");
  iov[0].iov_len = 6;
  CHECK(vmsplice(pp[1], iov, 1, 0) == 6);
  int full[2];
  CHECK(pipe(full) == 0 && fcntl(full[1], F_SETPIPE_SZ, 4096) == 4096);
  const struct iovec much = {spilled_zeros(10000), 10000}, nothing = {much.iov_base, 0};
  CHECK(vmsplice(full[1], &nothing, 1, 0) == 0);
  CHECK(vmsplice(full[1], &much, 1, SPLICE_F_NONBLOCK) > 0);
  CHECK(vmsplice(full[1], &much, 1, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN);
  loff_t* lo = NEW(loff_t);
  *lo = 20;
  CHECK(splice(pp[0], 0, fd, lo, 6, SPLICE_F_NONBLOCK) == 6 && *lo == 26);
  CHECK(pread(fd, b1, 6, 20) == 6 && !strcmp(b1, "hello"));
}
static void files(void) {
  CHECK(ftok(path, 1) != -1);
  int dfd = open(".", O_RDONLY | O_DIRECTORY);
  char* db = spilled_zeros(5000);
  CHECK(getdents64(dfd, db, 5000) > 0);
  struct timeval* tv = spilled_zeros(2 * sizeof *tv);
  tv[0].tv_sec = 1000;
  tv[1].tv_sec = 2000;
  CHECK(futimes(fd, tv) == 0);
  CHECK(lutimes(path, tv) == 0);
  CHECK(futimesat(AT_FDCWD, path, tv) == 0);
  struct stat* st = NEW(struct stat);
  CHECK(stat(path, st) == 0 && st->st_mtime == 2000);
  CHECK(memfd_create(path, 0) >= 0);
}
static void limits(void) {
  ts->tv_sec = 0;
  ts->tv_nsec = 1000;
  CHECK(thrd_sleep(ts, ts) == 0);
  struct rlimit* rl = NEW(struct rlimit);
  CHECK(prlimit(0, RLIMIT_NOFILE, 0, rl) == 0 && rl->rlim_cur > 0);
}
static void readiness(void) {
  int ep = epoll_create1(0);
  struct epoll_event* ee = spilled_zeros(4 * sizeof *ee);
  ee[0].events = EPOLLIN;
  ee[0].data.u64 = 99;
  CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, pp[0], ee) == 0);
  write(pp[1], "x", 1);
  memset(ee, 0, sizeof *ee);
  ts->tv_sec = 1;
  CHECK(epoll_pwait2(ep, ee, 4, ts, 0) == 1 && ee[0].data.u64 == 99);
}
static void machine(void) {
  struct timex* tx = NEW(struct timex);
  CHECK(adjtimex(tx) >= 0);
  name = spilled_zeros(64);
  int pt = posix_openpt(O_RDWR);
  grantpt(pt);
  unlockpt(pt);
  CHECK(ptsname_r(pt, name, 64) == 0);
  unsigned* cpu = spilled_zeros(8);
  CHECK(getcpu(cpu, cpu + 1) == 0);
}
static void timers(void) {
  struct itimerspec* its = NEW(struct itimerspec);
  timer_t* tm = NEW(timer_t);
  CHECK(timer_create(CLOCK_MONOTONIC, 0, tm) == 0);
  CHECK(timer_settime(*tm, 0, its, its) == 0);
  clockid_t* ck = NEW(clockid_t);
  CHECK(clock_getcpuclockid(0, ck) == 0);
  CHECK(pthread_getcpuclockid(pthread_self(), ck) == 0);
}
static void names(void) {
  sem_t* ns;
  strcpy(name, "/spillway-sem");
  ns = sem_open(name, O_CREAT, 0600, 1);
  CHECK(ns != SEM_FAILED);
  sem_unlink(name);
  strcpy(name, "/spillway-shm");
  int sm = shm_open(name, O_CREAT | O_RDWR, 0600);
  CHECK(sm >= 0);
  CHECK(shm_unlink(name) == 0);
  struct mq_attr* ma = NEW(struct mq_attr);
  ma->mq_maxmsg = 4;
  ma->mq_msgsize = 64;
  strcpy(name, "/spillway-mq");
  mqd_t q = mq_open(name, O_CREAT | O_RDWR, 0600, ma);
  if (q != (mqd_t)-1) {
    CHECK(mq_send(q, b0, 6, 1) == 0);
    unsigned* prio = spilled_zeros(4);
    char* mr = spilled_zeros(64);
    fflush(stdout);
    CHECK(mq_receive(q, mr, 64, prio) == 6 && *prio == 1 && !strcmp(mr, "hello"));
    CHECK(mq_getattr(q, ma) == 0 && ma->mq_msgsize == 64);
    mq_unlink(name);
  }
}
static void users(void) {
  gid_t* gr = spilled_zeros(4 * 100);
  int ng = getgroups(100, gr);
  CHECK(ng < 0 || setgroups(ng, gr) == 0 || errno == EPERM);
  struct ucred* uc = NEW(struct ucred);
  socklen_t* sl = NEW(socklen_t);
  *sl = sizeof *uc;
  CHECK(getsockopt(sv[0], SOL_SOCKET, SO_PEERCRED, uc, sl) == 0 && uc->pid == getpid());
  char* hn = spilled_zeros(65);
  CHECK(gethostname(hn, 65) == 0);
  CHECK(sethostname(hn, strlen(hn)) == 0 || errno == EPERM);
  pthread_spinlock_t* sl2 = (void*)spilled_zeros(sizeof *sl2);
  CHECK(pthread_spin_init(sl2, 0) == 0 && pthread_spin_lock(sl2) == 0 && pthread_spin_unlock(sl2) == 0);
}
int main(void) {
  // More than the budget, so that pages have to go.
  enum { kBytes = 3 << 20 };
  char* data = malloc(kBytes);
  memset(data, 7, kBytes);
  HIDE(data);
  events();
  messages();
  identities();
  scheduling();
  threads();
  semaphores();
  queues();
  shared_memory();
  attributes();
  pipes();
  files();
  limits();
  readiness();
  machine();
  timers();
  names();
  users();
  unlink(path);
  puts("end");
  return 0;
}
