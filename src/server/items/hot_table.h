// HotTable: when items were used last, and whether they were since they were stored: what memcached's meta commands tell by their flags l,
// h, and la. Memory facts: gone with the process.
//
// A word for each hash of a key, the last one's whose hash begins so: what was not used for long may be forgotten, and one key in some
// billions is taken for another.
//
// Thread contract: any. Each call is one load and at most one store, relaxed: of two at a time one may be lost.
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

  // So many words, 8 bytes each, a power of two; 0: nothing is known of any. Errors: ENOMEM.
  base::Expected<void> open(size_t words);

  // Of what is not known: it has not been used, just now.
  Facts facts_of(uint64_t hash, uint64_t now_s) const;
  void used(uint64_t hash, uint64_t now_s) { set(hash, now_s, true); }
  void stored(uint64_t hash, uint64_t now_s) { set(hash, now_s, false); }
  // One of these will come soon.
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
