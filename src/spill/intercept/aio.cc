// Asynchronous I/O. The C library's is made of threads that read and write where the request says: in spilled memory the
// kernel would refuse that (EFAULT). Requests whose buffer is spilled are served here, all others by the C library,
// whose threads reach spilled control blocks by the fault path.
//
//   file or block device   at once, by the caller: it does not wait without limit, and POSIX leaves open when a request
//                          is carried out. So it takes no memory but what read() and write() do
//   anything else          by a thread, since it may wait until the caller itself does something: one for each
//                          descriptor, which carries its requests out in their order
//
// Invariants
//  1 a request's control block says how it ended: result first, then the error number. The C library's aio_error and
//    aio_return read that, and need not know who served it
//  2 a request that a thread serves is in the list from before its call returns until 1 is done. A thread ends when the list
//    has none of its descriptor, and a descriptor that has some has a thread; the lock is held for both
//  3 a child of fork begins with an empty list: it has none of the threads
#include <aio.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "spill/intercept/aio.h"
#include "spill/intercept/intercept.h"
#include "spill/intercept/mutex.h"
#include "spill/next.h"
#include "spill/signals.h"
#include "sys/c_library.h"
#include "sys/kernel.h"
#include "sys/lock.h"

extern "C" {
ssize_t __spill_pread(int descriptor, void* to, size_t n, off_t offset);
ssize_t __spill_pwrite(int descriptor, const void* from, size_t n, off_t offset);
ssize_t __spill_read(int descriptor, void* to, size_t n);
ssize_t __spill_write(int descriptor, const void* from, size_t n);
int __spill_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                           void* argument);
}

static_assert(sizeof(aiocb) == sizeof(aiocb64) &&
              offsetof(aiocb, aio_offset) == offsetof(aiocb64, aio_offset));

namespace spill {
namespace {

struct Request {
  Request* next;
  int descriptor;
  aiocb* block;
};
// Requests that threads serve, oldest first.
struct Requests {
  sys::Mutex lock;
  std::atomic<Request*> first{nullptr};
};
constinit Requests requests;

int fail(int error) {
  errno = error;
  return -1;
}

void* buffer_of(const aiocb* block) { return const_cast<void*>(load(&block->aio_buf)); }
bool is_ours(const aiocb* block) { return !plain(buffer_of(block)); }
int error_of(const aiocb* block) { return load(&block->__error_code); }

bool may_wait(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode);
}

// The C library's threads are as lenient about what cannot seek.
ssize_t transfer(const aiocb& request) {
  auto* memory = const_cast<void*>(request.aio_buf);
  const bool reads = request.aio_lio_opcode == LIO_READ;
  for (;;) {
    ssize_t moved = reads
                        ? __spill_pread(request.aio_fildes, memory, request.aio_nbytes, request.aio_offset)
                        : __spill_pwrite(request.aio_fildes, memory, request.aio_nbytes, request.aio_offset);
    if (moved == -1 && errno == ESPIPE)
      moved = reads ? __spill_read(request.aio_fildes, memory, request.aio_nbytes)
                    : __spill_write(request.aio_fildes, memory, request.aio_nbytes);
    if (moved != -1 || errno != EINTR) return moved;
  }
}

struct Notice {
  void (*function)(sigval);
  sigval value;
};

// Runs a routine in a thread that nobody joins, which takes no signals. `attributes` may be null.
bool run_in_thread(const pthread_attr_t* attributes, void* (*routine)(void*), void* argument) {
  note_threads();
  sigset_t all, before;
  sigfillset(&all);
  change_program_mask(SIG_BLOCK, &all, &before);
  pthread_t thread;
  const int error = __spill_pthread_create(&thread, attributes, routine, argument);
  change_program_mask(SIG_SETMASK, &before, nullptr);
  if (error == 0) pthread_detach(thread);  // fails where the attributes say so already
  return error == 0;
}

void* call_program(void* memory) {
  const Notice notice = *static_cast<Notice*>(memory);
  sys::c_free(memory);
  notice.function(notice.value);
  return nullptr;
}

void notify(const sigevent& event) {
  if (event.sigev_notify == SIGEV_SIGNAL) {
    siginfo_t info = {};
    info.si_signo = event.sigev_signo;
    info.si_code = SI_ASYNCIO;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value = event.sigev_value;
    sys::syscall(SYS_rt_sigqueueinfo, info.si_pid, event.sigev_signo, &info);
  } else if (event.sigev_notify == SIGEV_THREAD) {
    auto* notice = static_cast<Notice*>(sys::c_malloc(sizeof(Notice)));
    if (notice == nullptr) return;
    *notice = {event.sigev_notify_function, event.sigev_value};
    if (!run_in_thread(event.sigev_notify_attributes, call_program, notice)) sys::c_free(notice);
  }
}

void end(aiocb* block, ssize_t result, int error) {
  store(&block->__return_value, result);
  std::atomic_thread_fence(std::memory_order_release);  // invariant 1
  store(&block->__error_code, error);
}

// The calling thread may be cancelled: natively the request would be carried out.
void carry_out(aiocb* block) {
  int cancellable;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellable);
  const int error = errno;
  const aiocb request = load(block);
  const ssize_t result = transfer(request);
  end(block, result, result == -1 ? errno : 0);
  notify(request.aio_sigevent);
  errno = error;
  pthread_setcancelstate(cancellable, nullptr);
}

