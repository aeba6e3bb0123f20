// Less frequent system calls: structures and buffers are copied when they are spilled, since the kernel would refuse them (EFAULT).
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "spill/intercept/call.h"
#include "spill/intercept/io.h"

namespace {

// An array that the kernel reads, or reads and writes.
template <class T>
struct PlainArray : PlainBytes {
  PlainArray(const T* array, size_t count, Direction direction)
      : PlainBytes(array, count * sizeof(T), direction) {}
  operator T*() { return reinterpret_cast<T*>(data()); }
};

template <class T>
PlainArray<T> in(const T* array, size_t count) {
  return PlainArray<T>(array, count, PlainBytes::kIn);
}
template <class T>
PlainArray<T> in_out(T* array, size_t count) {
  return PlainArray<T>(array, count, PlainBytes::kInOut);
}

char* bytes(void* memory) { return static_cast<char*>(memory); }
const char* bytes(const void* memory) { return static_cast<const char*>(memory); }

// Calls receive(memory), which waits for a message: it fills in the first `head` bytes, and as many of the n after them as it returns. Nothing
// else is read or stored: there may be less room than the caller says.
template <class Receive>
ssize_t wait_for_message(void* to, size_t head, size_t n, Receive receive) {
  PlainBytes message(to, head + n, PlainBytes::kOut);
  // A call now would lose the message.
  if (message.data() == nullptr && to != nullptr && n > 0) return spill::fail(ENOMEM);
  spill::clear_slots();
  const ssize_t received = receive(message.data());
  if (received >= 0) message.store(head + static_cast<size_t>(received));
  return received;
}

}  // namespace

// Descriptors for notification.
SPILL_WAIT(int, eventfd_read, (int descriptor, eventfd_t* value), (descriptor, PlainObject<eventfd_t>(value)))
SPILL_WAIT(int, signalfd, (int descriptor, const sigset_t* set, int flags),
           (descriptor, PlainIn<sigset_t>(set), flags))
SPILL_NEXT(int, inotify_add_watch, (int descriptor, const char* path, uint32_t mask),
           (descriptor, PlainString(path), mask))
// Users and scheduling.
SPILL_WAIT(int, getresuid, (uid_t * real, uid_t* effective, uid_t* saved),
           (PlainObject<uid_t>(real), PlainObject<uid_t>(effective), PlainObject<uid_t>(saved)))
SPILL_WAIT(int, getresgid, (gid_t * real, gid_t* effective, gid_t* saved),
           (PlainObject<gid_t>(real), PlainObject<gid_t>(effective), PlainObject<gid_t>(saved)))
SPILL_WAIT(int, getcpu, (unsigned* processor, unsigned* node),
           (PlainObject<unsigned>(processor), PlainObject<unsigned>(node)))
SPILL_WAIT(int, setgroups, (size_t count, const gid_t* groups), (count, in(groups, count)))
SPILL_WAIT(int, sched_getparam, (pid_t process, sched_param* to), (process, PlainObject<sched_param>(to)))
SPILL_WAIT(int, sched_setparam, (pid_t process, const sched_param* from),
           (process, PlainIn<sched_param>(from)))
SPILL_WAIT(int, sched_setscheduler, (pid_t process, int policy, const sched_param* from),
           (process, policy, PlainIn<sched_param>(from)))
SPILL_WAIT(int, sched_rr_get_interval, (pid_t process, timespec* to), (process, PlainObject<timespec>(to)))
SPILL_WAIT(int, pthread_setschedparam, (pthread_t thread, int policy, const sched_param* from),
           (thread, policy, PlainIn<sched_param>(from)))
SPILL_WAIT(int, pthread_getaffinity_np, (pthread_t thread, size_t n, cpu_set_t* to),
           (thread, n, reinterpret_cast<cpu_set_t*>(PlainBytes(to, n, PlainBytes::kInOut).data())))
SPILL_WAIT(int, pthread_setaffinity_np, (pthread_t thread, size_t n, const cpu_set_t* from),
           (thread, n, reinterpret_cast<cpu_set_t*>(PlainBytes(from, n, PlainBytes::kIn).data())))
SPILL_WAIT(int, pthread_timedjoin_np, (pthread_t thread, void** result, const timespec* time),
           (thread, PlainObject<void*>(result), PlainIn<timespec>(time)))
SPILL_WAIT(int, pthread_clockjoin_np,
           (pthread_t thread, void** result, clockid_t clock, const timespec* time),
           (thread, PlainObject<void*>(result), clock, PlainIn<timespec>(time)))
