// What opens media by their paths shares: paths as messages show them, descriptors until they are the runtime's own, and what the
// kernel says of devices.
#pragma once
#include <linux/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "storage/device_string.h"
#include "storage/open_medium.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace storage {

// A path as a C string, and how messages show it: its end, if it is long. REQUIRES: at most kMaxPathBytes.
struct Path {
  explicit Path(std::string_view path);
  const char* c_str() const { return text.c_str(); }

  base::Text<kMaxPathBytes + 1> text;
  base::Text<100> shown;
};

// "storage /mnt/nvme"
inline base::TextRef& operator<<(base::TextRef& to, const Path& path) {
  return to << "storage " << path.shown.view();
}

// A descriptor until it becomes the runtime's own.
class Opened {
 public:
  explicit Opened(long descriptor) : descriptor_(descriptor) {}
  Opened(Opened&& from) : descriptor_(from.take()) {}
  Opened& operator=(Opened&& from) {
    std::swap(descriptor_, from.descriptor_);
    return *this;
  }
  ~Opened() {
    if (descriptor_ >= 0) sys::syscall(SYS_close, descriptor_);
  }
  long get() const { return descriptor_; }
  long take() {
    long taken = descriptor_;
    descriptor_ = -1;
    return taken;
  }
  // Takes it. Errors: EMFILE.
  base::Expected<int> own();

 private:
  long descriptor_;
};

// What went wrong there, by the kernel's -errno, and what to do.
base::Error open_error(const Path& path, long result);

// For reading and writing, or only reading; new files are private. Returns a descriptor or -errno.
long open_path(const Path& path, int flags, bool read_only = false);

// Of `path`, or of the descriptor itself if that is "". Returns 0 or -errno.
long describe(long descriptor, const char* path, struct statx& facts);

// The last name that the symbolic link at `path`, in /sys, leads to; empty if there is none. Points into `text`.
std::string_view link_name(const char* path, std::span<char> text);

// A number of a block device's queue, which the kernel shows ("discard_max_bytes"); 0 if it shows none.
uint64_t queue_number(uint32_t major, uint32_t minor, const char* name);

// Does a device have content that `parameters` do not give up? Its first 64 KiB are looked at, or all: a file system or a
// partition table is not zeros. `read(to, bytes, offset)` returns how much it read, 0 at the end, or -errno. Messages begin with
// `what`. Errors: EEXIST.
template <class What, class Read>
base::Expected<void> check_content(const What& what, uint64_t capacity_bytes,
                                   const OpenParameters& parameters, Read&& read) {
  if (!parameters.spill || parameters.overwrite) return {};
  constexpr uint64_t kProbedBytes = 64 << 10;
  auto buffer = sys::map_anonymous(kProbedBytes, "a storage buffer");
  if (!buffer) return std::unexpected(buffer.error());
  const uint64_t probed_bytes = std::min(kProbedBytes, capacity_bytes);
  int64_t result = 0;
  bool zeros = true;
  for (uint64_t at = 0; at < probed_bytes && zeros; at += static_cast<uint64_t>(result)) {
    do {
      result = read(*buffer, probed_bytes - at, at);
    } while (result == -EINTR);
    if (result <= 0) break;
    for (int64_t i = 0; i < result; ++i) zeros = zeros && (*buffer)[i] == 0;
  }
  sys::unmap(*buffer, kProbedBytes);
  if (result < 0)
    return base::failure(static_cast<int>(-result), what,
                         ": its first blocks cannot be read: ", base::error_name(static_cast<int>(-result)));
  if (zeros) return {};
  return base::failure(EEXIST, what, ": this device has content; pass --storage-overwrite to lose all of it");
}

}  // namespace storage
