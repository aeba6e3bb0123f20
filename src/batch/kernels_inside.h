// What kernels are made of. Several files compile this, each for other CPUs; so everything here is local to the file that includes it.
//
// A Layout says how keys are found in a bucket:
//
//   struct Layout : Sizes {
//     explicit Layout(const Shape&);
//     uint64_t matches(const std::byte* bucket, const Key&) const;             // a bit for each slot; at least that of the lowest slot with the key is
//                                                                              // set. Bits from the head's `count` on mean nothing
//     uint64_t tag_matches(const uint8_t* tags, uint8_t tag) const;            // the same for tags, which others may be changing
//   };
// Sizes has the sizes of keys, values and records, as constants if they are known at compile time.
#pragma once
#include <algorithm>
#include <bit>

#include "batch/kernels.h"
#include "batch/sizes.h"

namespace batch {
namespace {

// How many keys ahead a loop fetches, so that a bucket has arrived when its key's turn comes: memory takes some 100 ns, and a key a few ns. Values from
// 8 to 32 make no difference.
constexpr size_t kAhead = 16;
constexpr size_t kRing = 2 * kAhead;
static_assert(std::has_single_bit(kRing));

constexpr uint32_t kNoSlot = 64;

inline uint64_t below(uint32_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// Where a record is, and the head of its bucket. The bucket is locked.
struct Found {
  uint64_t bucket = 0;
  uint32_t slot = kNoSlot;
  Head head;
};

template <class Layout, bool kHasTags, bool kLocks = true>
class Loop {
 public:
  Loop(const Buckets& buckets, Job& job) : buckets_(buckets), job_(job), layout_(buckets.shape()) {}

  size_t direct(size_t from) {
    for (size_t i = from; i < job_.count; ++i) {
      const Key key = key_at(i);
      if (!do_one(i, key, buckets_.spread().home(key))) return i;
    }
    return job_.count;
  }

  size_t prefetch(size_t from) {
    uint64_t homes[kRing];
    const auto fetch = [&](size_t i) {
      const uint64_t home = buckets_.spread().home(key_at(i));
      homes[i % kRing] = home;
      fetch_bucket(home);
    };
    const size_t first_end = std::min(job_.count, from + kAhead);
    for (size_t i = from; i < first_end; ++i) fetch(i);
    for (size_t i = from; i < job_.count; ++i) {
      if (i + kAhead < job_.count) fetch(i + kAhead);
      if (!do_one(i, key_at(i), homes[i % kRing])) return i;
    }
    return job_.count;
  }

  size_t tagged(size_t from) {
    uint64_t homes[kRing];
    const auto fetch_tags = [&](size_t i) {
      const uint64_t home = buckets_.spread().home(key_at(i));
      homes[i % kRing] = home;
      __builtin_prefetch(&buckets_.head(home), 1);
      __builtin_prefetch(buckets_.tags(home), 0);
    };
    const auto fetch_record = [&](size_t i) {
      const uint64_t home = homes[i % kRing];
      const uint64_t matches = guess(home, key_at(i));
      if (matches == 0) return;
      const std::byte* const record = buckets_.record(home, static_cast<uint32_t>(std::countr_zero(matches)));
      __builtin_prefetch(record, 1);
      // The record may lie in two lines.
      __builtin_prefetch(record + layout_.record_bytes() - 1, 1);
    };
    constexpr size_t kHalf = kAhead / 2;
    const size_t tags_end = std::min(job_.count, from + kAhead),
                 records_end = std::min(job_.count, from + kHalf);
    for (size_t i = from; i < tags_end; ++i) fetch_tags(i);
    for (size_t i = from; i < records_end; ++i) fetch_record(i);
    for (size_t i = from; i < job_.count; ++i) {
      if (i + kAhead < job_.count) fetch_tags(i + kAhead);
      if (i + kHalf < job_.count) fetch_record(i + kHalf);
      if (!do_one(i, key_at(i), homes[i % kRing])) return i;
    }
    return job_.count;
  }

 private:
  Key key_at(size_t i) const { return load_key(job_.keys + i * job_.key_stride, layout_.key_bytes()); }
  void fetch_bucket(uint64_t home) const {
    __builtin_prefetch(&buckets_.head(home), 1);
    const std::byte* const bucket = buckets_.bucket(home);
    for (uint32_t at = 0; at < buckets_.shape().bucket_bytes; at += base::kLineBytes)
      __builtin_prefetch(bucket + at, 1);
  }
  Code code_at(size_t i) const { return job_.codes == nullptr ? job_.code : Code::of(job_.codes[i]); }
  const std::byte* given_at(size_t i) const { return job_.given + i * job_.given_stride; }

  // Looks at the tags without the bucket's lock, which another thread may hold; the search is repeated under the lock.
  uint64_t guess(uint64_t home, const Key& key) const {
    return layout_.tag_matches(buckets_.tags(home), Buckets::tag_of(key));
  }

  // REQUIRES: the bucket is locked.
  uint32_t find_in(uint64_t bucket, const Head& head, const Key& key) const {
    if constexpr (kHasTags) {
      uint64_t left = layout_.tag_matches(buckets_.tags(bucket), Buckets::tag_of(key)) & below(head.count);
      for (; left != 0; left &= left - 1) {
        const auto slot = static_cast<uint32_t>(std::countr_zero(left));
        if (load_key(record(bucket, slot), layout_.key_bytes()) == key) return slot;
      }
      return kNoSlot;
    } else {
      return static_cast<uint32_t>(
          std::countr_zero(layout_.matches(buckets_.bucket(bucket), key) & below(head.count)));
    }
  }

  std::byte* record(uint64_t bucket, uint32_t slot) const {
    return buckets_.bucket(bucket) + slot * layout_.record_bytes();
  }

  Head lock(uint64_t bucket) const {
    if constexpr (kLocks) return buckets_.lock(bucket);
    return Head::of(buckets_.head(bucket).load(std::memory_order_relaxed));
  }
  void unlock(uint64_t bucket, const Head& head) const {
    if constexpr (kLocks) return buckets_.unlock(bucket, head);
    buckets_.head(bucket).store(head.word(), std::memory_order_relaxed);
  }

  // Does key number i of the job. False: there is no room for its record.
  bool do_one(size_t i, const Key& key, uint64_t home) {
    Found found{.bucket = home, .head = lock(home)};
    found.slot = find_in(home, found.head, key);
    bool is_done = true;
    if (found.slot != kNoSlot)
      act(i, found);
    else if (found.head.reach == 0 && !may_insert(code_at(i).action))
      note_absent(i);
    else
      is_done = do_beyond(i, key, home, found.head);
    unlock(home, found.head);
    return is_done;
  }

  // Goes on with a key that is not in its home. The home is locked.
  [[gnu::noinline]] bool do_beyond(size_t i, const Key& key, uint64_t home, Head& home_head) {
    for (uint32_t distance = 1; distance <= home_head.reach; ++distance) {
      const uint64_t bucket = home + distance;
      Found found{.bucket = bucket, .head = lock(bucket)};
      found.slot = find_in(bucket, found.head, key);
      if (found.slot != kNoSlot) act(i, found);
      unlock(bucket, found.head);
      if (found.slot != kNoSlot) return true;
    }
    if (!may_insert(code_at(i).action)) return note_absent(i), true;
    if (home_head.count < buckets_.shape().slots()) return insert(i, key, home, home_head), true;
    for (uint32_t distance = 1; distance <= Head::kMaxReach; ++distance) {
      const uint64_t bucket = home + distance;
      Head head = lock(bucket);
      const bool has_room = head.count < buckets_.shape().slots();
      if (has_room) insert(i, key, bucket, head);
      unlock(bucket, head);
      if (!has_room) continue;
      home_head.reach = std::max(home_head.reach, distance);
      return true;
    }
    return false;
  }

  void act(size_t i, Found& found) {
    std::byte* const at = record(found.bucket, found.slot);
    std::byte* const value = at + layout_.key_bytes();
    const Code code = code_at(i);
    switch (code.action) {
      case Action::kRead:
        __builtin_memcpy(job_.read + i * layout_.value_bytes(), value, layout_.value_bytes());
        break;
      case Action::kUpdate:
      case Action::kUpsert: __builtin_memcpy(value, given_at(i), layout_.value_bytes()); break;
      case Action::kChange:
      case Action::kMerge: {
        const Change& change = job_.functions[code.function];
        change.function(change.context, value, given_at(i));
        break;
      }
      case Action::kRemove: remove(found); break;
    }
    note(i, Outcome::kDone);
  }

  void insert(size_t i, const Key& key, uint64_t bucket, Head& head) {
    std::byte* const at = record(bucket, head.count);
    __builtin_memcpy(at, job_.keys + i * job_.key_stride, layout_.key_bytes());
    __builtin_memcpy(at + layout_.key_bytes(), given_at(i), layout_.value_bytes());
    if (buckets_.has_tags()) buckets_.tags(bucket)[head.count] = Buckets::tag_of(key);
    ++head.count;
    ++job_.inserted_count;
    note(i, Outcome::kInserted);
  }

  // Removes the record; the last one of the bucket takes its place.
  void remove(Found& found) {
    const uint32_t last = --found.head.count;
    ++job_.removed_count;
    if (found.slot == last) return;
    __builtin_memcpy(record(found.bucket, found.slot), record(found.bucket, last), layout_.record_bytes());
    if (!buckets_.has_tags()) return;
    uint8_t* const tags = buckets_.tags(found.bucket);
    tags[found.slot] = tags[last];
  }

  void note(size_t i, Outcome outcome) {
    if (job_.outcomes != nullptr) job_.outcomes[i] = outcome;
  }
  void note_absent(size_t i) {
    ++job_.absent_count;
    note(i, Outcome::kAbsent);
  }

  const Buckets& buckets_;
  Job& job_;
  const Layout layout_;
};

template <class Layout>
void set_kernels(Kernels& kernels) {
  kernels.direct = [](const Buckets& buckets, Job& job, size_t from) {
    return Loop<Layout, false>(buckets, job).direct(from);
  };
  kernels.prefetch = {[](const Buckets& buckets, Job& job, size_t from) {
                        return Loop<Layout, false>(buckets, job).prefetch(from);
                      },
                      [](const Buckets& buckets, Job& job, size_t from) {
                        return Loop<Layout, false, false>(buckets, job).prefetch(from);
                      }};
  kernels.tagged = {[](const Buckets& buckets, Job& job, size_t from) {
                      return Loop<Layout, true>(buckets, job).tagged(from);
                    },
                    [](const Buckets& buckets, Job& job, size_t from) {
                      return Loop<Layout, true, false>(buckets, job).tagged(from);
                    }};
}
template <class Layout>
void set_linear(Kernels& kernels) {
  kernels.linear = [](const Buckets& buckets, Job& job, size_t from) {
    return Loop<Layout, false>(buckets, job).direct(from);
  };
}

}  // namespace
}  // namespace batch