SPILL_WAIT(int, thrd_sleep, (const timespec* time, timespec* left),
           (PlainIn<timespec>(time), PlainObject<timespec>(left)))
SPILL_WAIT(int, prlimit64, (pid_t process, __rlimit_resource resource, const rlimit64* from, rlimit64* old),
           (process, resource, PlainIn<rlimit64>(from), PlainObject<rlimit64>(old)))

// Clocks.
SPILL_WAIT(int, adjtimex, (timex * time), (PlainObject<timex>(time)))
SPILL_WAIT(int, ntp_adjtime, (timex * time), (PlainObject<timex>(time)))
SPILL_WAIT(int, timespec_getres, (timespec * to, int base), (PlainObject<timespec>(to), base))
SPILL_WAIT(int, clock_adjtime, (clockid_t clock, timex* time), (clock, PlainObject<timex>(time)))
SPILL_WAIT(int, clock_settime, (clockid_t clock, const timespec* time), (clock, PlainIn<timespec>(time)))
SPILL_WAIT(int, settimeofday, (const timeval* time, const struct timezone* zone),
           (PlainIn<timeval>(time), PlainIn<struct timezone>(zone)))

// System V: semaphores, messages, shared memory.
SPILL_WAIT(int, semop, (int id, sembuf* operations, size_t count), (id, in(operations, count), count))
SPILL_WAIT(int, semtimedop, (int id, sembuf* operations, size_t count, const timespec* time),
           (id, in(operations, count), count, PlainIn<timespec>(time)))
static int semctl_with_memory(int id, int index, int command, void* argument, size_t n) {
  return semctl(id, index, command, PlainBytes(argument, n, PlainBytes::kInOut).data());
}
// Only some commands take an address. Others take a number, in one half of a union semun whose other half is undefined, or
// nothing at all: then the word may look like any pointer.
SPILL_EXPORT int __spill_semctl(int id, int index, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  switch (command) {
    case IPC_STAT:
    case IPC_SET:
    case SEM_STAT:
    case SEM_STAT_ANY: return semctl_with_memory(id, index, command, argument, sizeof(semid_ds));
    case IPC_INFO:
    case SEM_INFO: return semctl_with_memory(id, index, command, argument, sizeof(seminfo));
    case GETALL:
    case SETALL: {
      // The largest set that a system allows, so that plain arrays need no check of the set's size.
      constexpr size_t kMaxBytes = size_t{1} << 17;
      semid_ds status = {};
      if (!spill::all_plain(argument, kMaxBytes) && semctl(id, 0, IPC_STAT, &status) != 0) return -1;
      return semctl_with_memory(id, index, command, argument, status.sem_nsems * sizeof(unsigned short));
    }
    default: return semctl(id, index, command, argument);
  }
}
SPILL_WAIT(int, msgsnd, (int id, const void* message, size_t n, int flags),
           (id, PlainBytes(message, n + sizeof(long), PlainBytes::kIn).data(), n, flags))
SPILL_EXPORT ssize_t __spill_msgrcv(int id, void* message, size_t n, long type, int flags) {
  return wait_for_message(message, sizeof(long), n, [=](char* to) { return msgrcv(id, to, n, type, flags); });
}
// As with semctl, the argument matters only to commands that take one; and MSG_INFO and IPC_INFO fill in a shorter structure.
SPILL_EXPORT int __spill_msgctl(int id, int command, msqid_ds* status) {
  switch (command) {
    case IPC_STAT:
    case IPC_SET:
    case MSG_STAT:
    case MSG_STAT_ANY: return msgctl(id, command, PlainObject<msqid_ds>(status));
    case IPC_INFO:
    case MSG_INFO: {
      PlainObject<msginfo> facts(reinterpret_cast<msginfo*>(status));
      return msgctl(id, command, reinterpret_cast<msqid_ds*>(static_cast<msginfo*>(facts)));
    }
    default: return msgctl(id, command, status);
  }
}
// Segments cannot be attached at spilled addresses: the kernel's mapping would replace memory that the runtime considers its own.
SPILL_EXPORT void* __spill_shmat(int id, const void* address, int flags) {
  if (!spill::in_range(address)) return shmat(id, address, flags);
  errno = EINVAL;
  return reinterpret_cast<void*>(-1);
}
SPILL_EXPORT int __spill_shmctl(int id, int command, shmid_ds* status) {
  switch (command) {
    case IPC_STAT:
    case IPC_SET:
    case SHM_STAT:
    case SHM_STAT_ANY: return shmctl(id, command, PlainObject<shmid_ds>(status));
    case IPC_INFO: {
      PlainObject<shminfo> facts(reinterpret_cast<shminfo*>(status));
      return shmctl(id, command, reinterpret_cast<shmid_ds*>(static_cast<shminfo*>(facts)));
    }
    case SHM_INFO: {
      PlainObject<shm_info> facts(reinterpret_cast<shm_info*>(status));
      return shmctl(id, command, reinterpret_cast<shmid_ds*>(static_cast<shm_info*>(facts)));
    }
    default: return shmctl(id, command, status);
  }
}

