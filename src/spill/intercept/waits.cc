#include "spill/intercept/waits.h"

#include <pthread.h>
#include <semaphore.h>

#include "spill/next.h"

namespace spill {

void find_waits() {
  static_cast<void>(LIBC_VERSION(pthread_once, "GLIBC_2.34"));
  static_cast<void>(LIBC_VERSION(pthread_mutex_lock, "GLIBC_2.2.5"));
  static_cast<void>(LIBC_VERSION(pthread_mutex_trylock, "GLIBC_2.34"));
  static_cast<void>(LIBC_VERSION(pthread_mutex_unlock, "GLIBC_2.2.5"));
  static_cast<void>(LIBC_VERSION(pthread_rwlock_rdlock, "GLIBC_2.34"));
  static_cast<void>(LIBC_VERSION(pthread_rwlock_tryrdlock, "GLIBC_2.34"));
  static_cast<void>(LIBC_VERSION(pthread_rwlock_wrlock, "GLIBC_2.34"));
  static_cast<void>(LIBC_VERSION(pthread_rwlock_trywrlock, "GLIBC_2.34"));
  static_cast<void>(LIBC_VERSION(pthread_rwlock_unlock, "GLIBC_2.34"));
  static_cast<void>(LIBC_VERSION(pthread_cond_wait, "GLIBC_2.3.2"));
  static_cast<void>(LIBC_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2"));
  static_cast<void>(LIBC_VERSION(pthread_cond_clockwait, "GLIBC_2.34"));
  static_cast<void>(LIBC_VERSION(pthread_cond_signal, "GLIBC_2.3.2"));
  static_cast<void>(LIBC_VERSION(pthread_cond_broadcast, "GLIBC_2.3.2"));
  static_cast<void>(LIBC(pthread_barrier_wait));
  static_cast<void>(LIBC(sem_wait));
  static_cast<void>(LIBC(sem_trywait));
  static_cast<void>(LIBC(sem_timedwait));
  static_cast<void>(LIBC(sem_clockwait));
  static_cast<void>(LIBC(sem_post));
}

}  // namespace spill
