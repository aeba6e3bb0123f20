// Updates of random records, for the programs that measure tables: kGroup of them in a call.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "../random.h"
#include "batch/job.h"
#include "batch/shape.h"

namespace load {

inline constexpr size_t kGroup = 256;
// Requests between two choices of the buckets that take part.
inline constexpr uint64_t kPeriod = 1 << 20;

// Of a thread. Records' keys are numbers, as many in each bucket as it has room for. active: of all buckets so many take part; 0: all.
class Requests {
 public:
  Requests(const batch::Shape& shape, uint64_t buckets, uint64_t active, uint64_t seed)
      : shape_(shape),
        count_(buckets),
        active_(active == 0 ? count_ : std::min(active, count_)),
        random_(seed),
        keys_(kGroup * shape_.key_bytes),
        values_(kGroup * shape_.value_bytes) {}

  batch::Job next() {
    if (active_ < count_ && made_ % kPeriod < kGroup) first_ = random_.below(count_);
    for (size_t i = 0; i < kGroup; ++i) {
      const uint64_t random = random_.next();
      const uint64_t slots = shape_.slots();
      uint64_t number =
          static_cast<uint64_t>(static_cast<unsigned __int128>(random) * (active_ * slots) >> 64);
      // Those that take part lie at equal distances, as the thesis's do, which has some for each cache-bucket.
      if (active_ < count_) {
        const uint64_t bucket = (first_ + number / slots * (count_ / active_)) % count_;
        number = bucket * slots + number % slots;
      }
      memcpy(&keys_[i * shape_.key_bytes], &number, std::min<size_t>(shape_.key_bytes, sizeof number));
      memcpy(&values_[i * shape_.value_bytes], &random, std::min<size_t>(shape_.value_bytes, sizeof random));
    }
    made_ += kGroup;
    return {.code = {batch::Action::kUpdate},
            .count = kGroup,
            .keys = keys_.data(),
            .given = values_.data(),
            .key_stride = shape_.key_bytes,
            .given_stride = shape_.value_bytes};
  }

 private:
  const batch::Shape shape_;
  const uint64_t count_, active_;
  Random random_;
  uint64_t first_ = 0, made_ = 0;
  std::vector<std::byte> keys_, values_;
};

}  // namespace load
