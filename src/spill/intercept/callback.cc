// Functions of the C library that call the program in threads of their own making (SIGEV_THREAD): the
// program has threads from here on (mutex.h). So do those of asynchronous I/O (aio.cc).
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

}  // namespace spill
