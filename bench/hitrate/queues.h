// Queues of pages for simulators: doubly linked rings over page numbers, all in one pair of arrays. A page is in one queue at a time
// or in none; front is where pages enter, back where they leave.
#pragma once
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace hitrate {

class Queues {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  Queues(uint32_t page_count, uint32_t queue_count)
      : page_count_(page_count),
        before_(page_count + queue_count),
        after_(page_count + queue_count),
        in_(page_count, kNone),
        sizes_(queue_count) {
    for (uint32_t queue = 0; queue < queue_count; ++queue)
      before_[head(queue)] = after_[head(queue)] = head(queue);
  }

  uint32_t queue_of(uint32_t page) const { return in_[page]; }
  uint64_t size(uint32_t queue) const { return sizes_[queue]; }
  uint32_t back(uint32_t queue) const { return page_at(before_[head(queue)]); }
  // The page that entered after this one; kNone: none did.
  uint32_t newer(uint32_t page) const { return page_at(before_[page]); }

  // Takes it out of the queue that it is in, if any.
  void push_front(uint32_t queue, uint32_t page) {
    if (in_[page] != kNone) remove(page);
    const uint32_t first = after_[head(queue)];
    before_[page] = head(queue);
    after_[page] = first;
    after_[head(queue)] = before_[first] = page;
    in_[page] = queue;
    ++sizes_[queue];
  }
  void remove(uint32_t page) {
    CHECK_NE(in_[page], kNone);
    after_[before_[page]] = after_[page];
    before_[after_[page]] = before_[page];
    --sizes_[in_[page]];
    in_[page] = kNone;
  }
  uint32_t pop_back(uint32_t queue) {
    const uint32_t page = back(queue);
    remove(page);
    return page;
  }

 private:
  uint32_t head(uint32_t queue) const { return page_count_ + queue; }
  uint32_t page_at(uint32_t node) const { return node < page_count_ ? node : kNone; }

  uint32_t page_count_;
  std::vector<uint32_t> before_, after_;  // before: towards the front
  std::vector<uint32_t> in_;              // queue
  std::vector<uint64_t> sizes_;
};

}  // namespace hitrate
