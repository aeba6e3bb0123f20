// read, write and their kin on spilled memory.
//
//   up to 64 KiB                  one system call through Scratch, whatever the descriptor
//   more, file or block device    the pages are wired and the kernel moves the bytes, range by range
//   more, other device            up to 2 MiB one call through Scratch, beyond that as a file
//   more, else                    it may wait: 64 KiB per call through Scratch, 1 MiB for a socket, or all of it to keep
//                                 messages whole. A read returns what came; a write goes on until all is written or a call writes less than asked
// An error after some bytes were moved is left for the next call to find, as in POSIX.
//
// In the process's own memory file in /proc the kernel shows zeros at spilled addresses, and what it stores there is lost: such accesses fail
// with EIO.
#include "spill/intercept/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "spill/address_space.h"
#include "spill/next.h"
#include "sys/kernel.h"
#include "sys/signals.h"

namespace spill {

PlainVector::PlainVector(const iovec* vector, size_t count)
    : count_(count <= IOV_MAX ? count : 0),
      copy_(vector, count_ * sizeof(iovec), PlainBytes::kIn),
      vector_(reinterpret_cast<const iovec*>(copy_.data())),
      valid_(count <= IOV_MAX && (count == 0 || vector_ != nullptr)) {
  if (!valid_) count_ = 0;
  for (const iovec& buffer : buffers()) {
    if (__builtin_add_overflow(bytes_, buffer.iov_len, &bytes_)) valid_ = false;
    plain_ &= all_plain(buffer.iov_base, buffer.iov_len);
  }
}

namespace {

bool may_access(uint64_t address, Need need) {
  if (in_range(address) && !is_allocated(address)) return false;
  const Protection protection = protection_at(address);
  return protection == Protection::kKernel || allows(protection, need);
}

// The first address after `address` where may_access() may return something else; at most `end`.
uint64_t same_access_end(uint64_t address, uint64_t end) {
  const uint64_t stop = same_protection_end(address, end);
  return in_range(address) ? same_allocation_end(address, stop) : stop;
}

}  // namespace

size_t PlainVector::allowed_bytes(Need need) const {
  size_t bytes = 0;
  for (const iovec& buffer : buffers()) {
    const auto begin = reinterpret_cast<uint64_t>(buffer.iov_base);
    uint64_t at = begin;
    while (at < begin + buffer.iov_len && may_access(at, need))
      at = same_access_end(at, begin + buffer.iov_len);
    bytes += at - begin;
    if (at < begin + buffer.iov_len) break;
  }
  return bytes;
}

namespace {

// f(address, position among the n bytes, length) for the parts of the vector's bytes [at, at + n).
template <class F>
void for_each_part(std::span<const iovec> buffers, size_t at, size_t n, F f) {
  size_t done = 0;
  for (const iovec& buffer : buffers) {
    if (done == n) return;
    if (at >= buffer.iov_len) {
      at -= buffer.iov_len;
      continue;
    }
    const size_t length = std::min(buffer.iov_len - at, n - done);
    f(static_cast<char*>(buffer.iov_base) + at, done, length);
    done += length;
    at = 0;
  }
}

}  // namespace

void PlainVector::gather(size_t at, char* to, size_t n) const {
  for_each_part(buffers(), at, n,
                [to](char* part, size_t position, size_t length) { copy(to + position, part, length); });
}
size_t PlainVector::part(size_t at, size_t n, iovec* to) const {
  size_t count = 0;
  for_each_part(buffers(), at, n,
                [&](char* address, size_t, size_t length) { to[count++] = {address, length}; });
  return count;
}
void PlainVector::scatter(size_t at, const char* from, size_t n) const {
  for_each_part(buffers(), at, n,
                [from](char* part, size_t position, size_t length) { copy(part, from + position, length); });
}

namespace {

enum class Kind { kFile, kDevice, kSocket, kStream };

// What one call may move from or to a device that takes requests whole. The longest, those of FUSE (/dev/fuse), are a MiB and a header.
constexpr size_t kDeviceBounceBytes = 2 << 20;

// Files and block devices (kFile) do not wait without limit.
Kind kind_of(int descriptor) {
  const int error = errno;
  struct stat status;
  Kind kind = Kind::kStream;
  if (fstat(descriptor, &status) == 0) {
    if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode))
      kind = Kind::kFile;
    else if (S_ISCHR(status.st_mode) && !isatty(descriptor))
      kind = Kind::kDevice;
    else if (S_ISSOCK(status.st_mode))
      kind = Kind::kSocket;
  }
  errno = error;
  return kind;
}

// A transfer in one direction: `call(vector, count, done)` makes the system call for what follows the first `done` bytes.
enum class Direction { kRead, kWrite };
constexpr Need need_of(Direction direction) {
  return direction == Direction::kRead ? Need::kWrite : Need::kRead;
}

