// Moving bytes between descriptors and memory that may be spilled, and waiting for them (io.cc, socket.cc, poll.cc).
#pragma once
#include <sys/types.h>
#include <sys/uio.h>

#include <span>

#include "spill/intercept/intercept.h"

namespace spill {

// The most that one system call moves through a bounce buffer if it may wait.
inline constexpr size_t kBounceBytes = 64 << 10;
// The same for sockets, except those that keep messages whole.
inline constexpr size_t kSocketBounceBytes = 1 << 20;
// The most that one call moves, however much it is given: the kernel's limit, so that the result fits an int.
inline constexpr size_t kCallBytes = 0x7ffff000;

// How much of n bytes one call moves through a bounce buffer from or to a socket: all of it if a message would be cut otherwise.
// Cost: up to two system calls if n is more than kSocketBounceBytes.
size_t socket_bounce_bytes(int socket, size_t n);

// How many of `count` descriptors select() and its kin look at: no more than the descriptor table has room for, whatever `count`
// says; the sets need not be longer either. Cost: a read of a file of /proc if `count` is more than an fd_set has.
int descriptors_looked_at(int count);

// An array of iovec, itself plain, of buffers that may be spilled.
class PlainVector {
 public:
  // More than the kernel accepts makes the vector empty and is_valid() false.
  PlainVector(const iovec* vector, size_t count);
  bool is_valid() const { return valid_; }
  bool is_plain() const { return plain_; }  // all buffers are
  std::span<const iovec> buffers() const { return {vector_, count_}; }
  size_t bytes() const { return bytes_; }
  // How many bytes come before the first that is not mapped, or whose protection does not allow what is needed. Plain memory, and
  // mappings of the kernel's among spilled memory, count as allowed.
  size_t allowed_bytes(Need need) const;
  // Stores the buffers of the vector's bytes [at, at + n) at `to`, which has room for as many as there are in all. Returns how many.
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
