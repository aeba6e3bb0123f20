// Gets, or sets, of several items at a time, as all protocols' clients have them.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "server/items/items.h"
#include "storage/buffer_pool.h"

namespace server {

inline constexpr size_t kTogether = 64;

// Calls use(base::Expected<Item>&) for each key, in their order: that many I/Os at a time. The results are in memory of the pool, since tasks
// have small stacks; without any they are looked up one by one. REQUIRES: at most kTogether.
template <class Use>
void look_up_together(Items& items, storage::BufferPool& pool, std::span<const std::string_view> keys,
                      const Use& use) {
  struct Results {
    base::Expected<Item> of[kTogether];
  };
  const storage::Buffer memory = keys.size() > 1 ? storage::Buffer(pool, sizeof(Results)) : storage::Buffer();
  if (memory.bytes().empty()) {
    for (const std::string_view key : keys) {
      auto found = items.get(key);
      use(found);
    }
    return;
  }
  auto* const results = new (memory.bytes().data()) Results;
  const std::span found(results->of, keys.size());
  items.get(keys, found);
  for (base::Expected<Item>& one : found) use(one);
  std::destroy_at(results);
}

// The same of items that are set: use(base::Expected<Done>&).
template <class Use>
void set_together(Items& items, storage::BufferPool& pool, std::span<const NewItem> all, const Use& use) {
  struct Results {
    base::Expected<Done> of[kTogether];
  };
  const storage::Buffer memory = all.size() > 1 ? storage::Buffer(pool, sizeof(Results)) : storage::Buffer();
  if (memory.bytes().empty()) {
    for (const NewItem& one : all) {
      auto done = items.set(one.key, one.value, {.flags = one.flags, .expires_ms = one.expires_ms});
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
