// Waiting for descriptors, and pipes: arrays, sets and events are copied when they are spilled.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "spill/intercept/call.h"
#include "spill/intercept/io.h"
#include "spill/intercept/plain_mask.h"
#include "sys/files.h"

using spill::PlainMask;

// Stores only `revents`: other threads may change the rest meanwhile.
template <class Wait>
static int wait_for_descriptors(pollfd* descriptors, nfds_t count, Wait wait) {
  PlainBytes memory(descriptors, count * sizeof(pollfd), PlainBytes::kIn);
  auto* copies = reinterpret_cast<pollfd*>(memory.data());
  spill::clear_slots();
  const int ready = wait(copies);
  // The kernel stores results of interrupted calls as well.
  if (copies == descriptors || copies == nullptr || (ready < 0 && errno != EINTR)) return ready;
  for (nfds_t i = 0; i < count; ++i) spill::store(&descriptors[i].revents, copies[i].revents);
  return ready;
}
SPILL_EXPORT int __spill_poll(pollfd* descriptors, nfds_t count, int timeout) {
  return wait_for_descriptors(descriptors, count, [=](pollfd* d) { return LIBC(poll)(d, count, timeout); });
}
SPILL_EXPORT int __spill_ppoll(pollfd* descriptors, nfds_t count, const timespec* timeout,
                               const sigset_t* mask) {
  PlainIn<timespec> plain_timeout(timeout);
  PlainMask plain_mask(mask);
  return wait_for_descriptors(descriptors, count,
                              [&](pollfd* d) { return ppoll(d, count, plain_timeout, plain_mask); });
}
SPILL_EXPORT int __spill___ppoll_chk(pollfd* descriptors, nfds_t count, const timespec* timeout,
                                     const sigset_t* mask, size_t room) {
  if (room / sizeof(pollfd) < count) spill::buffer_overflow();
  return __spill_ppoll(descriptors, count, timeout, mask);
}
SPILL_EXPORT int __spill___poll_chk(pollfd* descriptors, nfds_t count, int timeout, size_t room) {
  if (room / sizeof(pollfd) < count) spill::buffer_overflow();
  return __spill_poll(descriptors, count, timeout);
}

int spill::descriptors_looked_at(int count) {
  if (count <= FD_SETSIZE) return count;
  constexpr int kMostInTable = 1 << 20;  // unless an administrator allows more
  constexpr char kKey[] = "\nFDSize:\t";
  char text[1024];
  const bool is_told = sys::read_small_file("/proc/thread-self/status", text) > 0;
  const char* const key = is_told ? strstr(text, kKey) : nullptr;
  const int room = key != nullptr ? atoi(key + sizeof kKey - 1) : kMostInTable;
  return std::min(count, std::max(room, FD_SETSIZE));
}

namespace {

// As large as the call says, which may be larger than an fd_set.
struct PlainSet : PlainBytes {
  PlainSet(fd_set* set, int count)
      : PlainBytes(set, count > 0 ? (static_cast<size_t>(count) + 63) / 64 * 8 : 0, PlainBytes::kIn) {}
  operator fd_set*() { return reinterpret_cast<fd_set*>(data()); }
  void store_all() { store(~size_t{0}); }
};

// The kernel changes the sets only on success. Else nothing is stored: a handler that ran meanwhile may have changed them.
template <class Wait>
int wait_for_sets(int count, fd_set* reads, fd_set* writes, fd_set* errors, Wait wait) {
  if (!plain(reads, writes, errors)) count = spill::descriptors_looked_at(count);
  PlainSet plain_reads(reads, count), plain_writes(writes, count), plain_errors(errors, count);
  spill::clear_slots();
  const int ready = wait(count, plain_reads, plain_writes, plain_errors);
  if (ready < 0) return ready;
  plain_reads.store_all();
  plain_writes.store_all();
  plain_errors.store_all();
  return ready;
}

}  // namespace

SPILL_EXPORT int __spill_select(int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout) {
  PlainObject<timeval> plain_timeout(timeout);
  return wait_for_sets(count, reads, writes, errors, [&](int n, fd_set* r, fd_set* w, fd_set* e) {
    return select(n, r, w, e, plain_timeout);
  });
}
SPILL_EXPORT int __spill_pselect(int count, fd_set* reads, fd_set* writes, fd_set* errors,
                                 const timespec* timeout, const sigset_t* mask) {
  PlainIn<timespec> plain_timeout(timeout);
  PlainMask plain_mask(mask);
  return wait_for_sets(count, reads, writes, errors, [&](int n, fd_set* r, fd_set* w, fd_set* e) {
    return pselect(n, r, w, e, plain_timeout, plain_mask);
  });
}

// The event is only read, and not even that if a descriptor is removed: then it may be any address.
SPILL_EXPORT int __spill_epoll_ctl(int epoll, int operation, int descriptor, epoll_event* event) {
  const PlainIn<epoll_event> plain_event(operation != EPOLL_CTL_DEL ? event : nullptr);
  return epoll_ctl(epoll, operation, descriptor,
                   const_cast<epoll_event*>(static_cast<const epoll_event*>(plain_event)));
}

// wait(to, count) is the system call. A spilled array gets no more events than fit the thread's Scratch: servers provide much
// more room than they need, and the remaining events come with the next call.
template <class Wait>
static int wait_for_events(epoll_event* events, int count, Wait wait) {
  spill::clear_slots();
  if (count <= 0) return wait(events, count);
  constexpr int kMaxCopied = spill::kBounceBytes / sizeof(epoll_event);
  if (!spill::all_plain(events, static_cast<size_t>(count) * sizeof(epoll_event)))
    count = std::min(count, kMaxCopied);
  PlainBytes memory(events, static_cast<size_t>(count) * sizeof(epoll_event), PlainBytes::kOut);
  const int ready = wait(reinterpret_cast<epoll_event*>(memory.data()), count);
  if (ready > 0) memory.store(static_cast<size_t>(ready) * sizeof(epoll_event));
  return ready;
}
SPILL_EXPORT int __spill_epoll_wait(int epoll, epoll_event* events, int count, int timeout) {
  return wait_for_events(events, count,
                         [=](epoll_event* to, int n) { return LIBC(epoll_wait)(epoll, to, n, timeout); });
}
SPILL_EXPORT int __spill_epoll_pwait(int epoll, epoll_event* events, int count, int timeout,
                                     const sigset_t* mask) {
  PlainMask plain_mask(mask);
  return wait_for_events(events, count, [&](epoll_event* to, int n) {
    return LIBC(epoll_pwait)(epoll, to, n, timeout, plain_mask);
  });
}
SPILL_EXPORT int __spill_epoll_pwait2(int epoll, epoll_event* events, int count, const timespec* timeout,
                                      const sigset_t* mask) {
  PlainMask plain_mask(mask);
  PlainIn<timespec> plain_timeout(timeout);
  return wait_for_events(events, count, [&](epoll_event* to, int n) {
    return epoll_pwait2(epoll, to, n, plain_timeout, plain_mask);
  });
}

struct TwoDescriptors {
  int pair[2];
};
SPILL_EXPORT int __spill_pipe(int* ends) {
  return pipe(PlainObject<TwoDescriptors>(reinterpret_cast<TwoDescriptors*>(ends))->pair);
}
SPILL_EXPORT int __spill_pipe2(int* ends, int flags) {
  return pipe2(PlainObject<TwoDescriptors>(reinterpret_cast<TwoDescriptors*>(ends))->pair, flags);
}
