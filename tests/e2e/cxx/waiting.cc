// A library whose constructor waits for a thread: by a semaphore, and by a condition. The thread's calls are the first of these functions in the
// process, and come while the dynamic linker's lock is the constructor's.
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static sem_t begun;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_done = false;

static void* run(void*) {
  sem_post(&begun);
  pthread_mutex_lock(&mutex);
  is_done = true;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  return nullptr;
}

__attribute__((constructor)) static void start() {
  alarm(100);  // who is not woken waits for good
  pthread_t thread;
  if (sem_init(&begun, 0, 0) != 0 || pthread_create(&thread, nullptr, run, nullptr) != 0) _exit(1);
  pthread_detach(thread);
  sem_wait(&begun);
  pthread_mutex_lock(&mutex);
  while (!is_done) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}
