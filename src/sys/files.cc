#include "sys/files.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>

#include "base/check.h"
#include "base/text.h"
#include "sys/kernel.h"
#include "sys/signals.h"

namespace sys {
namespace {

// Above what most programs use, and below the usual soft limit of 1024, with room for the runtime's.
constexpr int kFirstOwnDescriptor = 900;

// own[i] is a descriptor + 1, 0 for a free element.
constinit std::atomic<int> own[kMaxOwnDescriptors];

// Descriptor 2 until keep_error_output(), then a duplicate of it, or kGivenUp.
constinit std::atomic<int> kept_error_output{2};
constexpr int kGivenUp = -1;
// What descriptor 2 led to when it was duplicated.
struct Output {
  bool is_known;
  bool has_reader;  // a pipe or socket, whose reader may wait for its end
  uint64_t device;
  uint64_t inode;
};
constinit Output first_error_output = {};

Output look_at(int descriptor) {
  struct stat facts;
  if (failed(syscall(SYS_fstat, descriptor, &facts))) return {};
  return {true, S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode), facts.st_dev, facts.st_ino};
}

bool is_first_error_output(int descriptor) {
  const Output now = look_at(descriptor);
  return now.is_known && first_error_output.is_known && now.device == first_error_output.device &&
         now.inode == first_error_output.inode;
}

}  // namespace

base::Expected<int> own_descriptor(int descriptor) {
  // A low RLIMIT_NOFILE leaves few high numbers, or none: lower ones then.
  long moved = -EINVAL;
  for (const int first : {kFirstOwnDescriptor, 100, 3}) {
    moved = syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, first);
    if (moved != -EINVAL && moved != -EMFILE) break;
  }
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

base::Expected<int> own_new_descriptor(long descriptor) {
  auto owned = own_descriptor(static_cast<int>(descriptor));
  if (!owned) syscall(SYS_close, descriptor);
  return owned;
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

int error_output() {
  const int kept = kept_error_output.load(std::memory_order_relaxed);
  return kept != kGivenUp ? kept : is_first_error_output(2) ? 2 : -1;
}

void keep_error_output() {
  first_error_output = look_at(2);
  kept_error_output.store(kGivenUp, std::memory_order_relaxed);
  long copy = syscall(SYS_fcntl, 2, F_DUPFD_CLOEXEC, 3);
  if (failed(copy)) return;
  if (auto moved = own_descriptor(static_cast<int>(copy)))
    kept_error_output.store(*moved, std::memory_order_relaxed);
  else
    syscall(SYS_close, copy);
}

void leave_error_output() {
  const int kept = kept_error_output.load(std::memory_order_relaxed);
  if (kept == 2 || kept == kGivenUp) return;
  kept_error_output.store(kGivenUp, std::memory_order_relaxed);
  close_own_descriptor(kept);
}

void error_output_replaced() {
  if (first_error_output.has_reader && !is_first_error_output(2)) leave_error_output();
}

void borrow_error_output() {
  const long process = syscall(SYS_pidfd_open, syscall(SYS_getpid), 0);
  if (failed(process)) return;
  const long theirs = syscall(SYS_pidfd_getfd, process, 2, 0);
  syscall(SYS_close, process);
  if (failed(theirs) || theirs == 2) return;
  syscall(SYS_dup3, theirs, 2, O_CLOEXEC);
  syscall(SYS_close, theirs);
}

long write_quietly(int descriptor, const char* from, size_t bytes) {
  constexpr uint64_t kReaderLeft = signal_bit(SIGPIPE), kFileTooLarge = signal_bit(SIGXFSZ);
  const BlockedSignals blocked(kReaderLeft | kFileTooLarge);
  long written;
  do {
    written = syscall(SYS_write, descriptor, from, bytes);
  } while (written == -EINTR);
  const uint64_t raised = written == -EPIPE ? kReaderLeft : written == -EFBIG ? kFileTooLarge : 0;
  constexpr timespec kAtOnce = {};
  if (raised != 0) syscall(SYS_rt_sigtimedwait, &raised, nullptr, &kAtOnce, sizeof raised);
  return written;
}

uint64_t file_size_limit() {
  struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit);
  return limit.rlim_cur;
}

long allocate_file(int descriptor, uint64_t offset, uint64_t bytes) {
  const auto allocate = [&] { return syscall(SYS_fallocate, descriptor, 0, offset, bytes); };
  long result = allocate();
  if (result != -EINTR) return result;
  // When it is interrupted, tmpfs gives back what it has allocated so far: a timer's signals could keep it from ever finishing.
  const BlockedSignals blocked(kSentSignals);
  while (result == -EINTR) result = allocate();
  return result;
}

void random_bytes(std::span<unsigned char> to) {
  while (!to.empty()) {
    long n = syscall(SYS_getrandom, to.data(), to.size(), 0);
    if (failed(n) && n != -EINTR) {
      // A sandbox that does not know getrandom().
      const long device = syscall(SYS_openat, AT_FDCWD, "/dev/urandom", O_RDONLY | O_CLOEXEC, 0);
      n = syscall(SYS_read, device, to.data(), to.size());
      syscall(SYS_close, device);
      CHECK_GT(n, 0);
    }
    if (n > 0) to = to.subspan(static_cast<size_t>(n));
  }
}

std::string_view folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

long sync_name(std::string_view path) {
  const auto uninterrupted = [](const auto& call) {
    long result = -EINTR;
    while (result == -EINTR) result = call();
    return result;
  };
  base::Text<PATH_MAX> folder;
  folder << folder_of(path);
  const long opened = uninterrupted(
      [&] { return syscall(SYS_openat, AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  const long result = failed(opened) ? opened : uninterrupted([&] { return syscall(SYS_fsync, opened); });
  if (!failed(opened)) syscall(SYS_close, opened);
  return result == -EACCES || result == -EINVAL ? 0 : result;
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

uint64_t number_in_file(int descriptor, std::string_view key) {
  constexpr size_t kOverlap = 128;  // longer than a key with its number
  char text[4096];
  for (uint64_t offset = 0;;) {
    const long length = syscall(SYS_pread64, descriptor, text, sizeof text, offset);
    if (length <= 0) return 0;
    const std::string_view piece(text, static_cast<size_t>(length));
    size_t at = piece.find(key);
    const bool is_cut = at == piece.npos || piece.size() - at < kOverlap;
    if (is_cut && piece.size() > kOverlap) {
      offset += piece.size() - kOverlap;
      continue;
    }
    if (at == piece.npos) return 0;
    at += key.size();
    while (at < piece.size() && (piece[at] == ' ' || piece[at] == '\t')) ++at;
    uint64_t number = 0;
    for (; at < piece.size() && piece[at] >= '0' && piece[at] <= '9'; ++at)
      number = number * 10 + static_cast<uint64_t>(piece[at] - '0');
    return number;
  }
}

}  // namespace sys
