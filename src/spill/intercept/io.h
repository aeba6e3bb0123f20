// Moving bytes between descriptors and memory that may be spilled, and waiting for them (io.cc, socket.cc, poll.cc).
#pragma once
#include <sys/types.h>
#include <sys/uio.h>

#include <span>

#include "spill/intercept/intercept.h"

namespace spill {

// What one system call may move through a bounce buffer when it may wait.
inline constexpr size_t kBounceBytes = 64 << 10;
// The same for sockets, but for those that keep messages whole.
inline constexpr size_t kSocketBounceBytes = 1 << 20;
// What one call moves at most, however much it is given: the kernel's limit, by which the result fits an int.
inline constexpr size_t kCallBytes = 0x7ffff000;

// How much of n bytes one call moves through a bounce buffer from or to a socket: all where a message would be cut. Cost: up to two
// system calls if n is more than kSocketBounceBytes.
size_t socket_bounce_bytes(int socket, size_t n);

// How many of `count` descriptors select() and its kin look at: no more than the table has room for, whatever they are told; nor need
// the sets be longer. Cost: a read of a file of /proc where more are named than an fd_set has.
int descriptors_looked_at(int count);

// An array of iovec, itself plain, of buffers that may be spilled.
class PlainVector {
 public:
  // More than the kernel takes makes the vector empty and is_valid() false.
  PlainVector(const iovec* vector, size_t count);
  bool is_valid() const { return valid_; }
  bool is_plain() const { return plain_; }  // all buffers are
  std::span<const iovec> buffers() const { return {vector_, count_}; }
  size_t bytes() const { return bytes_; }
  // How many bytes come before the first that is not mapped, or whose protection does not allow what is needed. Plain memory, and
  // mappings of the kernel's among spilled memory, count as allowed.
  size_t allowed_bytes(Need need) const;
  // The buffers of the vector's bytes [at, at + n), at most as many as all. Returns how many.
  size_t part(size_t at, size_t n, iovec* to) const;
  // Copies between the vector's bytes from `at` on and plain memory.
  void gather(size_t at, char* to, size_t n) const;
  void scatter(size_t at, const char* from, size_t n) const;

 private:
  size_t count_;
  PlainBytes copy_;
  const iovec* vector_;
  size_t bytes_ = 0;
  bool plain_ = true;
  bool valid_ = true;
};

}  // namespace spill