// POSIX message queues.
SPILL_EXPORT mqd_t __spill_mq_open(const char* name, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  mq_attr* attributes = (flags & O_CREAT) != 0 ? va_arg(list, mq_attr*) : nullptr;
  va_end(list);
  return mq_open(PlainString(name), flags, mode, static_cast<const mq_attr*>(PlainIn<mq_attr>(attributes)));
}
SPILL_WAIT(int, mq_unlink, (const char* name), (PlainString(name)))
SPILL_WAIT(int, mq_getattr, (mqd_t queue, mq_attr* to), (queue, PlainObject<mq_attr>(to)))
SPILL_WAIT(int, mq_setattr, (mqd_t queue, const mq_attr* from, mq_attr* old),
           (queue, PlainIn<mq_attr>(from), PlainObject<mq_attr>(old)))
SPILL_WAIT(int, mq_send, (mqd_t queue, const char* message, size_t n, unsigned priority),
           (queue, in(message, n), n, priority))
SPILL_WAIT(int, mq_timedsend,
           (mqd_t queue, const char* message, size_t n, unsigned priority, const timespec* time),
           (queue, in(message, n), n, priority, PlainIn<timespec>(time)))
SPILL_EXPORT ssize_t __spill_mq_receive(mqd_t queue, char* message, size_t n, unsigned* priority) {
  PlainObject<unsigned> plain_priority(priority);
  return wait_for_message(message, 0, n, [&](char* to) { return mq_receive(queue, to, n, plain_priority); });
}
SPILL_EXPORT ssize_t __spill_mq_timedreceive(mqd_t queue, char* message, size_t n, unsigned* priority,
                                             const timespec* time) {
  PlainObject<unsigned> plain_priority(priority);
  PlainIn<timespec> plain_time(time);
  return wait_for_message(
      message, 0, n, [&](char* to) { return mq_timedreceive(queue, to, n, plain_priority, plain_time); });
}

// Files.
SPILL_NEXT(ssize_t, fgetxattr, (int file, const char* name, void* to, size_t n),
           (file, PlainString(name), in_out(bytes(to), n), n))
SPILL_NEXT(ssize_t, lgetxattr, (const char* path, const char* name, void* to, size_t n),
           (PlainString(path), PlainString(name), in_out(bytes(to), n), n))
SPILL_NEXT(int, fsetxattr, (int file, const char* name, const void* from, size_t n, int flags),
           (file, PlainString(name), in(bytes(from), n), n, flags))
SPILL_NEXT(int, lsetxattr, (const char* path, const char* name, const void* from, size_t n, int flags),
           (PlainString(path), PlainString(name), in(bytes(from), n), n, flags))
SPILL_NEXT(ssize_t, flistxattr, (int file, char* to, size_t n), (file, in_out(to, n), n))
SPILL_NEXT(ssize_t, llistxattr, (const char* path, char* to, size_t n), (PlainString(path), in_out(to, n), n))
SPILL_NEXT(int, removexattr, (const char* path, const char* name), (PlainString(path), PlainString(name)))
SPILL_NEXT(int, lremovexattr, (const char* path, const char* name), (PlainString(path), PlainString(name)))
SPILL_NEXT(int, fremovexattr, (int file, const char* name), (file, PlainString(name)))
SPILL_WAIT(key_t, ftok, (const char* path, int project), (PlainString(path), project))
SPILL_WAIT(int, futimes, (int file, const timeval* times), (file, in(times, times != nullptr ? 2 : 0)))
SPILL_WAIT(int, lutimes, (const char* path, const timeval* times),
           (PlainString(path), in(times, times != nullptr ? 2 : 0)))
SPILL_WAIT(int, futimesat, (int folder, const char* path, const timeval* times),
           (folder, PlainString(path), in(times, times != nullptr ? 2 : 0)))
