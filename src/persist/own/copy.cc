#include "persist/own/copy.h"

#include "persist/own/own.h"

namespace persist::own {
namespace {

struct OwnSink {
  const void* site;

  void flush(uintptr_t address, size_t bytes) const {
    if (thread == nullptr) own::store(address, bytes, false, site);
    own::flush(address, bytes, site);
  }
  void copied(uintptr_t address, size_t bytes) const { own::copied(address, bytes, site); }
  bool has_streams(uintptr_t begin, uintptr_t end) const {
    const Domains::Found found = find_place(begin);
    return found.domain.end >= end && persist::has_streams(found);
  }
};

}  // namespace

void copy(void* to, const void* from, size_t bytes, Caches caches, const void* site) {
  OwnSink sink = {site};
  persist::copy(sink, to, from, bytes, caches);
}

void set(void* to, int byte, size_t bytes, Caches caches, const void* site) {
  OwnSink sink = {site};
  persist::set(sink, to, byte, bytes, caches);
}

}  // namespace persist::own