// Through Scratch. A read is one call; a write goes on.
template <Direction direction, class Call>
ssize_t bounce(const PlainVector& memory, size_t capacity, Call call) {
  const size_t n = std::min(memory.allowed_bytes(need_of(direction)), kCallBytes);
  // The kernel may have another error to report, or nothing to move.
  if (n == 0 && memory.bytes() > 0)
    return call(memory.buffers().data(), static_cast<int>(memory.buffers().size()), 0);
  Scratch buffer(std::min(n, capacity));
  if (buffer.data() == nullptr && n > 0) return fail(ENOMEM);
  clear_slots();
  size_t done = 0;
  do {
    iovec part = {buffer.data(), std::min(n - done, buffer.size())};
    if constexpr (direction == Direction::kWrite) memory.gather(done, buffer.data(), part.iov_len);
    const ssize_t moved = call(&part, 1, done);
    if (moved < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
    if constexpr (direction == Direction::kRead) {
      memory.scatter(0, buffer.data(), static_cast<size_t>(moved));
      return moved;
    }
    done += static_cast<size_t>(moved);
    if (static_cast<size_t>(moved) < part.iov_len) break;
  } while (done < n);
  return static_cast<ssize_t>(done);
}

// A write beyond the file size limit (RLIMIT_FSIZE) raises a signal, which ends most programs. For a single call the kernel would write what fits,
// and signal only the program's next call: so the further pieces of this call raise none.
template <class Call>
ssize_t call_unsignalled(Call call) {
  const uint64_t beyond_limit = sys::signal_bit(SIGXFSZ);
  const sys::BlockedSignals blocked(beyond_limit);
  const ssize_t moved = call();
  if (moved < 0 && errno == EFBIG) {
    const timespec none = {};
    sys::syscall(SYS_rt_sigtimedwait, &beyond_limit, nullptr, &none, sizeof beyond_limit);
  }
  return moved;
}

// Into or out of the frames.
template <Direction direction, class Call>
ssize_t wired(const PlainVector& memory, Call call) {
  size_t done = 0;
  clear_slots();
  for (const iovec& buffer : memory.buffers()) {
    for (size_t at = 0; at < buffer.iov_len && done < kCallBytes;) {
      const size_t n = std::min(buffer.iov_len - at, kCallBytes - done);
      const WiredRange range(static_cast<char*>(buffer.iov_base) + at, n, need_of(direction));
      const auto next = [&] {
        return call(range.pieces().data(), static_cast<int>(range.pieces().size()), done);
      };
      const bool goes_on = direction == Direction::kWrite && done > 0;
      const ssize_t moved = goes_on ? call_unsignalled(next) : next();
      if (moved < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
      done += static_cast<size_t>(moved);
      at += static_cast<size_t>(moved);
      if (static_cast<size_t>(moved) < range.size()) return static_cast<ssize_t>(done);
    }
  }
  return static_cast<ssize_t>(done);
}

template <Direction direction, class Call>
__attribute__((noinline)) ssize_t transfer(int descriptor, const PlainVector& memory, Call call) {
  // As in the kernel: larger counts are invalid.
  if (memory.bytes() > SSIZE_MAX) return fail(EINVAL);
  if (memory.bytes() <= kBounceBytes) return bounce<direction>(memory, kBounceBytes, call);
  switch (kind_of(descriptor)) {
    case Kind::kDevice:
      if (memory.bytes() <= kDeviceBounceBytes) return bounce<direction>(memory, kDeviceBounceBytes, call);
      [[fallthrough]];
    case Kind::kFile: return wired<direction>(memory, call);
    case Kind::kSocket:
      return bounce<direction>(memory, socket_bounce_bytes(descriptor, memory.bytes()), call);
    case Kind::kStream: return bounce<direction>(memory, kBounceBytes, call);
  }
  return -1;
}

template <Direction direction, class Call>
ssize_t transfer_one(int descriptor, const void* address, size_t n, Call call) {
  const iovec one = {const_cast<void*>(address), n};
  return transfer<direction>(descriptor, PlainVector(&one, 1), call);
}

// Does the descriptor refer to the memory file of the process, or of one of its threads, in /proc?
bool leads_to_own_memory(int descriptor) {
  struct statfs system;
  if (sys::failed(sys::syscall(SYS_fstatfs, descriptor, &system)) || system.f_type != PROC_SUPER_MAGIC)
    return false;
  char link[64], name[256];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const long length = sys::syscall(SYS_readlinkat, AT_FDCWD, link, name, sizeof name - 1);
  if (length <= 0) return false;
  name[length] = 0;
  char* const file = strrchr(name, '/');
  if (file == nullptr || strcmp(file, "/mem") != 0) return false;
  *file = 0;
  const char* const number = strrchr(name, '/');
  if (number == nullptr) return false;
  char task[sizeof name + 32];
  snprintf(task, sizeof task, "/proc/self/task%s", number);
  return !sys::failed(sys::syscall(SYS_faccessat, AT_FDCWD, task, F_OK));
}

// Whether an offset in a file is a place of spilled memory. Cost: inline for offsets that lie outside spilled memory.
bool is_spilled_place(int descriptor, off_t offset) {
  return in_range(static_cast<uint64_t>(offset)) && leads_to_own_memory(descriptor);
}

ssize_t read_vector(int descriptor, const iovec* vector, int count) {
  PlainVector memory(vector, static_cast<size_t>(count));
  if (!memory.is_valid() || memory.is_plain()) {
    clear_slots();
    return LIBC(readv)(descriptor, memory.buffers().data(), count);
  }
  return transfer<Direction::kRead>(
      descriptor, memory, [=](const iovec* v, int c, size_t) { return LIBC(readv)(descriptor, v, c); });
}

ssize_t write_vector(int descriptor, const iovec* vector, int count) {
  PlainVector memory(vector, static_cast<size_t>(count));
  if (!memory.is_valid() || memory.is_plain()) {
    clear_slots();
    return LIBC(writev)(descriptor, memory.buffers().data(), count);
  }
  return transfer<Direction::kWrite>(
      descriptor, memory, [=](const iovec* v, int c, size_t) { return LIBC(writev)(descriptor, v, c); });
}

}  // namespace
}  // namespace spill

