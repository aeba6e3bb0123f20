#include "persist/own/recording.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/log.h"
#include "base/text.h"
#include "persist/domain.h"
#include "sys/kernel.h"
#include "sys/mappings.h"

namespace persist {
namespace {

// Ends the process: a check of an incomplete record would be taken for one of the whole program.
[[noreturn]] void refuse(const base::Error& error) {
  base::log(error.message);
  for (;;) sys::syscall(SYS_exit_group, 2);
}

constexpr size_t kPathCapacity = sizeof(sys::FoundMapping::path);  // with the 0 at its end

const void* address_of(uintptr_t number) { return reinterpret_cast<const void*>(number); }

uint64_t file_bytes_of(const char* path) {
  struct stat facts = {};
  if (sys::failed(sys::syscall(SYS_newfstatat, AT_FDCWD, path, &facts, 0))) return 0;
  return static_cast<uint64_t>(facts.st_size);
}

}  // namespace

void Recording::begin(std::string_view path, bool compares) {
  base::TextRef(path_, sizeof path_) << path;  // one that is cut off is too long for the recorder, too
  compares_ = compares;
}

void Recording::add(const Domain& domain, std::string_view path, uint64_t offset_bytes) {
  {
    sys::QuietLockGuard scope(lock_);
    if (may_start_)
      if (auto started = recorder_.start({.path = path_, .are_stores_told = !compares_}); !started)
        refuse(started.error());
    may_start_ = false;
  }
  // The checker knows files by their paths: one that is cut off, here or where it was found, may be another file's.
  base::Text<kPathCapacity> name;
  name << path;
  if (name.size() + 1 == kPathCapacity)
    refuse(base::Error::of(ENAMETOOLONG, "persist: the path of a mapped file is too long to be recorded; ",
                           "give it one of less than ", kPathCapacity - 1, " bytes"));
  const auto mapped = recorder_.map(address_of(domain.begin), domain.end - domain.begin, name.c_str(),
                                    offset_bytes, file_bytes_of(name.c_str()));
  if (!mapped) refuse(mapped.error());
}

void Recording::remove(uintptr_t begin, uintptr_t end) { recorder_.unmap(address_of(begin), end - begin); }

void Recording::store(uintptr_t address, size_t bytes, bool is_past_caches, const void* site) {
  recorder_.store(address_of(address), bytes, site, is_past_caches);
}

void Recording::flush(uintptr_t address, size_t bytes, bool is_ordered, const void* site) {
  recorder_.flush(address_of(address), bytes, is_ordered, site);
}

void Recording::fence(const void* site) { recorder_.fence(site); }
void Recording::mark(std::string_view text) { recorder_.marker(text); }

void Recording::finish() {
  {
    sys::QuietLockGuard scope(lock_);
    may_start_ = false;
  }
  recorder_.finish();
}

}  // namespace persist
