// Gets or sets of several items at a time, for the clients of all protocols.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "server/items/items.h"
#include "storage/buffer_pool.h"

namespace server {

inline constexpr size_t kTogether = 64;

// Calls use(base::Expected<Result>&) for each of `count` results, in their order. all(results) makes all of them at once, with as many I/Os at a
// time. They lie in memory of the pool, since tasks have small stacks; if it has none, one(i) makes each. REQUIRES: count <= kTogether.
template <class Result, class All, class One, class Use>
void do_together(storage::BufferPool& pool, size_t count, const All& all, const One& one, const Use& use) {
  struct Results {
    base::Expected<Result> of[kTogether];
  };
  const storage::Buffer memory = count > 1 ? storage::Buffer(pool, sizeof(Results)) : storage::Buffer();
  if (memory.bytes().empty()) {
    for (size_t i = 0; i < count; ++i) {
      base::Expected<Result> result = one(i);
      use(result);
    }
    return;
  }
  auto* const results = new (memory.bytes().data()) Results;
  const std::span some(results->of, count);
  all(some);
  for (base::Expected<Result>& result : some) use(result);
  std::destroy_at(results);
}

template <class Use>
void look_up_together(Items& items, storage::BufferPool& pool, std::span<const std::string_view> keys,
                      const Use& use) {
  do_together<Item>(
      pool, keys.size(), [&](auto found) { items.get(keys, found); },
      [&](size_t i) { return items.get(keys[i]); }, use);
}

template <class Use>
void set_together(Items& items, storage::BufferPool& pool, std::span<const NewItem> all, const Use& use) {
  do_together<Done>(
      pool, all.size(), [&](auto done) { items.set(all, done); }, [&](size_t i) { return items.set(all[i]); },
      use);
}

}  // namespace server
