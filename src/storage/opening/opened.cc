#include "storage/opening/opened.h"

#include <fcntl.h>

#include "base/check.h"
#include "sys/files.h"
#include "sys/nap.h"

namespace storage {
namespace {

constexpr unsigned kPrivateMode = 0600;

// flock(), without waiting.
long lock(long descriptor, int how) {
  long result;
  do {
    result = sys::syscall(SYS_flock, descriptor, how | LOCK_NB);
  } while (result == -EINTR);
  return result;
}

std::unexpected<base::Error> cannot_lock(const Path& path, long result, const char* advice) {
  const int number = static_cast<int>(-result);
  return base::failure(number, path, ": it cannot be locked against others: ", base::error_name(number),
                       advice);
}

}  // namespace

Path::Path(std::string_view path) {
  CHECK_LE(path.size(), kMaxPathBytes);
  text << path;
  constexpr size_t kMaxShown = 90;
  if (path.size() <= kMaxShown)
    shown << path;
  else
    shown << "..." << path.substr(path.size() - kMaxShown);
}

base::Expected<int> Opened::own() { return sys::own_new_descriptor(take()); }

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

base::Expected<void> lock_for_store(const Path& path, long descriptor) {
  int how = LOCK_EX;
  for (int tries = 0;;) {
    const long result = lock(descriptor, how);
    if (!sys::failed(result)) return {};
    if (result == -EBADF && how == LOCK_EX) {
      // NFS gives an exclusive lock only with write access. A shared lock still keeps writers away.
      how = LOCK_SH;
    } else if (result != -EWOULDBLOCK) {
      return cannot_lock(path, result, "; name a place on a file system that has locks");
    } else if (tries++ == kStoreTries) {
      return base::failure(EBUSY, path,
                           ": it is in use, here or in another process; wait until that has ended");
    } else {
      sys::nap(kStoreTryNs);
    }
  }
}

void give_up_lock(long descriptor) { sys::syscall(SYS_flock, descriptor, LOCK_UN); }

base::Expected<void> lock_for_spilling(const Path& path, long descriptor) {
  const long result = lock(descriptor, LOCK_EX);
  if (!sys::failed(result)) return {};
  if (result != -EWOULDBLOCK)
    return cannot_lock(path, result, "; name a directory, so that each has its own file");
  return base::failure(EBUSY, path,
                       ": another process spills there; name a directory, so that each has its own file");
}

bool is_at(const Path& path, const struct statx& opened) {
  struct statx facts;
  return !sys::failed(describe(AT_FDCWD, path.c_str(), facts)) && facts.stx_ino == opened.stx_ino &&
         facts.stx_dev_major == opened.stx_dev_major && facts.stx_dev_minor == opened.stx_dev_minor;
}

bool is_link(const Path& path) {
  struct statx facts;
  const long result =
      sys::syscall(SYS_statx, AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &facts);
  return !sys::failed(result) && (facts.stx_mode & S_IFMT) == S_IFLNK;
}

base::Error broken_link(const Path& path) {
  return base::Error::of(EINVAL, path,
                         ": it is a link to a file that is not there; remove the link, or name that file");
}

bool is_in_dev(std::string_view path) { return path.starts_with("/dev/") && !path.starts_with("/dev/shm/"); }

long open_path(const Path& path, int flags, bool read_only) {
  flags |= (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY;
  long result;
  do {
    result = sys::syscall(SYS_openat, AT_FDCWD, path.c_str(), flags, kPrivateMode);
  } while (result == -EINTR);
  return result;
}

long describe(long descriptor, const char* path, struct statx& facts) {
  facts = {};
  int flags = path[0] == 0 ? AT_EMPTY_PATH : 0;
  return sys::syscall(SYS_statx, descriptor, path, flags, STATX_BASIC_STATS | STATX_DIOALIGN, &facts);
}

std::string_view link_name(const char* path, std::span<char> text) {
  const long length = sys::syscall(SYS_readlinkat, AT_FDCWD, path, text.data(), text.size());
  if (sys::failed(length)) return {};
  std::string_view name(text.data(), static_cast<size_t>(length));
  name.remove_prefix(name.rfind('/') + 1);
  return name;
}

uint64_t queue_number(uint32_t major, uint32_t minor, const char* name) {
  // A partition's queue is its disk's.
  for (const char* queue : {"/queue/", "/../queue/"}) {
    base::Text<96> path;
    path << "/sys/dev/block/" << major << ':' << minor << queue << name;
    char text[32];
    if (sys::read_small_file(path.c_str(), text) <= 0) continue;
    uint64_t number = 0;
    for (const char* digit = text; *digit >= '0' && *digit <= '9'; ++digit)
      number = number * 10 + static_cast<uint64_t>(*digit - '0');
    return number;
  }
  return 0;
}

}  // namespace storage