SPILL_WAIT(int, memfd_create, (const char* name, unsigned flags), (PlainString(name), flags))
SPILL_WAIT(ssize_t, getdents64, (int folder, void* to, size_t n), (folder, in_out(bytes(to), n), n))
SPILL_WAIT(ssize_t, getdirentries, (int folder, char* to, size_t n, off_t* at),
           (folder, in_out(to, n), n, PlainObject<off_t>(at)))
SPILL_WAIT(ssize_t, getdirentries64, (int folder, char* to, size_t n, off64_t* at),
           (folder, in_out(to, n), n, PlainObject<off64_t>(at)))
SPILL_WAIT(int, mount,
           (const char* device, const char* folder, const char* type, unsigned long flags, const void* data),
           (PlainString(device), PlainString(folder), PlainString(type), flags,
            plain(data) ? data
                        : static_cast<const void*>(static_cast<const char*>(PlainString(bytes(data))))))
SPILL_WAIT(int, umount, (const char* folder), (PlainString(folder)))
SPILL_WAIT(int, umount2, (const char* folder, int flags), (PlainString(folder), flags))
SPILL_WAIT(int, setdomainname, (const char* name, size_t n), (in(name, n), n))
SPILL_WAIT(int, sethostname, (const char* name, size_t n), (in(name, n), n))

// Moving bytes.
SPILL_WAIT(ssize_t, splice,
           (int from, off64_t* from_offset, int to, off64_t* to_offset, size_t n, unsigned flags),
           (from, PlainObject<off64_t>(from_offset), to, PlainObject<off64_t>(to_offset), n, flags))
// The pages of spilled memory cannot be lent to a pipe: their bytes are copied to it.
SPILL_EXPORT ssize_t __spill_vmsplice(int pipe, const iovec* vector, size_t count, unsigned flags) {
  const spill::PlainVector memory(vector, count);
  spill::clear_slots();
  if (!memory.is_valid() || memory.is_plain() || memory.bytes() == 0)
    return vmsplice(pipe, memory.buffers().data(), count, flags);
  const bool waits = (flags & SPLICE_F_NONBLOCK) == 0;
  // A pipe that poll() reports as writable takes this much without waiting.
  constexpr size_t kRoom = PIPE_BUF;
  spill::Scratch buffer(std::min(memory.bytes(), waits ? spill::kBounceBytes : kRoom));
  if (buffer.data() == nullptr) return spill::fail(ENOMEM);
  memory.gather(0, buffer.data(), buffer.size());
  spill::clear_slots();
  const iovec whole = {buffer.data(), buffer.size()};
  const int mode = fcntl(pipe, F_GETFL);
  // On the reading end of a pipe the call moves bytes the other way, which is not supported.
  if (mode == -1 || (mode & O_ACCMODE) == O_RDONLY) return spill::fail(EBADF);
  pollfd room = {pipe, POLLOUT, 0};
  if (!waits && LIBC(poll)(&room, 1, 0) == 0) return spill::fail(EAGAIN);
  return LIBC(writev)(pipe, &whole, 1);
}

