#include "storage/open_medium.h"

#include <asm/statfs.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/stat.h>
#include <sys/file.h>

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "storage/device_string.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace storage {
namespace {

using base::failure;

constexpr uint64_t kLeastFreeBytes = uint64_t{64} << 20;
constexpr uint64_t kMostFileBytes = uint64_t{8} << 40;
constexpr unsigned kPrivateMode = 0600;

// A path as a C string, and how messages show it: its end, if it is long.
struct Path {
  explicit Path(std::string_view path) {
    CHECK_LE(path.size(), kMaxPathBytes);
    text << path;
    constexpr size_t kMostShown = 90;
    if (path.size() <= kMostShown)
      shown << path;
    else
      shown << "..." << path.substr(path.size() - kMostShown);
  }
  const char* c_str() const { return text.c_str(); }

  base::Text<kMaxPathBytes + 1> text;
  base::Text<100> shown;
};

base::TextRef& operator<<(base::TextRef& to, const Path& path) {
  return to << "storage " << path.shown.view();
}

// A descriptor until it becomes the runtime's own.
class Opened {
 public:
  explicit Opened(long descriptor) : descriptor_(descriptor) {}
  Opened(Opened&& from) : descriptor_(from.descriptor_) { from.descriptor_ = -1; }
  ~Opened() {
    if (descriptor_ >= 0) sys::syscall(SYS_close, descriptor_);
  }
  long get() const { return descriptor_; }
  long take() {
    long taken = descriptor_;
    descriptor_ = -1;
    return taken;
  }

