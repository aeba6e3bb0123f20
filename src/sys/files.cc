#include "sys/files.h"

#include <fcntl.h>

#include <atomic>

#include "sys/kernel.h"

namespace sys {
namespace {

// Above what select() can name and below the usual soft limit's reach for a few descriptors.
constexpr int kFirstOwnDescriptor = 900;
constexpr size_t kMaxOwnDescriptors = 256;

// own[i] is a descriptor + 1, 0 for a free element.
constinit std::atomic<int> own[kMaxOwnDescriptors];
constinit std::atomic<int> kept_error_output{2};

}  // namespace

base::Expected<int> own_descriptor(int descriptor) {
  long moved = syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, kFirstOwnDescriptor);
  // A low RLIMIT_NOFILE makes high numbers invalid: stay where we are then.
  if (moved == -EINVAL) moved = syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, 100);
  if (moved == -EINVAL) moved = syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, 3);
  if (failed(moved)) {
    return base::failure(static_cast<int>(-moved),
                         "no descriptor left for the runtime: ", base::error_name(static_cast<int>(-moved)),
                         "; raise ulimit -n");
  }
  for (auto& element : own) {
    int expected = 0;
    if (element.compare_exchange_strong(expected, static_cast<int>(moved) + 1, std::memory_order_acq_rel)) {
      syscall(SYS_close, descriptor);
      return static_cast<int>(moved);
    }
  }
  syscall(SYS_close, moved);
  return base::failure(EMFILE, "the runtime holds ", kMaxOwnDescriptors, " descriptors already");
}

base::Expected<void> own_descriptor_pair(int (&pair)[2]) {
  for (int i = 0; i < 2; ++i) {
    auto moved = own_descriptor(pair[i]);
    if (!moved) {
      for (int j = i; j < 2; ++j) syscall(SYS_close, pair[j]);
      if (i == 1) close_own_descriptor(pair[0]);
      return std::unexpected(moved.error());
    }
    pair[i] = *moved;
  }
  return {};
}

void close_own_descriptor(int descriptor) {
  for (auto& element : own) {
    int expected = descriptor + 1;
    if (element.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) {
      syscall(SYS_close, descriptor);
      return;
    }
  }
}

bool is_own_descriptor(int descriptor) {
  if (descriptor < 0) return false;
  for (auto& element : own)
    if (element.load(std::memory_order_acquire) == descriptor + 1) return true;
  return false;
}

size_t own_descriptors(std::span<int> to) {
  size_t count = 0;
  for (auto& element : own) {
    int value = element.load(std::memory_order_acquire);
    if (value == 0) continue;
    size_t at = count < to.size() ? count : to.size();
    while (at > 0 && to[at - 1] > value - 1) {
      if (at < to.size()) to[at] = to[at - 1];
      --at;
    }
    if (at < to.size()) to[at] = value - 1;
    ++count;
  }
  return count;
}

int error_output() { return kept_error_output.load(std::memory_order_relaxed); }

void keep_error_output() {
  long copy = syscall(SYS_fcntl, 2, F_DUPFD_CLOEXEC, 3);
  if (failed(copy)) return;
  if (auto moved = own_descriptor(static_cast<int>(copy)))
    kept_error_output.store(*moved, std::memory_order_relaxed);
  else
    syscall(SYS_close, copy);
}

void random_bytes(std::span<unsigned char> to) {
  while (!to.empty()) {
    long n = syscall(SYS_getrandom, to.data(), to.size(), 0);
    if (n > 0) to = to.subspan(static_cast<size_t>(n));
  }
}

long read_small_file(const char* path, std::span<char> to) {
  long descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (failed(descriptor)) return descriptor;
  size_t size = 0;
  while (size + 1 < to.size()) {
    long n = syscall(SYS_read, descriptor, to.data() + size, to.size() - 1 - size);
    if (n <= 0) break;
    size += static_cast<size_t>(n);
  }
  to[size] = 0;
  syscall(SYS_close, descriptor);
  return static_cast<long>(size);
}

}  // namespace sys
