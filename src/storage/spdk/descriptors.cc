#include "storage/spdk/descriptors.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

namespace storage::spdk {
namespace {

SpdkHost host = {};
pid_t process = 0;

int own(int descriptor) {
  if (descriptor < 0) return descriptor;
  const int owned = host.own_descriptor(descriptor);
  return owned >= 0 ? owned : descriptor;
}

}  // namespace

void use_host(const SpdkHost& its) {
  host = its;
  process = getpid();
}

extern "C" {

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol) { return own(__real_socket(domain, type, protocol)); }

int __real_epoll_create(int size);
int __wrap_epoll_create(int size) { return own(__real_epoll_create(size)); }

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags) { return own(__real_epoll_create1(flags)); }

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags) { return own(__real_eventfd(count, flags)); }

int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags) { return own(__real_timerfd_create(clock, flags)); }

int __real_memfd_create(const char* name, unsigned flags);
int __wrap_memfd_create(const char* name, unsigned flags) { return own(__real_memfd_create(name, flags)); }

int __real_pipe(int* pair);
int __wrap_pipe(int* pair) {
  const int result = __real_pipe(pair);
  if (result == 0) pair[0] = own(pair[0]), pair[1] = own(pair[1]);
  return result;
}

int __real_close(int descriptor);
int __wrap_close(int descriptor) {
  if (host.is_own_descriptor == nullptr || !host.is_own_descriptor(descriptor))
    return __real_close(descriptor);
  // Children of fork have copies, which would keep a connection; it is not theirs to end.
  if (getpid() == process) shutdown(descriptor, SHUT_RDWR);
  host.close_descriptor(descriptor);
  return 0;
}

}  // extern "C"

}  // namespace storage::spdk
