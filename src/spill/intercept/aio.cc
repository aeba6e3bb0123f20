// Asynchronous I/O. The C library does it by threads that read and write the request's buffer, which the kernel would refuse
// in spilled memory (EFAULT). So all requests are served here, those with plain buffers too, because requests for one
// descriptor are carried out in order, as appends and pipes show.
//
//   file or block device   at once, by the caller: this does not wait without limit, and POSIX leaves open when a request is
//                          carried out. So it takes no more memory than read() and write() do
//   anything else          by a thread, since it may wait until the caller itself does something: one for each
//                          descriptor, which carries its requests out in their order
//
// Invariants
//  1 a request's control block says how it ended: result first, then the error number. The C library's aio_error and
//    aio_return read that, and need not know who served it
//  2 a request that a thread serves is in the list from before its call returns until 1 is done. A thread ends when the list
//    has no request for its descriptor, and a descriptor with requests has a thread; the lock is held for both
//  3 a child of fork begins with an empty list: it has none of the threads
//  4 a control block is the program's again when 1 is done, even if others of its list (lio_listio) have not ended
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "spill/intercept/aio.h"
#include "spill/intercept/asynchronous.h"
#include "spill/intercept/intercept.h"
#include "spill/next.h"
#include "sys/c_library.h"
#include "sys/kernel.h"
#include "sys/lock.h"

extern "C" {
ssize_t __spill_pread(int descriptor, void* to, size_t n, off_t offset);
ssize_t __spill_pwrite(int descriptor, const void* from, size_t n, off_t offset);
ssize_t __spill_read(int descriptor, void* to, size_t n);
ssize_t __spill_write(int descriptor, const void* from, size_t n);
}

static_assert(sizeof(aiocb) == sizeof(aiocb64) &&
              offsetof(aiocb, aio_offset) == offsetof(aiocb64, aio_offset));

