// Small full stores, on a medium with places that now and then accept no writes or cannot be read, and that loses power: in whatever combination,
// what was acknowledged is there, and once the medium works again there is room for as much as there should be.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "kv/recovery/check.h"
#include "kv/testing/test_effort.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

constexpr uint64_t kSegmentBytes = 1 << 20;
constexpr uint64_t kNever = ~uint64_t{0};

class FaultSoakTest : public testing::Test, protected StoreInUse {
 protected:
  ~FaultSoakTest() override {
    if (store != nullptr) static_cast<void>(end());
    if (device != nullptr) device->close();
  }
  uint64_t pick(uint64_t below) { return random() % below; }

  void make() {
    grain_bytes = std::array{512u, 512u, 1024u, 4096u}[pick(4)];
    capacity = (11 + pick(pick(4) == 0 ? 40 : 8)) << 20;  // two streams from 33 on
    keys = 20 + pick(1500);
    value_bytes = 1 + pick(pick(4) == 0 ? 60'000 : 6000);
    options = {.durability = Durability::kSync,
               .stream_count = static_cast<uint32_t>(1 + pick(3)),
               .checkpoint_records = pick(3) == 0 ? 300 + pick(3000) : 0};
    device = new storage::CutDevice(std::vector<std::byte>(capacity), kNever);
    ASSERT_TRUE(Store::make(*device, {.grain_bytes = grain_bytes, .segment_bytes = kSegmentBytes}));
    open();
  }
  void open() {
    StoreInUse::open(*device, options);
    if (store != nullptr) ASSERT_TRUE(idle_session.open(*store));
  }
  base::Expected<void> end() {
    idle_session.close();
    session.close();
    auto closed = store->close();
    store = nullptr;
    return closed;
  }
  // If a change fails, it is not known whether it was made.
  void change() {
    if (pick(100) < queue_percent) return come_and_go();
    const std::string key = "key" + std::to_string(pick(keys));
    auto& values = possible.try_emplace(key, std::set<std::string>{""}).first->second;
    const bool removes = pick(3) == 0;
    if (removes && values.contains("")) return;  // nothing might be written
    const std::string value = removes ? "" : std::to_string(++count) + std::string(pick(value_bytes), 'v');
    if (make_change(key, value) == 0) values.clear();
    values.insert(value);
  }
  // Long enough for the collector to try everything three times or more.
  void change_for(std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) change();
  }
  // Puts a key, and removes it at once.
  void come_and_go() {
    const std::string key = "queue" + std::to_string(++count);
    const int put = make_change(key, "here");
    const int removed = put == 0 ? make_change(key, "") : 0;
    if (put != 0 || removed != 0)
      possible[key] = {"", "here"};
    else if (pick(20) == 0)
      possible[key] = {""};
  }
  int make_change(const std::string& key, const std::string& value) {
    Session& by = pick(1000) == 0 ? idle_session : session;
    auto done = value.empty() ? by.remove(key) : by.put(key, bytes_of(value));
    return done ? 0 : done.error().number;
  }
  void fault() {
    const uint64_t segment = kSegmentsOffset + pick(capacity / kSegmentBytes - 1) * kSegmentBytes;
    const uint64_t places[] = {segment, segment + kSegmentBytes - 512, segment + pick(2048) * 512, 0};
    const uint64_t place = places[pick(4)], bytes = place == 0 ? capacity : 512 << pick(8);
    if (pick(2) == 0) device->fail_writes(place, bytes);
    if (pick(3) == 0) device->fail_reads(place, bytes, pick(2) == 0 ? 1 + pick(20) : kNever);
  }
  void end_faults() {
    device->fail_writes(0, 0);
    device->fail_reads(0, 0);
  }
  void expect_all() {
    for (const auto& [key, values] : possible) {
      auto found = session.get(key);
      ASSERT_TRUE(found) << key << ": " << found.error().message;
      ASSERT_TRUE(values.contains(found->found() ? whole_value(session, *found) : "")) << key;
    }
  }
  void start_again() {
    if (pick(2) == 0) {
      ASSERT_TRUE(end());
    } else {
      std::vector<std::byte> medium = device->medium(pick(1000), static_cast<unsigned>(pick(101)));
      static_cast<void>(end());
      device->close();
      device = new storage::CutDevice(std::move(medium), kNever);
    }
    open();
    ASSERT_NE(store, nullptr);
    expect_all();
  }
  // The collector and the keeper try again in a moment.
  template <class Done>
  bool comes(const Done& done) {
    for (int i = 0; i < 3000; ++i) {
      if (done()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  void expect_room() {
    for (auto& [key, values] : possible) {
      if (pick(10) == 0) continue;
      ASSERT_TRUE(comes([&, &of = key] { return make_change(of, "") == 0; })) << key;
      values = {""};
    }
    for (int i = 0; i < 300; ++i) {
      const std::string value(1 + pick(6000), 'r');
      ASSERT_TRUE(comes([&] { return make_change("room", value) == 0; })) << i;
      possible["room"] = {value};
    }
    // If tombstones stayed, they would fill the store.
    const uint64_t passing = pick(4) == 0 ? 4 * capacity / grain_bytes : 0;
    for (uint64_t i = 0; i < passing; ++i)
      ASSERT_TRUE(comes([&] { return make_change("passing", i % 2 == 0 ? "here" : "") == 0; })) << i;
    EXPECT_TRUE(comes([&] { return store->counts().log.put_off_segments == 0; }));
    EXPECT_TRUE(comes([&] { return store->compact().has_value(); }));
    expect_all();
    store->verify();
    ASSERT_TRUE(end());
    const auto report = check(
        *device, [](void*, const char* line) { ADD_FAILURE() << line; }, [](void*, uint64_t, uint64_t) {},
        nullptr);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->is_clean());
  }

  std::mt19937_64 random;
  storage::CutDevice* device = nullptr;
  Session idle_session;  // its segment stays open for long
  StoreOptions options;
  uint32_t grain_bytes = 0;
  uint64_t capacity = 0, keys = 0, value_bytes = 0, count = 0, queue_percent = 0;
  std::map<std::string, std::set<std::string>> possible;
};

TEST_F(FaultSoakTest, NothingIsLostAndThereIsRoomAgain) {
  const uint64_t seed = setting("SPILLWAY_TEST_SEED", 1);
  for (uint64_t soak = 0; soak < setting("SPILLWAY_TEST_SOAKS", 12 / kEffortParts); ++soak) {
    SCOPED_TRACE("SPILLWAY_TEST_SOAKS=1 SPILLWAY_TEST_SEED=" + std::to_string(seed + soak));
    random.seed(seed + soak);
    possible.clear();
    ASSERT_NO_FATAL_FAILURE(make());
    for (uint64_t life = 0; life < 1 + pick(3); ++life) {
      queue_percent = std::array{0u, 30u, 95u}[pick(3)];
      for (uint64_t phase = 0; phase < 4; ++phase) {
        const bool fails = pick(2) == 0;
        if (fails) fault();
        const uint64_t changes = fails ? 20 + pick(400) : pick(queue_percent > 90 ? 15'000 : 3000);
        for (uint64_t i = 0; i < changes; ++i) change();
        if (fails && pick(8) == 0) change_for(std::chrono::milliseconds(400 + pick(400)));
        end_faults();
      }
      ASSERT_NO_FATAL_FAILURE(expect_all());
      ASSERT_NO_FATAL_FAILURE(start_again());
    }
    ASSERT_NO_FATAL_FAILURE(expect_room());
    device->close();
    device = nullptr;
  }
}

}  // namespace
}  // namespace kv
