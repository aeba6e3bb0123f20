// A store on persistent memory that loses power at any line that it flushes: what was acknowledged is there, whatever else is. On such a device a
// write is durable when it ends, so that holds at every durability.
#include <gtest/gtest.h>

#include <random>

#include "kv/testing/crash_model.h"
#include "kv/testing/test_effort.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_pmem_cut.h"

namespace kv {
namespace {

constexpr size_t kDeviceBytes = 17 << 20;
constexpr int kKeys = 40;

class PmemCrashTest : public testing::TestWithParam<Durability> {
 protected:
  // Makes `count` changes, unless power fails before.
  void live(storage::PmemCut& memory, uint64_t seed, int count) {
    auto opened = Store::open(
        memory.device(),
        {.durability = GetParam(), .batch_ns = 100'000, .stream_count = 1, .checkpoint_records = 25});
    ASSERT_TRUE(opened) << opened.error().message;
    Session session;
    ASSERT_TRUE(session.open(**opened));
    std::mt19937_64 random(seed);
    for (int i = 0; i < count && !memory.is_off(); ++i) {
      const std::string key = "key" + std::to_string(random() % kKeys);
      const bool is_remove = random() % 5 == 0;
      std::string value = is_remove ? "" : key + "#" + std::to_string(seed) + "." + std::to_string(i) + "#";
      if (!is_remove)
        value.resize(20 + random() % (random() % 16 == 0 ? 300'000 : 3000), static_cast<char>('a' + i % 26));
      model_.begin(key, value, false);
      const auto done = is_remove ? session.remove(key) : session.put(key, bytes_of(value));
      ASSERT_TRUE(done) << done.error().message;
      // After the power cut nothing was acknowledged to anybody.
      if (!memory.is_off()) model_.acknowledge(key);
      if (i % 40 == 39) (*opened)->compact();
    }
    session.close();
    ASSERT_TRUE((*opened)->close());
  }

  void check(Store& store) {
    Session session;
    ASSERT_TRUE(session.open(store));
    for (const std::string& key : model_.keys()) {
      auto found = session.get(key);
      ASSERT_TRUE(found) << key << ": " << found.error().message;
      const std::string value = found->found() ? whole_value(session, *found) : "";
      const std::string text = model_.text(key);
      ASSERT_TRUE(model_.found(key, value, Durability::kSync))
          << key << " is \"" << value.substr(0, 30) << "\" of " << value.size() << " bytes, and was" << text;
    }
    session.close();
    store.verify();
  }

  CrashModel model_;
};
INSTANTIATE_TEST_SUITE_P(Durabilities, PmemCrashTest,
                         testing::Values(Durability::kNone, Durability::kBatch, Durability::kSync),
                         durability_name);

TEST_P(PmemCrashTest, LosesNothingThatWasAcknowledged) {
  std::vector<std::byte> medium(kDeviceBytes);
  {
    storage::PmemCut memory(medium, 0);
    ASSERT_TRUE(Store::make(memory.device(), {.segment_bytes = 1 << 20}));
    medium = memory.medium(1, 0);
    memory.device().close();
  }
  std::mt19937_64 random(9);
  uint64_t cuts = 0;
  const uint64_t lives = setting("SPILLWAY_TEST_CUTS", 60 / kEffortParts);
  for (uint64_t life = 1; life <= lives; ++life) {
    SCOPED_TRACE("life " + std::to_string(life));
    storage::PmemCut memory(std::move(medium), 1 + random() % (random() % 2 == 0 ? 300 : 60'000));
    live(memory, life, 150);
    if (HasFatalFailure()) return;
    cuts += memory.is_off();
    medium = memory.medium(life, static_cast<unsigned>(random() % 3 * 50));
    memory.device().close();

    storage::PmemCut again(medium, 0);
    auto opened = Store::open(again.device(), {.durability = Durability::kNone, .stream_count = 1});
    ASSERT_TRUE(opened) << opened.error().message;
    check(**opened);
    if (HasFatalFailure()) return;
    model_.start_again();
    ASSERT_TRUE((*opened)->close());
    medium = again.medium(life, 0);
    again.device().close();
  }
  EXPECT_GT(cuts, lives / 2);
}

}  // namespace
}  // namespace kv
