// The cache compared with a model, an array of bytes. With one thread, so that a seed replays a failure exactly; what
// other threads could do between the steps of a protocol is done from hooks, at random.
//
//   SPILLWAY_TEST_SEEDS=100  how many seeds        SPILLWAY_TEST_SEED=7  begin with this one
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cache/testing/test_world.h"

namespace cache {
namespace {

class Model {
 public:
  Model(const TestParameters& parameters, uint64_t seed, bool faults)
      : world_(parameters),
        a_(world_, 0),
        b_(world_, 1),
        c_(world_, 2),
        random_(seed),
        bytes_(parameters.range_pages * parameters.page_bytes),
        page_bytes_(parameters.page_bytes),
        faults_(faults) {
    EXPECT_TRUE(world_.cache->prepare_cleaning());
    world_.device->allow_discards();
    world_.holders.on_barrier = [this] { interfere(true); };
    world_.holders.on_visited = [this] { interfere(true); };
    const auto during_io = [this](const Io& io) { interfere_with(io); };
    world_.device->before_transfer = during_io;
    world_.device->after_transfer = during_io;
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      if (i % 32 == 0) world_.cache->verify();
    }
    while (!pins_.empty()) unpin();
    held_ = nullptr;
    b_.release_all();
    set_fault_chances(0);
    in_hook_ = true;  // quiet from here
    for (uint64_t page = 0; page < world_.parameters.range_pages; ++page)
      check(a_, page * page_bytes_, page_bytes_);
    world_.cache->verify();
  }