using spill::all_plain;
using spill::Direction;

SPILL_EXPORT ssize_t __spill_read(int descriptor, void* to, size_t n) {
  if (all_plain(to, n)) {
    spill::clear_slots();
    return LIBC(read)(descriptor, to, n);
  }
  return spill::transfer_one<Direction::kRead>(
      descriptor, to, n, [=](const iovec* v, int c, size_t) { return LIBC(readv)(descriptor, v, c); });
}

SPILL_EXPORT ssize_t __spill_write(int descriptor, const void* from, size_t n) {
  if (all_plain(from, n)) {
    spill::clear_slots();
    return LIBC(write)(descriptor, from, n);
  }
  return spill::transfer_one<Direction::kWrite>(
      descriptor, from, n, [=](const iovec* v, int c, size_t) { return LIBC(writev)(descriptor, v, c); });
}

SPILL_EXPORT ssize_t __spill_pread(int descriptor, void* to, size_t n, off_t offset) {
  if (spill::is_spilled_place(descriptor, offset)) return spill::fail(EIO);
  if (all_plain(to, n)) return LIBC(pread)(descriptor, to, n, offset);
  return spill::transfer_one<Direction::kRead>(descriptor, to, n, [=](const iovec* v, int c, size_t done) {
    return LIBC(preadv)(descriptor, v, c, offset + static_cast<off_t>(done));
  });
}

SPILL_EXPORT ssize_t __spill_pwrite(int descriptor, const void* from, size_t n, off_t offset) {
  if (spill::is_spilled_place(descriptor, offset)) return spill::fail(EIO);
  if (all_plain(from, n)) return LIBC(pwrite)(descriptor, from, n, offset);
  return spill::transfer_one<Direction::kWrite>(descriptor, from, n, [=](const iovec* v, int c, size_t done) {
    return LIBC(pwritev)(descriptor, v, c, offset + static_cast<off_t>(done));
  });
}

SPILL_EXPORT ssize_t __spill_readv(int descriptor, const iovec* vector, int count) {
  return spill::read_vector(descriptor, vector, count);
}
SPILL_EXPORT ssize_t __spill_writev(int descriptor, const iovec* vector, int count) {
  return spill::write_vector(descriptor, vector, count);
}

SPILL_EXPORT ssize_t __spill_preadv(int descriptor, const iovec* vector, int count, off_t offset) {
  if (spill::is_spilled_place(descriptor, offset)) return spill::fail(EIO);
  spill::PlainVector memory(vector, static_cast<size_t>(count));
  if (!memory.is_valid() || memory.is_plain())
    return LIBC(preadv)(descriptor, memory.buffers().data(), count, offset);
  return spill::transfer<Direction::kRead>(descriptor, memory, [=](const iovec* v, int c, size_t done) {
    return LIBC(preadv)(descriptor, v, c, offset + static_cast<off_t>(done));
  });
}
SPILL_EXPORT ssize_t __spill_pwritev(int descriptor, const iovec* vector, int count, off_t offset) {
  if (spill::is_spilled_place(descriptor, offset)) return spill::fail(EIO);
  spill::PlainVector memory(vector, static_cast<size_t>(count));
  if (!memory.is_valid() || memory.is_plain())
    return LIBC(pwritev)(descriptor, memory.buffers().data(), count, offset);
  return spill::transfer<Direction::kWrite>(descriptor, memory, [=](const iovec* v, int c, size_t done) {
    return LIBC(pwritev)(descriptor, v, c, offset + static_cast<off_t>(done));
  });
}

