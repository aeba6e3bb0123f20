#include "storage/opening/open_medium.h"

#include <asm/statfs.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "storage/opening/open_nvme.h"
#include "storage/opening/opened.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "sys/nap.h"

namespace storage {
namespace {

using base::failure;

constexpr uint64_t kMinFreeBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxFileBytes = uint64_t{8} << 40;

// Makes a file that has a name only for a moment. -EEXIST: somebody else has just made it, or has opened this one by its name and uses it.
long make_nameless(const Path& path) {
  Opened made(open_path(path, O_CREAT | O_EXCL | O_NOFOLLOW));
  if (sys::failed(made.get())) return made.get();
  // Others who open it by that name use it only with this lock (open_file). On a file system without locks nobody else can.
  if (auto locked = lock_for_spilling(path, made.get()); !locked && locked.error().number == EBUSY)
    return -EEXIST;
  sys::syscall(SYS_unlinkat, AT_FDCWD, path.c_str(), 0);
  return made.take();
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

// Does the file system have room, and is it storage at all?
base::Expected<void> check_file_system(const Path& path, long descriptor) {
  struct statfs facts = {};
  if (sys::failed(sys::syscall(SYS_fstatfs, descriptor, &facts))) return {};
  uint64_t free_bytes = static_cast<uint64_t>(facts.f_bavail) * static_cast<uint64_t>(facts.f_bsize);
  // File systems without a size (ramfs) report no blocks at all.
  if (facts.f_blocks != 0 && free_bytes < kMinFreeBytes) {
    return failure(ENOSPC, path, ": only ", free_bytes >> 20, "M are free there; make room for at least ",
                   base::Bytes{kMinFreeBytes}, ", or name another place");
  }
  if (facts.f_type == TMPFS_MAGIC || facts.f_type == RAMFS_MAGIC)
    base::log({.name = "storage_is_memory", .fields = {{"storage", path.text.view()}}}, path,
              ": this is memory, so spilling there saves none; name a place on a disk");
  return {};
}

// Files grow as they are written, up to this size. (Giving them that size at once, as a hole, was tried: on ext4
// first writes then took up to 30 times as long.)
base::Expected<uint64_t> file_capacity_bytes(const Path& path, bool read_only) {
  const uint64_t limit = read_only ? kMaxFileBytes : std::min(kMaxFileBytes, sys::file_size_limit());
  const uint64_t capacity_bytes = base::round_down(limit, base::kOsPageBytes);
  if (capacity_bytes < kMinFreeBytes) {
    return failure(EFBIG, path, ": files may be no larger than ", capacity_bytes >> 10,
                   "K in this process; raise ulimit -f");
  }
  return capacity_bytes;
}

// Tries it past the end of the file, which changes nothing.
bool can_punch_holes(long descriptor, uint64_t size_bytes) {
  return !sys::failed(sys::syscall(SYS_fallocate, descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                   base::round_up(size_bytes, base::kOsPageBytes), base::kOsPageBytes));
}

// zram, brd, pmem: only the driver's name shows it.
bool block_device_is_memory(const struct statx& facts) {
  base::Text<48> path;
  path << "/sys/dev/block/" << facts.stx_rdev_major << ':' << facts.stx_rdev_minor;
  char text[256];
  const std::string_view name = link_name(path.c_str(), text);
  for (std::string_view driver : {"zram", "ram", "pmem"})
    if (name.starts_with(driver)) return true;
  return false;
}

// Turns O_DIRECT on if it works, sets the block size that it needs, and returns whether it is on.
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
  // Some file systems accept the flag and then refuse the transfers.
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
  auto owned = opened.own();
  if (!owned) return std::unexpected(owned.error());
  medium.descriptor = *owned;
  return medium;
}

// The capacity of a file with content: its whole OS pages or, with `whole`, all of it. `most_bytes`: the largest size of files here.
base::Expected<uint64_t> store_capacity_bytes(const Path& path, uint64_t size_bytes, uint64_t most_bytes,
                                              const OpenParameters& parameters) {
  const bool ends_in_page = size_bytes % base::kOsPageBytes != 0;
  if (parameters.whole && size_bytes == 0)
    return failure(EINVAL, path, ": this file is empty; make it as large as it is to be");
  if (parameters.whole && ends_in_page && !parameters.read_only)
    return failure(EINVAL, path, ": this file has ", size_bytes, " bytes, and not a multiple of ",
                   base::kOsPageBytes, "; make it that large, or open it for reading only");
  if (!parameters.whole && size_bytes < base::kOsPageBytes)
    return failure(EINVAL, path, ": this file has ", size_bytes, " bytes, and holds no store");
  if (size_bytes > most_bytes && size_bytes - most_bytes >= base::kOsPageBytes)
    return failure(EFBIG, path, ": files may be no larger than ", most_bytes >> 10,
                   most_bytes < kMaxFileBytes ? "K in this process; raise ulimit -f"
                                              : "K; name a block device, or a stripe of several files");
  return parameters.whole ? base::round_up(size_bytes, base::kOsPageBytes)
                          : base::round_down(size_bytes, base::kOsPageBytes);
}

base::Expected<Medium> finish_file(const Path& path, Opened opened, const char* what,
                                   const OpenParameters& parameters) {
  if (parameters.spill) {
    if (auto good = check_file_system(path, opened.get()); !good) return std::unexpected(good.error());
  }
  auto capacity_bytes = file_capacity_bytes(path, parameters.read_only);
  if (!capacity_bytes) return std::unexpected(capacity_bytes.error());
  struct statx facts;
  if (long result = describe(opened.get(), "", facts); sys::failed(result))
    return std::unexpected(open_error(path, result));
  if (parameters.store) {
    capacity_bytes = store_capacity_bytes(path, facts.stx_size, *capacity_bytes, parameters);
    if (!capacity_bytes) return std::unexpected(capacity_bytes.error());
  }
  Medium medium;
  if (parameters.whole && *capacity_bytes > facts.stx_size)
    medium.missing_bytes = *capacity_bytes - facts.stx_size;
  medium.ends_with_process = parameters.spill || parameters.store;
  medium.is_locked = parameters.store && !parameters.is_locked;
  medium.capacity_bytes = *capacity_bytes;
  medium.discards = can_punch_holes(opened.get(), facts.stx_size);
  medium.polls = queue_number(facts.stx_dev_major, facts.stx_dev_minor, "io_poll") != 0;
  return finish(path, Opened(opened.take()), what, medium, facts, 512);
}

base::Expected<Medium> open_file(const Path& path, const OpenParameters& parameters) {
  long result = open_path(path, 0, parameters.read_only);
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  Opened opened(result);
  if (!parameters.spill && !parameters.store)
    return finish_file(path, Opened(opened.take()), "file", parameters);

  // Two processes that spill into one file would destroy each other's pages, or each other's store.
  if (parameters.store && !parameters.is_locked)
    if (auto locked = lock_for_store(path, opened.get()); !locked) return std::unexpected(locked.error());
  if (parameters.spill)
    if (auto locked = lock_for_spilling(path, opened.get()); !locked) return std::unexpected(locked.error());
  struct statx facts;
  if (result = describe(opened.get(), "", facts); sys::failed(result))
    return std::unexpected(open_error(path, result));
  if ((facts.stx_mode & S_IFMT) != S_IFREG)
    return failure(EINVAL, path, ": it has just been replaced; try again");
  // Whoever held the lock while this waited for it may have removed the file.
  if (parameters.store && !is_at(path, facts))
    return failure(EBUSY, path, ": it has just been replaced or removed; try again");
  if (parameters.store) return finish_file(path, Opened(opened.take()), "file", parameters);
  if (facts.stx_size > 0 && !parameters.overwrite) {
    return failure(EEXIST, path, ": this file has content; pass --storage-overwrite to lose it, ",
                   "or name a directory or an empty file");
  }
  auto medium = finish_file(path, Opened(opened.take()), "file", parameters);
  if (medium && facts.stx_size > 0 && !parameters.keep_size)
    sys::syscall(SYS_ftruncate, medium->descriptor, 0);
  return medium;
}

base::Expected<Medium> open_block_device(const Path& path, const OpenParameters& parameters) {
  // On block devices, O_EXCL means that nobody else may have it open exclusively or mounted.
  long result = open_path(path, O_EXCL, parameters.read_only);
  for (int tries = 0; parameters.store && result == -EBUSY && tries < kStoreTries; ++tries) {
    sys::nap(kStoreTryNs);
    result = open_path(path, O_EXCL, parameters.read_only);
  }
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  Opened opened(result);
  struct statx facts;
  if (result = describe(opened.get(), "", facts); sys::failed(result))
    return std::unexpected(open_error(path, result));
  if ((facts.stx_mode & S_IFMT) != S_IFBLK)
    return failure(EINVAL, path, ": it has just been replaced; try again");
  uint64_t size_bytes = 0;
  int sector_bytes = 512;
  result = sys::syscall(SYS_ioctl, opened.get(), BLKGETSIZE64, &size_bytes);
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  // The kernel lets a read-only device be opened for writing, and then refuses each write.
  int is_read_only = 0;
  if (!parameters.read_only) sys::syscall(SYS_ioctl, opened.get(), BLKROGET, &is_read_only);
  if (is_read_only != 0)
    return failure(EROFS, path, ": this block device is read-only; name one that can be written");
  const auto read = [&](char* to, uint64_t bytes, uint64_t offset) {
    return sys::syscall(SYS_pread64, opened.get(), to, bytes, offset);
  };
  if (auto checked = check_content(path, size_bytes, parameters, read); !checked)
    return std::unexpected(checked.error());
  sys::syscall(SYS_ioctl, opened.get(), BLKSSZGET, &sector_bytes);

  Medium medium;
  medium.ends_with_process = parameters.spill || parameters.store;
  medium.is_block_device = true;
  medium.capacity_bytes = base::round_down(size_bytes, base::kOsPageBytes);
  medium.discards = queue_number(facts.stx_rdev_major, facts.stx_rdev_minor, "discard_max_bytes") != 0;
  medium.polls = queue_number(facts.stx_rdev_major, facts.stx_rdev_minor, "io_poll") != 0;
  medium.is_memory = block_device_is_memory(facts);
  if (medium.capacity_bytes == 0) return failure(ENXIO, path, ": the device is empty; is a medium in it?");
  return finish(path, Opened(opened.take()), "block device", medium, facts,
                static_cast<uint32_t>(sector_bytes));
}

base::Expected<Medium> open_directory(const Path& path, const OpenParameters& parameters) {
  if (!parameters.spill) return failure(EISDIR, path, ": this is a directory; name a file or a block device");
  long result = make_nameless_in(path);
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  return finish_file(path, Opened(result), "unlinked file", parameters);
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
      if (parameters.store) return failure(ENOENT, path, ": no such file or device");
      result = parameters.spill ? make_nameless(path) : open_path(path, O_CREAT | O_EXCL);
      if (result == -EEXIST && is_link(path)) return std::unexpected(broken_link(path));
      if (result == -EEXIST) continue;
      if (sys::failed(result)) return std::unexpected(open_error(path, result));
      return finish_file(path, Opened(result), parameters.spill ? "unlinked file" : "file", parameters);
    }
    if (sys::failed(result)) return std::unexpected(open_error(path, result));
    switch (facts.stx_mode & S_IFMT) {
      case S_IFDIR: return open_directory(path, parameters);
      case S_IFREG: {
        auto medium = open_file(path, parameters);
        if (!medium && medium.error().number == ENOENT) continue;  // it has just been removed
        return medium;
      }
      case S_IFBLK: return open_block_device(path, parameters);
      case S_IFCHR:
        if (is_nvme(facts)) return open_nvme(path, parameters);
        [[fallthrough]];
      default:
        return failure(EINVAL, path,
                       ": this is neither a directory, a file, a block device nor an NVMe character device; "
                       "name one of these");
    }
  }
  return failure(EAGAIN, path, ": it keeps changing; name another place");
}

}  // namespace storage
