// Gets of several items at a time, as all protocols' clients have them.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "server/items/items.h"
#include "storage/buffer_pool.h"

namespace server {

inline constexpr size_t kLookedUpTogether = 64;

// Calls use(base::Expected<Item>&) for each key, in their order: that many I/Os at a time. The results are in memory of the pool, since tasks
// have small stacks; without any they are looked up one by one. REQUIRES: at most kLookedUpTogether.
template <class Use>
void look_up_together(Items& items, storage::BufferPool& pool, std::span<const std::string_view> keys,
                      const Use& use) {
  struct Results {
    base::Expected<Item> of[kLookedUpTogether];
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

}  // namespace server
