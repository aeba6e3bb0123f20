// Asynchronous name lookups (getaddrinfo_a). The C library does them in threads that take no signals at all, and so
// could not handle the fault of a spilled name: all are done here, by threads that each call starts.
//
// Invariants
//  1 a request says how it ended: result first, then its return word, which in the C library's type is where gai_error looks
//  2 the last to release a call, among the threads that serve it and the one that started them, notifies the program and frees the call
#include <errno.h>
#include <netdb.h>
#include <signal.h>

#include <atomic>
#include <new>

#include "spill/intercept/asynchronous.h"
#include "spill/intercept/intercept.h"
#include "sys/c_library.h"

extern "C" int __spill_getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                                   addrinfo** result);

namespace spill {
namespace {

struct Call {
  std::atomic<int> next;
  std::atomic<int> users;
  int count;
  sigevent event;
  gaicb* requests[];
};

int return_of(const gaicb* request) { return end_word(&request->__return); }
void set_return(gaicb* request, int value) { set_end_word(&request->__return, value); }

void look_up(gaicb* request) {
  const gaicb asked = load(request);
  addrinfo* found = nullptr;
  const int error = __spill_getaddrinfo(asked.ar_name, asked.ar_service, asked.ar_request, &found);
  store(&request->ar_result, found);
  set_return(request, error);
}

void let_go(Call* call) {
  if (call->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  tell(call->event, SI_ASYNCNL);
  sys::c_free(call);
}

void* serve(void* memory) {
  auto* call = static_cast<Call*>(memory);
  for (int i; (i = call->next.fetch_add(1, std::memory_order_relaxed)) < call->count;)
    look_up(call->requests[i]);
  let_go(call);
  return nullptr;
}

int start(gaicb* const* list, int count, const sigevent& event) {
  auto* memory = sys::c_malloc(sizeof(Call) + static_cast<size_t>(count) * sizeof(gaicb*));
  if (memory == nullptr) return EAI_MEMORY;
  auto* call = new (memory) Call{{0}, {1}, 0, event};
  for (int i = 0; i < count; ++i) {
    gaicb* request = load(&list[i]);
    if (request == nullptr) continue;
    set_return(request, EAI_INPROGRESS);
    call->requests[call->count++] = request;
  }
  constexpr int kMaxThreads = 16;
  for (int i = 0; i < std::min(call->count, kMaxThreads); ++i) {
    call->users.fetch_add(1, std::memory_order_relaxed);
    if (run_in_thread(nullptr, serve, call)) continue;
    // No thread can be created: does here what no other thread does.
    serve(call);
    break;
  }
  let_go(call);
  return 0;
}

int in_progress(const gaicb* const* list, int count) {
  int found = 0;
  for (int i = 0; i < count; ++i) {
    const gaicb* request = load(&list[i]);
    if (request != nullptr && return_of(request) == EAI_INPROGRESS) ++found;
  }
  return found;
}

}  // namespace

SPILL_EXPORT int __spill_getaddrinfo_a(int mode, gaicb** list, int count, sigevent* event) {
  if ((mode != GAI_WAIT && mode != GAI_NOWAIT) || count < 0) {
    errno = EINVAL;
    return EAI_SYSTEM;
  }
  sigevent end = {};
  end.sigev_notify = SIGEV_NONE;
  if (mode == GAI_NOWAIT && event != nullptr) end = load(event);
  const int error = start(list, count, end);
  if (error != 0 || mode == GAI_NOWAIT) return error;
  // Not to be cancelled or interrupted, as in the C library: lookups that have not ended store to requests that may lie on the caller's stack.
  int cancellable;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellable);
  while (in_progress(list, count) > 0) Patience(nullptr).pause();
  pthread_setcancelstate(cancellable, nullptr);
  return 0;
}
SPILL_EXPORT int __spill_gai_error(gaicb* request) { return return_of(request); }
// A lookup cannot be cancelled.
SPILL_EXPORT int __spill_gai_cancel(gaicb* request) {
  return return_of(request) == EAI_INPROGRESS ? EAI_NOTCANCELED : EAI_ALLDONE;
}
SPILL_EXPORT int __spill_gai_suspend(const gaicb* const* list, int count, const timespec* timeout) {
  const Patience patience(timeout);
  const int before = in_progress(list, count);
  if (before == 0) return EAI_ALLDONE;
  while (in_progress(list, count) == before)
    if (!patience.pause()) return errno == EINTR ? EAI_INTR : EAI_AGAIN;
  return 0;
}

}  // namespace spill