// REQUIRES: the lock is held.
Request* oldest_of(int descriptor) {
  Request* request = requests.first.load(std::memory_order_relaxed);
  while (request != nullptr && request->descriptor != descriptor) request = request->next;
  return request;
}
void append(Request* added) {
  Request* last = requests.first.load(std::memory_order_relaxed);
  if (last == nullptr) return requests.first.store(added, std::memory_order_release);
  while (last->next != nullptr) last = last->next;
  last->next = added;
}
void remove(Request* removed) {
  Request* request = requests.first.load(std::memory_order_relaxed);
  if (request == removed) return requests.first.store(removed->next, std::memory_order_release);
  while (request->next != removed) request = request->next;
  request->next = removed->next;
}

// The request of its argument, and what was asked of the descriptor since.
void* serve(void* memory) {
  auto* request = static_cast<Request*>(memory);
  const int descriptor = request->descriptor;
  while (request != nullptr) {
    carry_out(request->block);
    requests.lock.lock();
    remove(request);
    sys::c_free(request);
    request = oldest_of(descriptor);
    requests.lock.unlock();
  }
  return nullptr;
}

bool serve_by_thread(aiocb* block) {
  auto* request = static_cast<Request*>(sys::c_malloc(sizeof(Request)));
  if (request == nullptr) return false;
  *request = {nullptr, load(&block->aio_fildes), block};
  // No handler meanwhile: it may ask for more.
  sigset_t all, before;
  sigfillset(&all);
  change_program_mask(SIG_BLOCK, &all, &before);
  requests.lock.lock();
  const bool is_served = oldest_of(request->descriptor) != nullptr;
  append(request);
  const bool good = is_served || run_in_thread(nullptr, serve, request);
  if (!good) remove(request);
  requests.lock.unlock();
  if (!good) sys::c_free(request);
  change_program_mask(SIG_SETMASK, &before, nullptr);
  return good;
}

bool threads_serve() { return requests.first.load(std::memory_order_acquire) != nullptr; }

int start(aiocb* block, int operation) {
  constexpr int kMostPriority = 20;
  const int priority = load(&block->aio_reqprio);
  int error = priority < 0 || priority > kMostPriority ? EINVAL : 0;
  if (error == 0) {
    store(&block->aio_lio_opcode, operation);
    end(block, 0, EINPROGRESS);
    if (!may_wait(load(&block->aio_fildes))) {
      carry_out(block);
      return 0;
    }
    if (serve_by_thread(block)) return 0;
    error = EAGAIN;
  }
  end(block, -1, error);
  return fail(error);
}

// Until something may have ended. Returns false, with errno set, when there is no more time or a signal came.
bool pause_until(const timespec* deadline) {
  constexpr long kPauseNs = 500'000;
  if (deadline != nullptr) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > deadline->tv_sec ||
        (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec)) {
      errno = EAGAIN;
      return false;
    }
  }
  clear_slots();
  const timespec pause = {0, kPauseNs};
  return nanosleep(&pause, nullptr) == 0;
}

int suspend(const aiocb* const* list, int count, const timespec* timeout) {
  const PlainIn<timespec> plain_timeout(timeout);
  clear_slots();
  if (!threads_serve()) return aio_suspend(list, count, plain_timeout);
  timespec deadline;
  if (timeout != nullptr) {
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    const long nanoseconds = deadline.tv_nsec + plain_timeout->tv_nsec;
    deadline.tv_sec += plain_timeout->tv_sec + nanoseconds / 1'000'000'000;
    deadline.tv_nsec = nanoseconds % 1'000'000'000;
  }
  do {
    for (int i = 0; i < count; ++i) {
      const aiocb* block = load(&list[i]);
      if (block != nullptr && error_of(block) != EINPROGRESS) return 0;
    }
  } while (pause_until(timeout != nullptr ? &deadline : nullptr));
  return -1;
}

// Requests of a list that are served here, one after the other.
template <class F>
bool for_each_of_ours(aiocb* const* list, int count, F f) {
  for (int i = 0; i < count; ++i) {
    aiocb* block = load(&list[i]);
    if (block == nullptr || load(&block->aio_lio_opcode) == LIO_NOP || !is_ours(block)) continue;
    if (!f(block)) return false;
  }
  return true;
}

