// What the files that open media by path share: paths as messages show them, descriptors that are not yet the runtime's own, locks, and what
// the kernel says about devices.
#pragma once
#include <linux/stat.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/ids.h"
#include "storage/opening/device_string.h"
#include "storage/opening/open_medium.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace storage {

// A path as a C string, and as messages show it: only its end if it is long. REQUIRES: at most kMaxPathBytes.
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

// Closes its descriptor unless that was taken or has become the runtime's own. A negative value, such as -errno, is no descriptor.
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
  // Takes the descriptor, and makes it the runtime's own; on an error it is closed. Errors: EMFILE.
  base::Expected<int> own();

 private:
  long descriptor_;
};

// The line for a path that could not be opened, from the kernel's -errno: what went wrong, and what to do.
base::Error open_error(const Path& path, long result);

// A killed process keeps its store open until its I/O under way has ended. So that the next process can be started at once, a store that is in
// use is tried again this often.
inline constexpr int kStoreTries = 100;
inline constexpr uint64_t kStoreTryNs = 10'000'000;
// Locks a file of a store until its descriptor is closed, here and in all children of fork, or the lock is released. Errors: EBUSY: somebody
// else had it all that time; those of a file system without locks.
base::Expected<void> lock_for_store(const Path& path, long descriptor);
void give_up_lock(long descriptor);
// The same for a file of spilled pages, without waiting.
base::Expected<void> lock_for_spilling(const Path& path, long descriptor);

// Does the path still lead to the open file that these facts describe?
bool is_at(const Path& path, const struct statx& opened);

// Is the path itself a symbolic link?
bool is_link(const Path& path);
// The line for a symbolic link that leads to no file.
base::Error broken_link(const Path& path);

// Is the path in /dev, where a misspelt device must not become a file?
bool is_in_dev(std::string_view path);

// For reading and writing, or only reading; new files are private. Returns a descriptor or -errno.
long open_path(const Path& path, int flags, bool read_only = false);

// statx: of `path`, or, if that is "", of the descriptor. Returns 0 or -errno.
long describe(long descriptor, const char* path, struct statx& facts);

// The last component of what the symbolic link at `path`, in /sys, leads to; empty if there is none. Points into `text`.
std::string_view link_name(const char* path, std::span<char> text);

// A number that the kernel shows of a block device's queue in /sys ("discard_max_bytes"); 0 if it shows none.
uint64_t queue_number(uint32_t major, uint32_t minor, const char* name);

inline constexpr uint64_t kContentPieceBytes = 64 << 10;

// Is there anything but zeros from `begin` to `end`, or to the medium's end? Returns 1, 0 or -errno. `read(to, bytes, offset)` returns how
// much it has read, 0 at the end, or -errno.
template <class Read>
int64_t content_between(uint64_t begin, uint64_t end, std::span<char> buffer, Read&& read) {
  for (uint64_t at = begin; at < end;) {
    const int64_t result = read(buffer.data(), std::min<uint64_t>(buffer.size(), end - at), at);
    if (result == -EINTR) continue;
    if (result <= 0) return result;
    const std::span got = buffer.first(static_cast<size_t>(result));
    if (std::ranges::any_of(got, [](char c) { return c != 0; })) return 1;
    at += static_cast<uint64_t>(result);
  }
  return 0;
}

// The same for a device's first and last MiB: some file systems begin at 64 KiB; copies of superblocks and partition tables, and RAID
// labels, are at the end.
template <class Read>
int64_t content_of_ends(uint64_t capacity_bytes, std::span<char> buffer, Read&& read) {
  constexpr uint64_t kProbedBytes = 1 << 20;
  const uint64_t first_end = std::min(kProbedBytes, capacity_bytes);
  const uint64_t last_begin = base::round_down(capacity_bytes - first_end, base::kOsPageBytes);
  const int64_t content = content_between(0, first_end, buffer, read);
  return content != 0 ? content
                      : content_between(std::max(first_end, last_begin), capacity_bytes, buffer, read);
}

// Refuses a device for spilling if its first or last MiB has content, such as a file system or a partition table, unless `parameters` allow
// overwriting it. `read` as above; messages begin with `what`. Errors: EEXIST; those of reading; ENOMEM.
template <class What, class Read>
base::Expected<void> check_content(const What& what, uint64_t capacity_bytes,
                                   const OpenParameters& parameters, Read&& read) {
  if (!parameters.spill || parameters.overwrite) return {};
  auto buffer = sys::map_anonymous(kContentPieceBytes, "a storage buffer");
  if (!buffer) return std::unexpected(buffer.error());
  const int64_t content = content_of_ends(capacity_bytes, {*buffer, kContentPieceBytes}, read);
  sys::unmap(*buffer, kContentPieceBytes);
  if (content < 0)
    return base::failure(static_cast<int>(-content), what, ": its first or last blocks cannot be read: ",
                         base::error_name(static_cast<int>(-content)));
  if (content == 0) return {};
  return base::failure(EEXIST, what, ": this device has content; pass --storage-overwrite to lose all of it");
}

}  // namespace storage