// With offset -1 they are readv and writev with flags.
template <Direction direction, class Move>
static ssize_t transfer_with_flags(int descriptor, const iovec* vector, int count, off_t offset, Move move) {
  if (spill::is_spilled_place(descriptor, offset)) return spill::fail(EIO);
  const spill::PlainVector memory(vector, static_cast<size_t>(count));
  if (!memory.is_valid() || memory.is_plain()) {
    spill::clear_slots();
    return move(memory.buffers().data(), count, offset);
  }
  return spill::transfer<direction>(descriptor, memory, [=](const iovec* v, int c, size_t done) {
    return move(v, c, offset == -1 ? offset : offset + static_cast<off_t>(done));
  });
}
SPILL_EXPORT ssize_t __spill_preadv2(int descriptor, const iovec* vector, int count, off_t offset,
                                     int flags) {
  return transfer_with_flags<Direction::kRead>(
      descriptor, vector, count, offset,
      [=](const iovec* v, int c, off_t at) { return preadv2(descriptor, v, c, at, flags); });
}
SPILL_EXPORT ssize_t __spill_pwritev2(int descriptor, const iovec* vector, int count, off_t offset,
                                      int flags) {
  return transfer_with_flags<Direction::kWrite>(
      descriptor, vector, count, offset,
      [=](const iovec* v, int c, off_t at) { return pwritev2(descriptor, v, c, at, flags); });
}
SPILL_EXPORT ssize_t __spill_preadv64v2(int descriptor, const iovec* vector, int count, off_t offset,
                                        int flags) {
  return __spill_preadv2(descriptor, vector, count, offset, flags);
}
SPILL_EXPORT ssize_t __spill_pwritev64v2(int descriptor, const iovec* vector, int count, off_t offset,
                                         int flags) {
  return __spill_pwritev2(descriptor, vector, count, offset, flags);
}

SPILL_EXPORT ssize_t __spill_pread64(int descriptor, void* to, size_t n, off_t offset) {
  return __spill_pread(descriptor, to, n, offset);
}
SPILL_EXPORT ssize_t __spill_pwrite64(int descriptor, const void* from, size_t n, off_t offset) {
  return __spill_pwrite(descriptor, from, n, offset);
}
SPILL_EXPORT ssize_t __spill_preadv64(int descriptor, const iovec* vector, int count, off_t offset) {
  return __spill_preadv(descriptor, vector, count, offset);
}
SPILL_EXPORT ssize_t __spill_pwritev64(int descriptor, const iovec* vector, int count, off_t offset) {
  return __spill_pwritev(descriptor, vector, count, offset);
}
SPILL_EXPORT ssize_t __spill___read_chk(int descriptor, void* to, size_t n, size_t room) {
  if (n > room) spill::buffer_overflow();
  return __spill_read(descriptor, to, n);
}
SPILL_EXPORT ssize_t __spill___pread_chk(int descriptor, void* to, size_t n, off_t offset, size_t room) {
  if (n > room) spill::buffer_overflow();
  return __spill_pread(descriptor, to, n, offset);
}
SPILL_EXPORT ssize_t __spill___pread64_chk(int descriptor, void* to, size_t n, off_t offset, size_t room) {
  return __spill___pread_chk(descriptor, to, n, offset, room);
}

SPILL_EXPORT off_t __spill_lseek(int descriptor, off_t offset, int from) {
  if (from == SEEK_SET && spill::is_spilled_place(descriptor, offset)) return spill::fail(EIO);
  return lseek(descriptor, offset, from);
}
SPILL_EXPORT off64_t __spill_lseek64(int descriptor, off64_t offset, int from) {
  return __spill_lseek(descriptor, offset, from);
}

SPILL_EXPORT ssize_t __spill_sendfile(int to, int from, off_t* offset, size_t n) {
  spill::PlainObject<off_t> plain_offset(offset);
  spill::clear_slots();
  return sendfile(to, from, plain_offset, n);
}
SPILL_EXPORT ssize_t __spill_sendfile64(int to, int from, off_t* offset, size_t n) {
  return __spill_sendfile(to, from, offset, n);
}
SPILL_EXPORT ssize_t __spill_copy_file_range(int from, off_t* from_offset, int to, off_t* to_offset, size_t n,
                                             unsigned flags) {
  return copy_file_range(from, spill::PlainObject<off_t>(from_offset), to,
                         spill::PlainObject<off_t>(to_offset), n, flags);
}