int list_of_requests(int mode, aiocb* const* list, int count, sigevent* event) {
  if ((mode != LIO_WAIT && mode != LIO_NOWAIT) || count < 0) return fail(EINVAL);
  const bool tells = mode == LIO_NOWAIT && event != nullptr && load(&event->sigev_notify) != SIGEV_NONE;
  // Nobody could say when the last of them has ended.
  if (tells &&
      !for_each_of_ours(list, count, [](aiocb* block) { return !may_wait(load(&block->aio_fildes)); }))
    return fail(ENOTSUP);
  bool good = true;
  for_each_of_ours(list, count, [&](aiocb* block) {
    good &= start(block, load(&block->aio_lio_opcode)) == 0;
    return true;
  });
  Scratch rest(static_cast<size_t>(count) * sizeof(aiocb*));
  if (rest.data() == nullptr && count > 0) return fail(EAGAIN);
  auto** others = reinterpret_cast<aiocb**>(rest.data());
  int other_count = 0;
  for (int i = 0; i < count; ++i) {
    aiocb* block = load(&list[i]);
    if (block != nullptr && !is_ours(block)) others[other_count++] = block;
  }
  clear_slots();
  const int result = LIBC(lio_listio)(mode, others, other_count, event);
  const int error = errno;
  if (mode == LIO_WAIT) {
    for_each_of_ours(list, count, [&](aiocb* block) {
      while (error_of(block) == EINPROGRESS)
        if (!pause_until(nullptr)) return false;
      good &= error_of(block) == 0;
      return true;
    });
  }
  if (result != 0) return fail(error);
  return good ? 0 : fail(EIO);
}

}  // namespace

void forget_requests() { new (&requests) Requests; }

SPILL_EXPORT int __spill_aio_read(aiocb* block) {
  note_threads();
  return is_ours(block) ? start(block, LIO_READ) : LIBC(aio_read)(block);
}
SPILL_EXPORT int __spill_aio_write(aiocb* block) {
  note_threads();
  return is_ours(block) ? start(block, LIO_WRITE) : LIBC(aio_write)(block);
}
// What is served here and may be in files is carried out by then.
SPILL_EXPORT int __spill_aio_fsync(int operation, aiocb* block) {
  note_threads();
  return LIBC(aio_fsync)(operation, block);
}
SPILL_EXPORT int __spill_lio_listio(int mode, aiocb* const* list, int count, sigevent* event) {
  note_threads();
  return list_of_requests(mode, list, count, event);
}
SPILL_EXPORT int __spill_aio_suspend(const aiocb* const* list, int count, const timespec* timeout) {
  return suspend(list, count, timeout);
}
SPILL_EXPORT int __spill_aio_error(const aiocb* block) {
  if (plain(block)) return aio_error(block);
  const int error = error_of(block);
  std::atomic_thread_fence(std::memory_order_acquire);  // invariant 1
  return error;
}
SPILL_EXPORT ssize_t __spill_aio_return(aiocb* block) { return load(&block->__return_value); }
SPILL_EXPORT int __spill_aio_cancel(int descriptor, aiocb* block) {
  if (block != nullptr && is_ours(block)) {
    if (load(&block->aio_fildes) != descriptor) return fail(EINVAL);
    return error_of(block) == EINPROGRESS ? AIO_NOTCANCELED : AIO_ALLDONE;
  }
  const int result = aio_cancel(descriptor, block);
  // Those in threads are of any descriptor: who asks is told to look at each request.
  if (result == AIO_ALLDONE && block == nullptr && threads_serve()) return AIO_NOTCANCELED;
  return result;
}

// Offsets have 64 bits anyway.
SPILL_EXPORT int __spill_aio_read64(aiocb64* block) {
  return __spill_aio_read(reinterpret_cast<aiocb*>(block));
}
SPILL_EXPORT int __spill_aio_write64(aiocb64* block) {
  return __spill_aio_write(reinterpret_cast<aiocb*>(block));
}
SPILL_EXPORT int __spill_aio_fsync64(int operation, aiocb64* block) {
  return __spill_aio_fsync(operation, reinterpret_cast<aiocb*>(block));
}
SPILL_EXPORT int __spill_lio_listio64(int mode, aiocb64* const* list, int count, sigevent* event) {
  return __spill_lio_listio(mode, reinterpret_cast<aiocb* const*>(list), count, event);
}
SPILL_EXPORT int __spill_aio_suspend64(const aiocb64* const* list, int count, const timespec* timeout) {
  return suspend(reinterpret_cast<const aiocb* const*>(list), count, timeout);
}
SPILL_EXPORT int __spill_aio_error64(const aiocb64* block) {
  return __spill_aio_error(reinterpret_cast<const aiocb*>(block));
}
SPILL_EXPORT ssize_t __spill_aio_return64(aiocb64* block) {
  return __spill_aio_return(reinterpret_cast<aiocb*>(block));
}
SPILL_EXPORT int __spill_aio_cancel64(int descriptor, aiocb64* block) {
  return __spill_aio_cancel(descriptor, reinterpret_cast<aiocb*>(block));
}

}  // namespace spill
