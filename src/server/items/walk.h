// Walk: all items as they are at one moment, one after the other, in no order, while others change them. For commands that list or count keys.
//
//   Walk walk;
//   walk.open(items);
//   for (Walk::Entry entry; *walk.next(entry);) use(entry.key);
//   walk.close();
//
// Thread contract: that of the Items that it is opened with. They stay open until the walk is closed.
#pragma once
#include <string_view>

#include "kv/snapshot.h"
#include "server/items/items.h"

namespace server {

class Walk {
 public:
  struct Entry {
    std::string_view key;  // the client's, until the next call
    uint64_t value_bytes = 0;
    uint64_t cas = 0;
    uint64_t expires_ms = kNever;
    uint32_t flags = 0;
    Marks marks;
  };

  // The moment is within this call. Items that end afterwards, or that a cache drops, may be left out. Errors: as kv::Snapshot::open.
  base::Expected<void> open(Items& items);
  // False: there are no more. Errors: as kv::Snapshot::next, and EBADMSG for a value that is no item; the next call goes on behind it. Cost: one I/O
  // for each item, many at a time.
  base::Expected<bool> next(Entry& entry);
  // As next(), but skips damaged records and what is no item, so that one of them does not hide all others.
  base::Expected<bool> next_item(Entry& entry);
  void close() { snapshot_.close(); }

 private:
  kv::Snapshot snapshot_;
};

}  // namespace server