namespace spill {
namespace {

// What the requests of one lio_listio have in common. The last to leave it frees it.
struct List {
  std::atomic<uint32_t> left{1};  // requests that have not ended, and the call itself
  std::atomic<bool> has_failed{false};
  bool tells = false;
  sigevent event = {};
};
struct Request {
  Request* next;
  int descriptor;
  aiocb* block;
  List* list;  // null: not part of one
};
// Requests that threads serve, oldest first.
struct Requests {
  sys::Mutex lock;
  Request* first = nullptr;
};
constinit Requests requests;

// Operations besides those of lists.
enum : int { kSync = 100, kSyncData };

// Invariant 1: whoever sees that a request has ended sees its result, and what it read.
int error_of(const aiocb* block) { return end_word(&block->__error_code); }

bool may_wait(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode);
}

// A file that cannot seek is read or written at its present position, as the C library's threads do.
ssize_t transfer(const aiocb& request) {
  if (request.aio_lio_opcode == kSync) return fsync(request.aio_fildes);
  if (request.aio_lio_opcode == kSyncData) return fdatasync(request.aio_fildes);
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

void end(aiocb* block, ssize_t result, int error) {
  store(&block->__return_value, result);
  set_end_word(&block->__error_code, error);
}

void leave(List* list) {
  const uint32_t before = list->left.fetch_sub(1, std::memory_order_acq_rel);
  // The call may have returned by now, and the list may be freed: waking an address that nobody waits on does nothing.
  if (before == 2) sys::futex_wake(list->left, 1);
  if (before != 1) return;
  if (list->tells) tell(list->event, SI_ASYNCIO);
  sys::c_free(list);
}

// The calling thread cannot be cancelled meanwhile: natively another thread would carry the request out regardless.
void carry_out(aiocb* block, List* list) {
  int cancellable;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellable);
  const int error = errno;
  const aiocb request = load(block);
  const ssize_t result = transfer(request);
  end(block, result, result == -1 ? errno : 0);
  tell(request.aio_sigevent, SI_ASYNCIO);
  if (list != nullptr) {
    if (result == -1) list->has_failed.store(true, std::memory_order_relaxed);
    leave(list);
  }
  errno = error;
  pthread_setcancelstate(cancellable, nullptr);
}

// REQUIRES: the lock is held.
Request* oldest_of(int descriptor) {
  Request* request = requests.first;
  while (request != nullptr && request->descriptor != descriptor) request = request->next;
  return request;
}
void append(Request* added) {
  Request** last = &requests.first;
  while (*last != nullptr) last = &(*last)->next;
  *last = added;
}
void remove(Request* removed) {
  Request** request = &requests.first;
  while (*request != removed) request = &(*request)->next;
  *request = removed->next;
}

// A thread: carries out the request that it is given, and then all that wait for the same descriptor.
void* serve(void* memory) {
  auto* request = static_cast<Request*>(memory);
  const int descriptor = request->descriptor;
  while (request != nullptr) {
    carry_out(request->block, request->list);
    requests.lock.lock();
    remove(request);
    sys::c_free(request);
    request = oldest_of(descriptor);
    requests.lock.unlock();
  }
  return nullptr;
}

bool serve_by_thread(aiocb* block, List* list) {
  auto* request = static_cast<Request*>(sys::c_malloc(sizeof(Request)));
  if (request == nullptr) return false;
  *request = {nullptr, load(&block->aio_fildes), block, list};
  const BlockedProgramSignals blocked;
  requests.lock.lock();
  const bool is_served = oldest_of(request->descriptor) != nullptr;
  append(request);
  const bool good = is_served || run_in_thread(nullptr, serve, request);
  if (!good) remove(request);
  requests.lock.unlock();
  if (!good) sys::c_free(request);
  return good;
}

bool has_requests(int descriptor) {
  const BlockedProgramSignals blocked;
  sys::LockGuard guard(requests.lock);
  return oldest_of(descriptor) != nullptr;
}

int start(aiocb* block, int operation, List* list) {
  constexpr int kMaxPriority = 20;
  const int priority = load(&block->aio_reqprio);
  int error = priority < 0 || priority > kMaxPriority ? EINVAL : 0;
  if (error == 0) {
    store(&block->aio_lio_opcode, operation);
    end(block, 0, EINPROGRESS);
    if (!may_wait(load(&block->aio_fildes))) {
      carry_out(block, list);
      return 0;
    }
    if (serve_by_thread(block, list)) return 0;
    error = EAGAIN;
  }
  end(block, -1, error);
  return fail(error);
}

int suspend(const aiocb* const* list, int count, const timespec* timeout) {
  if (count < 0) return fail(EINVAL);
  const Patience patience(timeout);
  do {
    bool has_some = false;
    for (int i = 0; i < count; ++i) {
      const aiocb* block = load(&list[i]);
      if (block == nullptr) continue;
      if (error_of(block) != EINPROGRESS) return 0;
      has_some = true;
    }
    // As in the C library: returns at once if there is nothing to wait for.
    if (!has_some) return 0;
  } while (patience.pause());
  return -1;
}

// Starts a request of a list. False if it could not be started.
bool start_of_list(aiocb* block, int operation, List* list) {
  if (operation != LIO_READ && operation != LIO_WRITE) {
    end(block, -1, EINVAL);
    return false;
  }
  list->left.fetch_add(1, std::memory_order_relaxed);
  if (start(block, operation, list) == 0) return true;
  list->left.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

// False if a signal handler has ended the wait. As in the C library, handlers that restart system calls do not end it, and the thread is not
// cancelled here: requests that have not ended may lie on its stack.
bool wait_for(List& list) {
  clear_slots();
  for (uint32_t left; (left = list.left.load(std::memory_order_acquire)) > 1;)
    if (sys::syscall(SYS_futex, &list.left, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, left, nullptr) == -EINTR)
      return false;
  return true;
}

int list_of_requests(int mode, aiocb* const* blocks, int count, const sigevent* event) {
  if ((mode != LIO_WAIT && mode != LIO_NOWAIT) || count < 0) return fail(EINVAL);
  void* const memory = sys::c_malloc(sizeof(List));
  if (memory == nullptr) return fail(EAGAIN);
  auto* const list = new (memory) List;
  if (mode == LIO_NOWAIT && event != nullptr) {
    list->event = load(event);
    list->tells = list->event.sigev_notify != SIGEV_NONE;
  }
  bool good = true;
  for (int i = 0; i < count; ++i) {
    aiocb* block = load(&blocks[i]);
    const int operation = block == nullptr ? LIO_NOP : load(&block->aio_lio_opcode);
    if (operation != LIO_NOP) good &= start_of_list(block, operation, list);
  }
  const bool waited = mode == LIO_NOWAIT || wait_for(*list);
  if (mode == LIO_WAIT) good &= !list->has_failed.load(std::memory_order_relaxed);
  leave(list);
  if (!waited) return fail(EINTR);
  return good ? 0 : fail(EIO);
}

}  // namespace

void forget_requests() { new (&requests) Requests; }

SPILL_EXPORT int __spill_aio_read(aiocb* block) { return start(block, LIO_READ, nullptr); }
SPILL_EXPORT int __spill_aio_write(aiocb* block) { return start(block, LIO_WRITE, nullptr); }
SPILL_EXPORT int __spill_aio_fsync(int operation, aiocb* block) {
  if (operation != O_SYNC && operation != O_DSYNC) return fail(EINVAL);
  const int flags = fcntl(load(&block->aio_fildes), F_GETFL);
  if (flags == -1 || (flags & O_ACCMODE) == O_RDONLY) return fail(EBADF);
  return start(block, operation == O_SYNC ? kSync : kSyncData, nullptr);
}
SPILL_EXPORT int __spill_lio_listio(int mode, aiocb* const* list, int count, sigevent* event) {
  return list_of_requests(mode, list, count, event);
}
SPILL_EXPORT int __spill_aio_suspend(const aiocb* const* list, int count, const timespec* timeout) {
  return suspend(list, count, timeout);
}
SPILL_EXPORT int __spill_aio_error(const aiocb* block) { return error_of(block); }
SPILL_EXPORT ssize_t __spill_aio_return(aiocb* block) { return load(&block->__return_value); }
// A request that waits in a thread cannot be cancelled.
SPILL_EXPORT int __spill_aio_cancel(int descriptor, aiocb* block) {
  if (fcntl(descriptor, F_GETFL) == -1) return fail(EBADF);
  if (block != nullptr) {
    if (load(&block->aio_fildes) != descriptor) return fail(EINVAL);
    return error_of(block) == EINPROGRESS ? AIO_NOTCANCELED : AIO_ALLDONE;
  }
  return has_requests(descriptor) ? AIO_NOTCANCELED : AIO_ALLDONE;
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
