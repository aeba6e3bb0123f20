// Gets or sets of several items at a time, for the clients of all protocols.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "server/items/items.h"
#include "storage/buffer_pool.h"

namespace server {

inline constexpr size_t kTogether = 64;

// Calls use(base::Expected<Item>&) for the item of each key, in their order. As many as Items::get_some() looks up at a time are read together.
template <class Use>
void look_up_together(Items& items, std::span<const std::string_view> keys, const Use& use) {
  while (!keys.empty()) keys = keys.subspan(items.get_some(keys, use));
}

// Sets all, with as many I/Os in flight, and then calls use(base::Expected<Done>&) for each, in their order. The results lie in memory of the pool,
// since tasks have small stacks; if it has none, each is set by itself. REQUIRES: at most kTogether.
template <class Use>
void set_together(Items& items, storage::BufferPool& pool, std::span<const NewItem> all, const Use& use) {
  struct Results {
    base::Expected<Done> of[kTogether];
  };
  const storage::Buffer memory = all.size() > 1 ? storage::Buffer(pool, sizeof(Results)) : storage::Buffer();
  if (memory.bytes().empty()) {
    for (const NewItem& item : all) {
      base::Expected<Done> done = items.set(item);
      use(done);
    }
    return;
  }
  auto* const results = new (memory.bytes().data()) Results;
  const std::span done(results->of, all.size());
  items.set(all, done);
  for (base::Expected<Done>& one : done) use(one);
  std::destroy_at(results);
}

}  // namespace server
