#include "server/items/hot_table.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/check.h"

namespace server {
namespace {

// | 31 bits of the hash | was_used | seconds, modulo 2^32 |. All 0: nothing.
constexpr uint64_t kSeconds = 0xffff'ffff;
constexpr uint64_t kUsed = uint64_t{1} << 32;
constexpr unsigned kTagShift = 33;

// The upper bits, which do not choose the word.
constexpr uint64_t tag_of(uint64_t hash) { return hash >> kTagShift << kTagShift; }

}  // namespace

base::Expected<void> HotTable::open(size_t words) {
  CHECK(words == 0 || std::has_single_bit(words));
  if (words > 0) words_.reset(new (std::nothrow) std::atomic<uint64_t>[words]());
  if (words > 0 && words_ == nullptr) return base::failure(ENOMEM, "no memory to know of ", words, " items");
  count_ = words;
  return {};
}

HotTable::Facts HotTable::facts_of(uint64_t hash, uint64_t now_s) const {
  if (count_ == 0) return {};
  const uint64_t word = word_of(hash).load(std::memory_order_relaxed);
  if (word == 0 || tag_of(word) != tag_of(hash)) return {};
  // Below 0: the clock was set back since.
  const auto since_s = static_cast<int32_t>(static_cast<uint32_t>(now_s - word));
  return {.was_used = (word & kUsed) != 0, .idle_s = static_cast<uint64_t>(std::max(since_s, 0))};
}

void HotTable::set(uint64_t hash, uint64_t now_s, bool was_used) {
  if (count_ == 0) return;
  const uint64_t word = tag_of(hash) | (was_used ? kUsed : 0) | (now_s & kSeconds);
  std::atomic<uint64_t>& own = word_of(hash);
  // A word that is right already is not written, so that its cache line stays shared by all processors.
  if (own.load(std::memory_order_relaxed) != word) own.store(word, std::memory_order_relaxed);
}

}  // namespace server