 private:
  long descriptor_;
};

base::Error open_error(const Path& path, long result) {
  int number = static_cast<int>(-result);
  const char* advice = "";
  switch (number) {
    case ENOENT: return base::Error::of(number, path, ": no such directory; make it, or name another place");
    case EACCES:
    case EPERM: advice = "; name a place that you may read and write"; break;
    case EOPNOTSUPP: return base::Error::of(number, path, ": no files can be made there; name another place");
    case EROFS: advice = "; name a place that can be written"; break;
    case EBUSY: advice = "; it is mounted or in use, name another device"; break;
    case ENOSPC:
    case EDQUOT: advice = "; make room, or name another place"; break;
    case ENXIO:
    case ENODEV: advice = "; there is no device behind it"; break;
    case EMFILE: advice = "; raise ulimit -n"; break;
    default: break;
  }
  return base::Error::of(number, path, ": ", base::error_name(number), advice);
}

long open_path(const Path& path, int flags) {
  long result;
  do {
    result =
        sys::syscall(SYS_openat, AT_FDCWD, path.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOCTTY, kPrivateMode);
  } while (result == -EINTR);
  return result;
}

long describe(long descriptor, const char* path, struct statx& facts) {
  facts = {};
  int flags = path[0] == 0 ? AT_EMPTY_PATH : 0;
  return sys::syscall(SYS_statx, descriptor, path, flags, STATX_BASIC_STATS | STATX_DIOALIGN, &facts);
}

// Makes a file that has a name for a moment only. -EEXIST: somebody else has just made it.
long make_nameless(const Path& path) {
  long result = open_path(path, O_CREAT | O_EXCL | O_NOFOLLOW);
  if (!sys::failed(result)) sys::syscall(SYS_unlinkat, AT_FDCWD, path.c_str(), 0);
  return result;
}

long make_nameless_in(const Path& directory) {
  long result = open_path(directory, O_TMPFILE | O_EXCL);
  if (result == -ENOENT)
    return -EOPNOTSUPP;  // the directory is there: it is one of the kernel's, as /proc is
  // Not all file systems and kernels have files without names.
  if (result != -EOPNOTSUPP && result != -EISDIR && result != -EINVAL) return result;
  for (int tries = 0; tries < 16; ++tries) {
    uint64_t random = 0;
    sys::random_bytes({reinterpret_cast<unsigned char*>(&random), sizeof random});
    base::Text<kMaxPathBytes + 40> name;
    name << directory.text.view() << "/.spillway-" << base::Hex{random};
    if (name.size() > kMaxPathBytes) return -ENAMETOOLONG;
    result = make_nameless(Path(name.view()));
    if (result == -ENOENT)
      return -EOPNOTSUPP;  // the directory is there: it is one of the kernel's, as /proc is
    if (result != -EEXIST) return result;
  }
  return result;
}

// Is there room, and is it storage at all?
base::Expected<void> check_file_system(const Path& path, long descriptor) {
  struct statfs facts = {};
  if (sys::failed(sys::syscall(SYS_fstatfs, descriptor, &facts))) return {};
  uint64_t free_bytes = static_cast<uint64_t>(facts.f_bavail) * static_cast<uint64_t>(facts.f_bsize);
  // File systems without a size (ramfs) report no blocks at all.
  if (facts.f_blocks != 0 && free_bytes < kLeastFreeBytes) {
    return failure(ENOSPC, path, ": only ", free_bytes >> 20, "M are free there; make room for at least ",
                   base::Bytes{kLeastFreeBytes}, ", or name another place");
  }
  if (facts.f_type == TMPFS_MAGIC || facts.f_type == RAMFS_MAGIC)
    base::log(path, ": this is memory, so spilling there saves none; name a place on a disk");
  return {};
}

// Files grow as they are written, up to here. (Giving them their size at once, as a hole, was tried: on ext4
// first writes then took up to 30 times as long.)
base::Expected<uint64_t> file_capacity_bytes(const Path& path) {
  const uint64_t capacity_bytes =
      base::round_down(std::min(kMostFileBytes, sys::file_size_limit()), base::kOsPageBytes);
  if (capacity_bytes < kLeastFreeBytes) {
    return failure(EFBIG, path, ": files may be no larger than ", capacity_bytes >> 10,
                   "K in this process; raise ulimit -f");
  }
  return capacity_bytes;
}

// Holes can be punched past a file's end without changing it.
bool can_punch_holes(long descriptor, uint64_t size_bytes) {
  return !sys::failed(sys::syscall(SYS_fallocate, descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                   base::round_up(size_bytes, base::kOsPageBytes), base::kOsPageBytes));
}

// Is this number of a block device's queue, which the kernel shows, there and not 0?
bool queue_says(uint32_t major, uint32_t minor, const char* number) {
  // A partition's queue is its disk's.
  for (const char* queue : {"/queue/", "/../queue/"}) {
    base::Text<96> path;
    path << "/sys/dev/block/" << major << ':' << minor << queue << number;
    char text[32];
    if (sys::read_small_file(path.c_str(), text) > 0) return text[0] != '0';
  }
  return false;
}

// zram, brd, pmem: the kernel says so only by the driver's name.
bool block_device_is_memory(const struct statx& facts) {
  base::Text<48> path;
  path << "/sys/dev/block/" << facts.stx_rdev_major << ':' << facts.stx_rdev_minor;
  char target[256];
  const long length = sys::syscall(SYS_readlinkat, AT_FDCWD, path.c_str(), target, sizeof target);
  if (sys::failed(length)) return false;
  std::string_view name(target, static_cast<size_t>(length));
  name.remove_prefix(name.rfind('/') + 1);
  for (std::string_view driver : {"zram", "ram", "pmem"})
    if (name.starts_with(driver)) return true;
  return false;
}

// Turns O_DIRECT on where it works; sets the block size that it asks for, and returns whether it is on.
bool turn_on_direct(long descriptor, const struct statx& facts, uint32_t sector_bytes, Medium& medium) {
  uint32_t block_bytes = sector_bytes;
  if (facts.stx_mask & STATX_DIOALIGN) {
    if (facts.stx_dio_offset_align == 0) return false;
    if (facts.stx_dio_offset_align > block_bytes) block_bytes = facts.stx_dio_offset_align;
    if (facts.stx_dio_mem_align > block_bytes) block_bytes = facts.stx_dio_mem_align;
  } else if (!medium.is_block_device) {
    block_bytes = base::kOsPageBytes;
  }
  if (block_bytes > base::kOsPageBytes) return false;
  long flags = sys::syscall(SYS_fcntl, descriptor, F_GETFL);
  if (sys::failed(sys::syscall(SYS_fcntl, descriptor, F_SETFL, flags | O_DIRECT))) return false;
  // Some file systems take the flag and then refuse the transfers.
  auto buffer = sys::map_anonymous(base::kOsPageBytes, "a storage buffer");
  long read = buffer ? sys::syscall(SYS_pread64, descriptor, *buffer, base::kOsPageBytes, 0) : -ENOMEM;
  if (buffer) sys::unmap(*buffer, base::kOsPageBytes);
  if (read == -EINVAL || read == -EOPNOTSUPP || read == -ENOMEM) {
    sys::syscall(SYS_fcntl, descriptor, F_SETFL, flags);
    return false;
  }
  medium.block_bytes = block_bytes;
  return true;
}

base::Expected<Medium> finish(const Path& path, Opened opened, const char* what, Medium medium,
                              const struct statx& facts, uint32_t sector_bytes) {
  medium.is_direct = turn_on_direct(opened.get(), facts, sector_bytes, medium);
  base::TextRef(medium.label, sizeof medium.label)
      << path.shown.view() << " (" << what << ", " << (medium.is_direct ? "direct" : "buffered") << ')';
  auto owned = sys::own_descriptor(static_cast<int>(opened.get()));
  if (!owned) return std::unexpected(owned.error());
  opened.take();  // own_descriptor closed it
  medium.descriptor = *owned;
  return medium;
}

base::Expected<Medium> finish_file(const Path& path, Opened opened, const char* what, bool spill) {
  if (spill) {
    if (auto good = check_file_system(path, opened.get()); !good) return std::unexpected(good.error());
  }
  auto capacity_bytes = file_capacity_bytes(path);
  if (!capacity_bytes) return std::unexpected(capacity_bytes.error());
  struct statx facts;
  if (long result = describe(opened.get(), "", facts); sys::failed(result))
    return std::unexpected(open_error(path, result));
  Medium medium;
  medium.capacity_bytes = *capacity_bytes;
  medium.discards = can_punch_holes(opened.get(), facts.stx_size);
  medium.polls = queue_says(facts.stx_dev_major, facts.stx_dev_minor, "io_poll");
  return finish(path, Opened(opened.take()), what, medium, facts, 512);
}

base::Expected<Medium> open_file(const Path& path, const OpenParameters& parameters) {
  long result = open_path(path, 0);
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  Opened opened(result);
  if (!parameters.spill) return finish_file(path, Opened(opened.take()), "file", false);

  // Two processes that spill into one file would destroy each other's pages.
  if (sys::syscall(SYS_flock, opened.get(), LOCK_EX | LOCK_NB) == -EWOULDBLOCK)
    return failure(EBUSY, path,
                   ": another process spills there; name a directory, so that each has its own file");
  struct statx facts;
  if (result = describe(opened.get(), "", facts); sys::failed(result))
    return std::unexpected(open_error(path, result));
  if ((facts.stx_mode & S_IFMT) != S_IFREG)
    return failure(EINVAL, path, ": it has just been replaced; try again");
  if (facts.stx_size > 0 && !parameters.overwrite) {
    return failure(EEXIST, path, ": this file has content; pass --storage-overwrite to lose it, ",
                   "or name a directory or an empty file");
  }
  auto medium = finish_file(path, Opened(opened.take()), "file", true);
  if (medium && facts.stx_size > 0 && !parameters.keep_size)
    sys::syscall(SYS_ftruncate, medium->descriptor, 0);
  return medium;
}

base::Expected<bool> begins_with_zeros(const Path& path, long descriptor) {
  auto buffer = sys::map_anonymous(kProbedBytes, "a storage buffer");
  if (!buffer) return std::unexpected(buffer.error());
  uint64_t at = 0;
  long result = 0;
  bool zeros = true;
  while (at < kProbedBytes && zeros) {
    result = sys::syscall(SYS_pread64, descriptor, *buffer + at, kProbedBytes - at, at);
    if (result == -EINTR) continue;
    if (result <= 0) break;
    for (long i = 0; i < result; ++i) zeros = zeros && (*buffer)[at + static_cast<uint64_t>(i)] == 0;
    at += static_cast<uint64_t>(result);
  }
  sys::unmap(*buffer, kProbedBytes);
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  return zeros;
}

base::Expected<Medium> open_block_device(const Path& path, const OpenParameters& parameters) {
  long result = open_path(path, O_EXCL);  // on block devices: nobody else may have it, nor mount it
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  Opened opened(result);
  struct statx facts;
  if (result = describe(opened.get(), "", facts); sys::failed(result))
    return std::unexpected(open_error(path, result));
  if ((facts.stx_mode & S_IFMT) != S_IFBLK)
    return failure(EINVAL, path, ": it has just been replaced; try again");
  if (parameters.spill && !parameters.overwrite) {
    auto zeros = begins_with_zeros(path, opened.get());
    if (!zeros) return std::unexpected(zeros.error());
    if (!*zeros) return failure(EEXIST, path, ": this device ", kHasContent);
  }
  uint64_t size_bytes = 0;
  int sector_bytes = 512;
  result = sys::syscall(SYS_ioctl, opened.get(), BLKGETSIZE64, &size_bytes);
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  sys::syscall(SYS_ioctl, opened.get(), BLKSSZGET, &sector_bytes);

  Medium medium;
  medium.is_block_device = true;
  medium.capacity_bytes = base::round_down(size_bytes, base::kOsPageBytes);
  medium.discards = queue_says(facts.stx_rdev_major, facts.stx_rdev_minor, "discard_max_bytes");
  medium.polls = queue_says(facts.stx_rdev_major, facts.stx_rdev_minor, "io_poll");
  medium.is_memory = block_device_is_memory(facts);
  if (medium.capacity_bytes == 0) return failure(ENXIO, path, ": the device is empty; is a medium in it?");
  return finish(path, Opened(opened.take()), "block device", medium, facts,
                static_cast<uint32_t>(sector_bytes));
}

// A misspelt device must not become a file in /dev.
bool is_in_dev(std::string_view path) { return path.starts_with("/dev/") && !path.starts_with("/dev/shm/"); }

base::Expected<Medium> open_directory(const Path& path, const OpenParameters& parameters) {
  if (!parameters.spill) return failure(EISDIR, path, ": this is a directory; name a file or a block device");
  long result = make_nameless_in(path);
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  return finish_file(path, Opened(result), "unlinked file", true);
}

}  // namespace