// Moves bytes between this process and another one, piece by piece. Addresses in the other one are used as they are.
template <class Move>
static ssize_t move_to_process(const iovec* local, size_t local_count, const iovec* remote,
                               size_t remote_count, bool reads, Move move) {
  const spill::PlainVector here(local, local_count), there(remote, remote_count);
  spill::clear_slots();
  if (!here.is_valid() || !there.is_valid() || here.is_plain())
    return move(here.buffers().data(), local_count, there.buffers().data(), remote_count);
  const size_t n = std::min(here.bytes(), there.bytes());
  spill::Scratch buffer(std::min(n, spill::kBounceBytes)), rest(remote_count * sizeof(iovec));
  if (n == 0) return move(nullptr, 0, there.buffers().data(), remote_count);
  if (buffer.data() == nullptr || rest.data() == nullptr) return spill::fail(ENOMEM);
  auto* parts = reinterpret_cast<iovec*>(rest.data());
  size_t done = 0;
  do {
    const iovec piece = {buffer.data(), std::min(n - done, buffer.size())};
    if (!reads) here.gather(done, buffer.data(), piece.iov_len);
    spill::clear_slots();
    const ssize_t moved = move(&piece, 1, parts, there.part(done, piece.iov_len, parts));
    if (moved < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
    if (reads) here.scatter(done, buffer.data(), static_cast<size_t>(moved));
    done += static_cast<size_t>(moved);
    if (static_cast<size_t>(moved) < piece.iov_len) break;
  } while (done < n);
  return static_cast<ssize_t>(done);
}
SPILL_EXPORT ssize_t __spill_process_vm_readv(pid_t process, const iovec* local, size_t local_count,
                                              const iovec* remote, size_t remote_count, unsigned long flags) {
  return move_to_process(local, local_count, remote, remote_count, true,
                         [=](const iovec* here, size_t n, const iovec* there, size_t there_count) {
                           return process_vm_readv(process, here, n, there, there_count, flags);
                         });
}
SPILL_EXPORT ssize_t __spill_process_vm_writev(pid_t process, const iovec* local, size_t local_count,
                                               const iovec* remote, size_t remote_count,
                                               unsigned long flags) {
  return move_to_process(local, local_count, remote, remote_count, false,
                         [=](const iovec* here, size_t n, const iovec* there, size_t there_count) {
                           return process_vm_writev(process, here, n, there, there_count, flags);
                         });
}

// Several messages: one after the other if the kernel cannot be given all of them as they are. As in the kernel, no more than IOV_MAX are considered.
extern "C" ssize_t __spill_sendmsg(int socket, const msghdr* header, int flags);
extern "C" ssize_t __spill_recvmsg(int socket, msghdr* header, int flags);

static bool are_plain(const mmsghdr* messages, unsigned count) {
  if (!spill::all_plain(messages, count * sizeof *messages)) return false;
  return std::all_of(messages, messages + count, [](const mmsghdr& message) {
    const msghdr& header = message.msg_hdr;
    const spill::PlainVector vector(header.msg_iov, header.msg_iovlen);
    return (!vector.is_valid() || (vector.is_plain() && vector.buffers().data() == header.msg_iov)) &&
           spill::all_plain(header.msg_name, header.msg_namelen) &&
           spill::all_plain(header.msg_control, header.msg_controllen);
  });
}

SPILL_EXPORT int __spill_sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  count = std::min<unsigned>(count, IOV_MAX);
  if (are_plain(messages, count)) {
    spill::clear_slots();
    return LIBC(sendmmsg)(socket, messages, count, flags);
  }
  for (unsigned i = 0; i < count; ++i) {
    const ssize_t sent = __spill_sendmsg(socket, &messages[i].msg_hdr, flags);
    if (sent < 0) return i > 0 ? static_cast<int>(i) : -1;
    spill::store(&messages[i].msg_len, static_cast<unsigned>(sent));
    // As in the kernel, nothing is sent after a part of a message: the program must send the rest first.
    const msghdr header = spill::load(&messages[i].msg_hdr);
    if (static_cast<size_t>(sent) < spill::PlainVector(header.msg_iov, header.msg_iovlen).bytes())
      return static_cast<int>(i + 1);
  }
  return static_cast<int>(count);
}

// Stores the time left until `end`; false if it has come.
static bool store_time_left(const timespec& end, timespec* to) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  timespec left = {end.tv_sec - now.tv_sec, end.tv_nsec - now.tv_nsec};
  if (left.tv_nsec < 0) left = {left.tv_sec - 1, left.tv_nsec + 1'000'000'000};
  if (left.tv_sec < 0) left = {};
  spill::store(to, left);
  return left.tv_sec > 0 || left.tv_nsec > 0;
}

SPILL_EXPORT int __spill_recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags,
                                  timespec* timeout) {
  count = std::min<unsigned>(count, IOV_MAX);
  if (are_plain(messages, count)) {
    spill::PlainObject<timespec> plain_timeout(timeout);
    spill::clear_slots();
    return LIBC(recvmmsg)(socket, messages, count, flags, plain_timeout);
  }
  timespec end = {};
  if (timeout != nullptr) {
    const timespec limit = spill::load(timeout);
    if (limit.tv_sec < 0 || limit.tv_nsec < 0 || limit.tv_nsec >= 1'000'000'000) return spill::fail(EINVAL);
    end = spill::monotonic_after(limit);
  }
  for (unsigned i = 0; i < count; ++i) {
    const ssize_t received = __spill_recvmsg(socket, &messages[i].msg_hdr, flags & ~MSG_WAITFORONE);
    if (received < 0) return i > 0 ? static_cast<int>(i) : -1;
    spill::store(&messages[i].msg_len, static_cast<unsigned>(received));
    if ((flags & MSG_WAITFORONE) != 0) flags |= MSG_DONTWAIT;
    // As in the kernel, the time is checked between messages, and the time left is stored.
    if (timeout != nullptr && !store_time_left(end, timeout)) return static_cast<int>(i + 1);
  }
  return static_cast<int>(count);
}