 private:
  void step() {
    a_.release(0);
    switch (random_.below(faults_ ? 15 : 14)) {
      case 0:
      case 1:
      case 2: return check(a_, random_offset(), length());
      case 3:
      case 4:
      case 5: return write(a_, random_offset(), length());
      case 6: return write(a_, random_.below(4) * page_bytes_ + random_.below(page_bytes_), 1);  // a hot few
      case 7: return write_back_and_forth();
      case 8: return discard();
      case 9: return pins_.size() < 2 ? pin() : unpin();
      case 10: return use_pin();
      case 11: return hold();
      case 12: return use_hold();
      case 13: {
        for (uint64_t n = random_.below(8); n > 0; --n) {
          switch (random_.below(4)) {
            case 0: world_.cache->background_step(*a_.workspace); break;
            case 1:
              cleaning_ = true;
              world_.cache->idle_step(*a_.workspace);
              cleaning_ = false;
              break;
            default: world_.cache->evict(*a_.workspace);
          }
        }
        return;
      }
      default: return set_fault_chances(random_.one_in(2) ? 0 : 300'000);
    }
  }

  uint64_t random_offset() {
    // Often at an edge.
    const uint64_t page = random_.below(world_.parameters.range_pages);
    const uint64_t offset =
        random_.one_in(3) ? page_bytes_ - 1 - random_.below(16) : random_.below(page_bytes_);
    return page * page_bytes_ + offset;
  }
  uint64_t length() {
    return random_.one_in(4) ? 1 + random_.below(3 * page_bytes_) : 1 + random_.below(100);
  }

  // Retries after injected faults, which must lose nothing.
  char* translate(TestThread& thread, uint64_t offset) {
    for (int tries = 0; tries < 200; ++tries) {
      char* at = thread.translate(kRangeBegin + offset);
      if (at != nullptr) return at;
      if (!faults_ || tries == 100) ADD_FAILURE() << thread.error.message;
    }
    CHECK(false);
  }

  template <class Use>
  void for_pieces(TestThread& thread, uint64_t offset, uint64_t n, Use use) {
    const uint64_t end = std::min<uint64_t>(offset + n, bytes_.size());
    while (offset < end) {
      const uint64_t piece = std::min(end - offset, base::kOsPageBytes - offset % base::kOsPageBytes);
      use(translate(thread, offset), offset, piece);
      offset += piece;
    }
  }
  void check(TestThread& thread, uint64_t first, uint64_t n) {
    for_pieces(thread, first, n,
               [&](const char* at, uint64_t offset, uint64_t piece) { expect_same(at, offset, piece); });
  }
  void expect_same(const char* at, uint64_t offset, uint64_t piece) {
    if (memcmp(at, &bytes_[offset], piece) == 0) return;
    uint64_t i = 0;
    while (at[i] == bytes_[offset + i]) ++i;
    ADD_FAILURE() << "page " << (offset + i) / page_bytes_ << " byte " << (offset + i) % page_bytes_ << " is "
                  << int{static_cast<unsigned char>(at[i])} << ", not "
                  << int{static_cast<unsigned char>(bytes_[offset + i])};
  }
  void write(TestThread& thread, uint64_t first, uint64_t n) {
    for_pieces(thread, first, n, [&](char* at, uint64_t offset, uint64_t piece) {
      const auto value = static_cast<char>(random_.one_in(4) ? 0 : random_.next());
      memset(at, value, piece);
      memset(&bytes_[offset], value, piece);
    });
  }
  // Writes other content, and then again that which is on storage.
  void write_back_and_forth() {
    const uint64_t offset = random_offset();
    char* at = translate(a_, offset);
    const char before = *at;
    *at = bytes_[offset] = static_cast<char>(before + 1);
    for (uint64_t n = random_.below(12); n > 0; --n) world_.cache->evict(*a_.workspace);
    at = translate(a_, offset);
    *at = bytes_[offset] = before;
  }
  void discard() {
    discard_first_ = random_.below(world_.parameters.range_pages);
    discard_end_ = std::min(discard_first_ + (random_.one_in(8) ? random_.below(40) : random_.below(4)),
                            world_.parameters.range_pages);
    world_.cache->discard(PageId{discard_first_}, discard_end_ - discard_first_, *a_.workspace);
    memset(bytes_.data() + discard_first_ * page_bytes_, 0, (discard_end_ - discard_first_) * page_bytes_);
    discard_first_ = discard_end_ = 0;
  }
  void pin() {
    const PageId page{random_.below(world_.parameters.range_pages)};
    auto pinned = world_.cache->pin(page, *a_.workspace);
    if (pinned) pins_.push_back({page, *pinned});
    if (!faults_) EXPECT_TRUE(pinned);
  }
  void unpin() {
    world_.cache->unpin(pins_.back().first);
    pins_.pop_back();
  }
  void use_pin() {
    if (pins_.empty()) return;
    auto [page, at] = pins_[random_.below(pins_.size())];
    use(at, index(page) * page_bytes_, page_bytes_);
  }
  // Gives the second thread a translation that it holds over many steps.
  void hold() {
    held_ = nullptr;
    b_.release(1);
    held_offset_ = random_offset();
    held_ = b_.translate(kRangeBegin + held_offset_, 1);
  }
  void use_hold() {
    if (held_ != nullptr) use(held_, held_offset_, base::kOsPageBytes - held_offset_ % base::kOsPageBytes);
  }
  void use(char* at, uint64_t offset, uint64_t n) {
    expect_same(at, offset, n);
    const uint64_t i = random_.below(n);
    at[i] = bytes_[offset + i] = static_cast<char>(random_.next());
  }

  // A third thread does something in the middle of an operation of the first one.
  void interfere(bool may_discard) {
    if (in_hook_ || !random_.one_in(3)) return;
    in_hook_ = true;
    const uint64_t offset = random_offset();
    const bool being_discarded =
        offset / page_bytes_ >= discard_first_ && offset / page_bytes_ < discard_end_;
    const uint64_t n =
        std::min<uint64_t>(1 + random_.below(64), base::kOsPageBytes - offset % base::kOsPageBytes);
    switch (random_.below(6)) {
      case 0:
        if (!being_discarded) check(c_, offset, n);
        break;
      case 1:
        if (!being_discarded) write(c_, offset, n);
        break;
      case 2: translate(c_, offset); break;
      case 3: world_.cache->evict(*c_.workspace); break;
      case 4:
        if (held_ != nullptr &&
            !(held_offset_ / page_bytes_ >= discard_first_ && held_offset_ / page_bytes_ < discard_end_))
          use_hold();
        break;
      default:
        // A discard waits for the end of a cleaning, which here is this thread's own.
        if (!may_discard || being_discarded || cleaning_) break;
        world_.cache->discard(PageId{offset / page_bytes_}, 1, *c_.workspace);
        memset(&bytes_[offset / page_bytes_ * page_bytes_], 0, page_bytes_);
    }
    c_.release(0);
    in_hook_ = false;
  }
  // Not while a page is being read: touching it would wait for this thread itself.
  void interfere_with(const Io& io) {
    if (io.operation == Operation::kWrite) interfere(false);
  }

  void set_fault_chances(uint32_t per_million) {
    world_.device->read_errors_per_million = per_million;
    world_.device->write_errors_per_million = per_million;
    world_.device->short_reads_per_million = per_million;
    world_.device->short_writes_per_million = per_million;
  }

  TestWorld world_;
  TestThread a_;
  TestThread b_;
  TestThread c_;
  Random random_;
  std::vector<char> bytes_;
  size_t page_bytes_;
  bool faults_;
  bool in_hook_ = false;
  bool cleaning_ = false;
  uint64_t discard_first_ = 0;
  uint64_t discard_end_ = 0;
  std::vector<std::pair<PageId, char*>> pins_;
  char* held_ = nullptr;
  uint64_t held_offset_ = 0;
};

struct Case {
  const char* name;
  size_t page_bytes;
  uint32_t frame_count;
  uint32_t read_ahead_pages;
  bool chaos;
  bool faults;
  base::PolicyKind policy = base::PolicyKind::kClock;
};

class ModelTest : public testing::TestWithParam<Case> {};

TEST_P(ModelTest, EveryByteIsWhatWasWrittenLast) {
  const Case& c = GetParam();
  const uint64_t first = environment("SPILLWAY_TEST_SEED", 1);
  const uint64_t seeds = environment("SPILLWAY_TEST_SEEDS", 20);
  for (uint64_t seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "replay: SPILLWAY_TEST_SEED=" << seed
                                    << " SPILLWAY_TEST_SEEDS=1 cache_test --gtest_filter=*EveryByte*/"
                                    << c.name);
    Model model({.page_bytes = c.page_bytes,
                 .frame_count = c.frame_count,
                 .range_pages = c.frame_count < 64 ? 64u : 160u,
                 .read_ahead_pages = c.read_ahead_pages,
                 .chaos_seed = c.chaos ? seed : 0,
                 .policy = c.policy,
                 .seed = seed},
                seed, c.faults);
    model.run(static_cast<int>(c.page_bytes > 16 << 10 ? 600 : 1500));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cache, ModelTest,
    testing::Values(
        Case{"4K", 4 << 10, 8, 0, false, false}, Case{"16K", 16 << 10, 8, 0, false, false},
        Case{"64K", 64 << 10, 8, 0, false, false}, Case{"4K_chaos", 4 << 10, 8, 0, true, false},
        Case{"64K_chaos", 64 << 10, 8, 0, true, false}, Case{"4K_faults", 4 << 10, 8, 0, false, true},
        Case{"16K_faults", 16 << 10, 9, 0, true, true}, Case{"4K_read_ahead", 4 << 10, 40, 6, false, true},
        Case{"4K_moves", 4 << 10, 64, 4, false, true}, Case{"8K_moves_chaos", 8 << 10, 64, 0, true, true},
        Case{"4K_lru", 4 << 10, 40, 6, false, true, base::PolicyKind::kLru},
        Case{"4K_2q", 4 << 10, 40, 6, false, true, base::PolicyKind::kTwoQueues},
        Case{"4K_random", 4 << 10, 8, 0, false, true, base::PolicyKind::kRandom},
        Case{"8K_s3fifo", 8 << 10, 8, 0, false, true, base::PolicyKind::kS3fifo},
        Case{"4K_nrlfu_chaos", 4 << 10, 40, 6, true, true, base::PolicyKind::kNrlfu}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cache
