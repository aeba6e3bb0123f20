// What jemalloc calls instead of the C library's functions of these names (cmake/SpillHeap.cmake):
// neither its mutexes nor its mappings go through interceptors, and the runtime learns when it destroys a thread's caches.
#include <errno.h>
#include <pthread.h>
#include <sys/types.h>

#include "spill/heap.h"
#include "spill/heap_mappings.h"
#include "sys/barrier.h"
#include "sys/kernel.h"
#include "sys/lock.h"

namespace {

constinit spill::HeapMappings mappings;

// jemalloc's destructor of what it keeps for a thread.
constinit void (*destroy_thread_data)(void*) = nullptr;

// The key is older than the program's keys, so this runs before their destructors. Running twice does no harm: jemalloc may ask for another round.
void leave_thread(void* thread_data) {
  spill::heap_leave_thread();
  destroy_thread_data(thread_data);
}

long with_errno(long result) {
  if (!sys::failed(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// A pthread_mutex_t holds our lock in its first bytes; zeros are a free lock.
sys::Mutex& lock_in(pthread_mutex_t* mutex) { return *reinterpret_cast<sys::Mutex*>(mutex); }
static_assert(sizeof(sys::Mutex) <= sizeof(pthread_mutex_t));

}  // namespace

uint64_t spill::heap_metadata_bytes() { return mappings.count_bytes(); }

extern "C" {

void* spillway_heap_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  const long mapped = sys::syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
  sys::note_map();
  if (!sys::failed(mapped)) mappings.add(static_cast<uint64_t>(mapped), bytes);
  return reinterpret_cast<void*>(with_errno(mapped));
}
int spillway_heap_munmap(void* address, size_t bytes) {
  sys::note_unmap();
  mappings.remove(reinterpret_cast<uint64_t>(address), bytes);
  return static_cast<int>(with_errno(sys::syscall(SYS_munmap, address, bytes)));
}
int spillway_heap_madvise(void* address, size_t bytes, int advice) {
  return static_cast<int>(with_errno(sys::syscall(SYS_madvise, address, bytes, advice)));
}
int spillway_heap_close(int file) { return static_cast<int>(with_errno(sys::syscall(SYS_close, file))); }

int spillway_heap_pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t*) {
  *mutex = {};
  return 0;
}
int spillway_heap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  lock_in(mutex).lock();
  return 0;
}
int spillway_heap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
  return lock_in(mutex).try_lock() ? 0 : EBUSY;
}
int spillway_heap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  lock_in(mutex).unlock();
  return 0;
}
// jemalloc has one key.
int spillway_heap_pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  destroy_thread_data = destroy;
  return pthread_key_create(key, leave_thread);
}
// jemalloc's background threads are off.
int spillway_heap_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) {
  return EAGAIN;
}
}
