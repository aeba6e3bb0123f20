// Gets or sets of several items at a time, for the clients of all protocols.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "server/items/items.h"
#include "storage/buffer_pool.h"

namespace server {

inline constexpr size_t kTogether = 64;

// Calls use(base::Expected<Result>&) for each of `count` results, in their order. some(first, results) makes the results from `first` on, with as many
// I/Os at a time, or only some of them, and returns how many. They lie in memory of the pool, since tasks have small stacks; if it has none, one(i)
// makes each. REQUIRES: count <= kTogether.
template <class Result, class Some, class One, class Use>
void do_together(storage::BufferPool& pool, size_t count, const Some& some, const One& one, const Use& use) {
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
  for (size_t first = 0; first < count;) {
    auto* const results = new (memory.bytes().data()) Results;
    const size_t made = some(first, std::span(results->of, count - first));
    for (base::Expected<Result>& result : std::span(results->of, made)) use(result);
    std::destroy_at(results);
    first += made;
  }
}

template <class Use>
void look_up_together(Items& items, storage::BufferPool& pool, std::span<const std::string_view> keys,
                      const Use& use) {
  do_together<Item>(
      pool, keys.size(), [&](size_t first, auto found) { return items.get_some(keys.subspan(first), found); },
      [&](size_t i) { return items.get(keys[i]); }, use);
}

template <class Use>
void set_together(Items& items, storage::BufferPool& pool, std::span<const NewItem> all, const Use& use) {
  const auto set_rest = [&](size_t first, auto done) {
    items.set(all.subspan(first), done);
    return done.size();
  };
  do_together<Done>(pool, all.size(), set_rest, [&](size_t i) { return items.set(all[i]); }, use);
}

}  // namespace server
