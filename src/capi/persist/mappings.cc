// Domains: mappings of files that the library makes, and mappings of the caller's.
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "base/ids.h"
#include "capi/persist/objects.h"
#include "persist/own/own.h"
#include "sys/files.h"
#include "sys/lock.h"
#include "sys/persistent.h"
#include "sys/signals.h"

namespace capi::persisting {
namespace {

using persist::DomainKind;

// A mapping that spillway_persist_map() made.
struct Mapping {
  char* address = nullptr;
  size_t bytes = 0;
  int descriptor = -1;
  Mapping* next = nullptr;
};
constinit Mapping* mappings = nullptr;
constinit sys::Mutex mappings_lock;
constinit bool is_at_fork = false;  // handlers of forks are set, so that a child finds the lock free

void lock_mappings() { mappings_lock.lock(); }
void unlock_mappings() { mappings_lock.unlock(); }

// kNone: there is no such kind.
DomainKind kind_of(std::string_view name) {
  if (name == "dram") return DomainKind::kMemory;
  for (const DomainKind kind : {DomainKind::kMemory, DomainKind::kFlushOnFail, DomainKind::kFile})
    if (name == persist::name_of(kind)) return kind;
  return DomainKind::kNone;
}

// Allocates so many bytes of a file, so that no store finds the device full. `file_bytes`: how many it has.
base::Expected<void> allocate_file(int descriptor, const char* path, size_t bytes, size_t file_bytes) {
  // A file beyond this is refused with a signal, SIGXFSZ, which ends the program.
  if (const uint64_t limit = sys::file_size_limit(); bytes > file_bytes && bytes > limit)
    return base::failure(EFBIG, path, ": files may be no larger than ", base::Bytes{limit},
                         " in this process; raise ulimit -f");
  const auto allocate = [&] { return posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)); };
  int error = allocate();
  if (error == EINTR) {
    // tmpfs frees what it has allocated by then: with a timer's signals this might never end.
    const sys::BlockedSignals blocked(sys::kSentSignals);
    error = allocate();
  }
  if (error == 0) return {};
  return base::failure(error, path, ": cannot allocate ", base::Bytes{bytes}, ": ", base::error_name(error));
}

// Gives the file so many bytes, all of them allocated; 0: as many as it has, in whole OS pages. Returns how many. A block device stays as large as it is.
base::Expected<size_t> size_file(int descriptor, const char* path, size_t bytes) {
  struct stat facts = {};
  if (fstat(descriptor, &facts) != 0) return base::failure(errno, path, ": ", base::error_name(errno));
  if (!S_ISREG(facts.st_mode) && !S_ISCHR(facts.st_mode) && !S_ISBLK(facts.st_mode))
    return base::failure(EINVAL, path, ": this is neither a file nor a device; name one");
  const off_t end = S_ISBLK(facts.st_mode) ? lseek(descriptor, 0, SEEK_END) : facts.st_size;
  if (end < 0) return base::failure(errno, path, ": ", base::error_name(errno));
  const auto file_bytes = static_cast<size_t>(end);
  if (bytes == 0) bytes = base::round_down(file_bytes, base::kOsPageBytes);
  if (bytes == 0 || bytes % base::kOsPageBytes != 0)
    return base::failure(EINVAL, path, ": ", bytes,
                         " bytes are not a whole number of OS pages; give a multiple of 4096");
  if (S_ISBLK(facts.st_mode) && bytes > file_bytes)
    return base::failure(ENOSPC, path, ": this device has ", file_bytes, " bytes; give no more than these");
  if (S_ISREG(facts.st_mode))
    if (auto allocated = allocate_file(descriptor, path, bytes, file_bytes); !allocated)
      return std::unexpected(allocated.error());
  return bytes;
}

// Maps the file as the kind says, and sets `domain` to what it turns out to be.
base::Expected<char*> map(int descriptor, const char* path, size_t bytes, std::string_view kind,
                          DomainKind& domain) {
  const bool needs_memory = kind == "memory" || kind == "flush_on_fail";
  domain = kind == "auto" ? DomainKind::kMemory : kind_of(kind);
  if (needs_memory || kind == "auto") {
    auto mapped = sys::map_file(descriptor, bytes, true);
    if (mapped) return mapped;
    if (mapped.error().number != EOPNOTSUPP)
      return base::failure(mapped.error().number, path, ": ", mapped.error().message);
    if (needs_memory)
      return base::failure(
          ENOTSUP, path,
          ": this is not persistent memory (a file system with DAX); give file, or for tests dram");
    domain = DomainKind::kFile;
  }
  auto mapped = sys::map_file(descriptor, bytes, false);
  if (!mapped) return base::failure(mapped.error().number, path, ": ", mapped.error().message);
  return mapped;
}

// Opens the file, or makes it.
base::Expected<int> open_file(const char* path, bool& is_new) {
  for (is_new = false;; is_new = !is_new) {
    const int descriptor =
        open(path, is_new ? O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0600);
    if (descriptor >= 0) return descriptor;
    // Somebody else may have made or removed the file in between.
    if (errno != (is_new ? EEXIST : ENOENT)) return base::failure(errno, path, ": ", base::error_name(errno));
    struct stat facts = {};
    if (is_new && lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode))
      return base::failure(EINVAL, path,
                           ": it is a link to a file that is not there; remove the link, or name that file");
  }
}

// Makes a new file, and its name, durable.
base::Expected<void> sync_new(int descriptor, std::string_view path) {
  const long result = fsync(descriptor) == 0 ? sys::sync_name(path) : -errno;
  if (result == 0) return {};
  const int error = static_cast<int>(-result);
  return base::failure(error, path, ": cannot be made durable: ", base::error_name(error));
}

