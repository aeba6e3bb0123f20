// What opens media by their paths shares: paths as messages show them, descriptors until they are the runtime's own, and what the
// kernel says of devices.
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

// A process that was killed has its store until what it had under way has ended: who starts the next one at once need not know, and tries
// again this often.
inline constexpr int kStoreTries = 100;
inline constexpr uint64_t kStoreTryNs = 10'000'000;
// Locks a file of a store until its descriptor is closed. Errors: EBUSY: somebody has it, all that time; those of a file system that cannot
// keep others away.
base::Expected<void> lock_for_store(const Path& path, long descriptor);
// The same of a file that has the pages of one process. Nobody who has it is waited for.
base::Expected<void> lock_for_spilling(const Path& path, long descriptor);

// Does the path still lead to what is open, of which these are the facts?
bool is_at(const Path& path, const struct statx& opened);

// Is the path itself a symbolic link?
bool is_link(const Path& path);
// What is wrong with a link where no file is and none can be made.
base::Error broken_link(const Path& path);

// A misspelt device must not become a file there.
bool is_in_dev(std::string_view path);

// For reading and writing, or only reading; new files are private. Returns a descriptor or -errno.
long open_path(const Path& path, int flags, bool read_only = false);

// Of `path`, or of the descriptor itself if that is "". Returns 0 or -errno.
long describe(long descriptor, const char* path, struct statx& facts);

// The last name that the symbolic link at `path`, in /sys, leads to; empty if there is none. Points into `text`.
std::string_view link_name(const char* path, std::span<char> text);

// A number of a block device's queue, which the kernel shows ("discard_max_bytes"); 0 if it shows none.
uint64_t queue_number(uint32_t major, uint32_t minor, const char* name);

inline constexpr uint64_t kContentPieceBytes = 64 << 10;

// Is there anything but zeros from `begin` to `end`, or to where the medium ends? 1, 0 or -errno. `read(to, bytes, offset)` returns how
// much it read, 0 at the end, or -errno.
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

// The same of a device's first and last MiB: some file systems begin at 64 KiB, copies of superblocks and partition tables, and what
// makes a device one of a RAID lie at the end.
template <class Read>
int64_t content_of_ends(uint64_t capacity_bytes, std::span<char> buffer, Read&& read) {
  constexpr uint64_t kProbedBytes = 1 << 20;
  const uint64_t first_end = std::min(kProbedBytes, capacity_bytes);
  const uint64_t last_begin = base::round_down(capacity_bytes - first_end, base::kOsPageBytes);
  const int64_t content = content_between(0, first_end, buffer, read);
  return content != 0 ? content
                      : content_between(std::max(first_end, last_begin), capacity_bytes, buffer, read);
}

// Does a device have content that `parameters` do not give up? Its first and last MiB are looked at: a file system or a partition
// table is not zeros. `read` as above. Messages begin with `what`. Errors: EEXIST.
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
