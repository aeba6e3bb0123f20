// Objects that processes wait for together, in shared memory that a program puts into a reservation of its own: the kernel's
// there, whatever lies beside it.
// flags: -pthread
// evictions: none, all its memory is the kernel's
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "e2e.h"

struct Shared {
  _Atomic uint32_t word;
  sem_t semaphore;
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  pthread_rwlock_t rwlock;
  pthread_barrier_t barrier;
  pthread_spinlock_t spin;
  int turn;
};

static void child(struct Shared* shared) {
  struct timespec most = {100, 0};
  while (shared->word == 0)
    CHECK(syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, &most, NULL, 0) == 0 || errno == EAGAIN);
  CHECK(sem_wait(&shared->semaphore) == 0);
  CHECK(pthread_mutex_lock(&shared->mutex) == 0);
  while (shared->turn != 1) CHECK(pthread_cond_wait(&shared->condition, &shared->mutex) == 0);
  shared->turn = 2;
  CHECK(pthread_cond_signal(&shared->condition) == 0 && pthread_mutex_unlock(&shared->mutex) == 0);
  CHECK(pthread_rwlock_wrlock(&shared->rwlock) == 0 && pthread_rwlock_unlock(&shared->rwlock) == 0);
  CHECK(pthread_spin_lock(&shared->spin) == 0 && pthread_spin_unlock(&shared->spin) == 0);
  const int result = pthread_barrier_wait(&shared->barrier);
  CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
  _exit(7);
}

int main(void) {
  char* reserved = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(reserved != MAP_FAILED);
  CHECK_SPILLED(reserved);
  struct Shared* shared =
      mmap(reserved + 65536, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  CHECK((char*)shared == reserved + 65536);
  pthread_mutexattr_t of_mutex;
  pthread_condattr_t of_condition;
  pthread_rwlockattr_t of_rwlock;
  pthread_barrierattr_t of_barrier;
  CHECK(pthread_mutexattr_init(&of_mutex) == 0 &&
        pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED) == 0);
  CHECK(pthread_condattr_init(&of_condition) == 0 &&
        pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED) == 0);
  CHECK(pthread_rwlockattr_init(&of_rwlock) == 0 &&
        pthread_rwlockattr_setpshared(&of_rwlock, PTHREAD_PROCESS_SHARED) == 0);
  CHECK(pthread_barrierattr_init(&of_barrier) == 0 &&
        pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED) == 0);
  CHECK(sem_init(&shared->semaphore, 1, 0) == 0);
  CHECK(pthread_mutex_init(&shared->mutex, &of_mutex) == 0);
  CHECK(pthread_cond_init(&shared->condition, &of_condition) == 0);
  CHECK(pthread_rwlock_init(&shared->rwlock, &of_rwlock) == 0);
  CHECK(pthread_barrier_init(&shared->barrier, &of_barrier, 2) == 0);
  CHECK(pthread_spin_init(&shared->spin, PTHREAD_PROCESS_SHARED) == 0);

  CHECK(pthread_rwlock_rdlock(&shared->rwlock) == 0 && pthread_spin_lock(&shared->spin) == 0);
  const pid_t other = fork();
  CHECK(other >= 0);
  if (other == 0) child(shared);
  usleep(50000);
  shared->word = 1;
  CHECK(syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
  usleep(50000);
  CHECK(sem_post(&shared->semaphore) == 0);
  usleep(50000);
  CHECK(pthread_mutex_lock(&shared->mutex) == 0);
  shared->turn = 1;
  CHECK(pthread_cond_signal(&shared->condition) == 0);
  while (shared->turn != 2) CHECK(pthread_cond_wait(&shared->condition, &shared->mutex) == 0);
  CHECK(pthread_mutex_unlock(&shared->mutex) == 0);
  usleep(50000);
  CHECK(pthread_rwlock_unlock(&shared->rwlock) == 0);
  usleep(50000);
  CHECK(pthread_spin_unlock(&shared->spin) == 0);
  const int result = pthread_barrier_wait(&shared->barrier);
  CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
  int status;
  CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  puts("together");
  return 0;
}