base::Expected<Mapping> open_mapping(const char* path, size_t bytes, std::string_view kind) {
  bool is_new = false;
  const auto opened = open_file(path, is_new);
  if (!opened) return std::unexpected(opened.error());
  Mapping mapping;
  mapping.descriptor = *opened;
  base::Error error;
  auto sized = size_file(mapping.descriptor, path, bytes);
  if (sized && is_new)
    if (auto synced = sync_new(mapping.descriptor, path); !synced) sized = std::unexpected(synced.error());
  if (!sized) {
    error = sized.error();
  } else {
    DomainKind domain;
    const auto mapped = map(mapping.descriptor, path, *sized, kind, domain);
    if (!mapped) {
      error = mapped.error();
    } else {
      mapping.address = *mapped;
      mapping.bytes = *sized;
      const auto begin = number_of(*mapped);
      persist::own::end_mapping(begin, *sized);  // the mapping before it has gone, maybe unannounced
      const auto added = persist::own::add_domain({.begin = begin,
                                                   .end = begin + *sized,
                                                   .kind = domain,
                                                   .device = nullptr,
                                                   .descriptor = mapping.descriptor},
                                                  path, 0);
      if (added) return mapping;
      error = added.error();
      munmap(*mapped, *sized);
    }
  }
  close(mapping.descriptor);
  if (is_new) unlink(path);
  return std::unexpected(error);
}

}  // namespace
}  // namespace capi::persisting

extern "C" {

int spillway_persist_map(const char* path, size_t bytes, const char* kind, void** address,
                         size_t* mapped_bytes) {
  using namespace capi::persisting;
  if (path == nullptr || kind == nullptr || address == nullptr)
    return refuse_invalid("map: the path, the kind or the place for the address is null");
  *address = nullptr;
  if (kind_of(kind) == DomainKind::kNone && strcmp(kind, "auto") != 0)
    return refuse_invalid("map: there is no kind '", kind,
                          "'; give auto, memory, flush_on_fail, file or dram");
  auto mapping = open_mapping(path, bytes, kind);
  if (!mapping) return refuse(mapping.error());
  auto* const kept = capi::make<Mapping>(*mapping);
  if (kept == nullptr) {
    const auto begin = number_of(mapping->address);
    (void)persist::own::remove_domain(begin, begin + mapping->bytes);  // nothing was stored there
    munmap(mapping->address, mapping->bytes);
    close(mapping->descriptor);
    return refuse(base::Error::of(ENOMEM, "map: no memory"));
  }
  *address = mapping->address;
  if (mapped_bytes != nullptr) *mapped_bytes = mapping->bytes;
  sys::LockGuard scope(mappings_lock);
  if (!is_at_fork) is_at_fork = pthread_atfork(lock_mappings, unlock_mappings, unlock_mappings) == 0;
  kept->next = mappings;
  mappings = kept;
  return SPILLWAY_PERSIST_OK;
}

int spillway_persist_unmap(void* address) {
  using namespace capi::persisting;
  Mapping* found = nullptr;
  {
    sys::LockGuard scope(mappings_lock);
    for (Mapping** place = &mappings; *place != nullptr; place = &(*place)->next) {
      if ((*place)->address != address) continue;
      found = *place;
      *place = found->next;
      break;
    }
  }
  if (found == nullptr) return SPILLWAY_PERSIST_ABSENT;
  const auto begin = number_of(found->address);
  const auto removed = persist::own::remove_domain(begin, begin + found->bytes);
  munmap(found->address, found->bytes);
  close(found->descriptor);
  capi::destroy(found);
  return answer_written(removed);
}

int spillway_persist_add(void* address, size_t bytes, const char* kind, int descriptor) {
  using namespace capi::persisting;
  if (address == nullptr || kind == nullptr) return refuse_invalid("add: the address or the kind is null");
  const DomainKind domain = kind_of(kind);
  if (domain == DomainKind::kNone)
    return refuse_invalid("add: there is no kind '", kind, "'; give memory, flush_on_fail, file or dram");
  const auto begin = number_of(address);
  if (domain == DomainKind::kFile && descriptor >= 0 && fcntl(descriptor, F_GETFD) < 0)
    return refuse_invalid("add: ", descriptor, " is not an open descriptor; give the mapped file's, or -1");
  return answer(persist::own::add_domain(
      {.begin = begin, .end = begin + bytes, .kind = domain, .device = nullptr, .descriptor = descriptor}, "",
      0));
}

int spillway_persist_remove(void* address, size_t bytes) {
  using namespace capi::persisting;
  const auto begin = number_of(address);
  if ((begin | bytes) % base::kLineBytes != 0 || begin + bytes < begin)
    return refuse_invalid("remove: ", bytes, " bytes at ", base::Hex{begin},
                          " are not whole lines; give address and size as multiples of 64");
  const persist::Domains& domains = persist::own::runtime().domains();
  const persist::Domains::Found found = domains.find(begin);
  if (bytes == 0 || (!found.is_inside && found.domain.end >= begin + bytes)) return SPILLWAY_PERSIST_ABSENT;
  if (domains.removal_end(begin, begin + bytes) != begin + bytes)
    return refuse(base::Error::of(ENOSPC, "remove: this would leave two domains of one, and there are ",
                                  persist::Domains::kMaxDomains,
                                  " domains already; remove another one before, or all of this one"));
  return answer_written(persist::own::remove_domain(begin, begin + bytes));
}

}  // extern "C"
