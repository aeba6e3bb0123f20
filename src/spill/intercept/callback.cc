// Functions of the C library that call the program in threads of their own making (SIGEV_THREAD): the
// program has threads from here on (mutex.h). Asynchronous I/O is the C library's: its threads reach spilled
// control blocks by the fault path; the kernel refuses spilled buffers (EFAULT).
#include <aio.h>
#include <mqueue.h>
#include <netdb.h>
#include <signal.h>
#include <time.h>

#include "spill/intercept/intercept.h"
#include "spill/intercept/mutex.h"
#include "spill/next.h"

namespace spill {

SPILL_EXPORT int __spill_timer_create(clockid_t clock, sigevent* event, timer_t* timer) {
  note_threads();
  return LIBC(timer_create)(clock, PlainObject<sigevent>(event), PlainObject<timer_t>(timer));
}

SPILL_EXPORT int __spill_mq_notify(mqd_t queue, const sigevent* event) {
  note_threads();
  return LIBC(mq_notify)(queue, PlainIn<sigevent>(event));
}

SPILL_EXPORT int __spill_getaddrinfo_a(int mode, gaicb** list, int count, sigevent* event) {
  note_threads();
  return LIBC(getaddrinfo_a)(mode, list, count, event);
}

#define SPILL_ASYNCHRONOUS(name, parameters, arguments) \
  SPILL_EXPORT int __spill_##name parameters {          \
    note_threads();                                     \
    return LIBC(name) arguments;                        \
  }
SPILL_ASYNCHRONOUS(aio_read, (aiocb * block), (block))
SPILL_ASYNCHRONOUS(aio_read64, (aiocb64 * block), (block))
SPILL_ASYNCHRONOUS(aio_write, (aiocb * block), (block))
SPILL_ASYNCHRONOUS(aio_write64, (aiocb64 * block), (block))
SPILL_ASYNCHRONOUS(aio_fsync, (int operation, aiocb* block), (operation, block))
SPILL_ASYNCHRONOUS(aio_fsync64, (int operation, aiocb64* block), (operation, block))
SPILL_ASYNCHRONOUS(lio_listio, (int mode, aiocb* const* list, int count, sigevent* event),
                   (mode, list, count, event))
SPILL_ASYNCHRONOUS(lio_listio64, (int mode, aiocb64* const* list, int count, sigevent* event),
                   (mode, list, count, event))

}  // namespace spill