base::Expected<Medium> open_medium(std::string_view path_text, const OpenParameters& parameters) {
  Path path(path_text);
  // Several rounds, since a file can come or go between looking and opening.
  for (int tries = 0; tries < 8; ++tries) {
    struct statx facts;
    long result = describe(AT_FDCWD, path.c_str(), facts);
    if (result == -ENOENT) {
      if (is_in_dev(path_text)) return failure(ENOENT, path, ": no such device; see lsblk");
      result = parameters.spill ? make_nameless(path) : open_path(path, O_CREAT | O_EXCL);
      if (result == -EEXIST) continue;
      if (sys::failed(result)) return std::unexpected(open_error(path, result));
      return finish_file(path, Opened(result), parameters.spill ? "unlinked file" : "file", parameters.spill);
    }
    if (sys::failed(result)) return std::unexpected(open_error(path, result));
    switch (facts.stx_mode & S_IFMT) {
      case S_IFDIR: return open_directory(path, parameters);
      case S_IFREG: return open_file(path, parameters);
      case S_IFBLK: return open_block_device(path, parameters);
      default:
        return failure(EINVAL, path,
                       ": this is neither a directory, a file nor a block device; name one of these");
    }
  }
  return failure(EAGAIN, path, ": it keeps changing; name another place");
}

}  // namespace storage
