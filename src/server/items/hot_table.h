// HotTable: when items were used last, and whether they have been used since they were stored, as memcached's meta commands report it (flags l and
// h of mg, `la` of me). It is kept in memory only, and so gone with the process.
//
// The table has a word for each value of some bits of a key's hash, about the key that was used or stored last among those with these bits. So an
// item that was not used for long may be forgotten, and one key in some billions is taken for another.
//
// Thread contract: any thread. Each call is one load and at most one store, both relaxed: of two at the same time one may be lost, which nobody
// relies on.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/error.h"

namespace server {

class HotTable {
 public:
  struct Facts {
    bool was_used = false;  // since it was stored
    uint64_t idle_s = 0;    // since it was used or stored
  };

  // The table has this number of words of 8 bytes, a power of two; with 0 nothing is known of any item. Errors: ENOMEM.
  base::Expected<void> open(size_t words);

  // An item that is not known counts as stored just now.
  Facts facts_of(uint64_t hash, uint64_t now_s) const;
  void used(uint64_t hash, uint64_t now_s) { set(hash, now_s, true); }
  void stored(uint64_t hash, uint64_t now_s) { set(hash, now_s, false); }
  // Call it ahead of one of these calls.
  void prefetch(uint64_t hash) const {
    if (count_ != 0) __builtin_prefetch(&word_of(hash), 1);
  }

 private:
  void set(uint64_t hash, uint64_t now_s, bool was_used);
  std::atomic<uint64_t>& word_of(uint64_t hash) const { return words_[hash & (count_ - 1)]; }

  std::unique_ptr<std::atomic<uint64_t>[]> words_;
  size_t count_ = 0;
};

}  // namespace server
