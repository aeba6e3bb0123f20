// For tests: stored tables whose devices lose power. With a log, the table is found as it was at some moment since the last sync; without one, each key is
// found as it was at some moment since then, not all at the same one.
#pragma once
#include <functional>

#include "batch/stored/test_store.h"
#include "storage/testing/test_cut_device.h"

namespace batch {

inline constexpr uint64_t kCutStoreBytes = 1 << 20, kCutLogBytes = 96 << 10, kCutKeys = 1500;

inline std::string key_of(uint64_t number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }

// What was done until the power went off.
struct Life {
  std::vector<Batch> changes;  // those that were begun since the table was opened
  size_t synced = 0;           // the first `synced` ones are durable
};

// Makes the store through which a table uses its device; the store is destroyed before the device.
using OpenStore = std::function<std::unique_ptr<BucketStore>(storage::Device&)>;

class PowerCut {
 public:
  PowerCut(uint64_t seed, bool has_log, OpenStore open_store)
      : random_(seed),
        first_ends_at_(seed < 20 ? seed + 1 : 0),
        has_log_(has_log),
        open_store_(std::move(open_store)),
        store_(new storage::CutDevice(std::vector<std::byte>(kCutStoreBytes), ~uint64_t{0})),
        log_(new storage::CutDevice(std::vector<std::byte>(kCutLogBytes), ~uint64_t{0})) {}
  ~PowerCut() {
    store_->close();
    log_->close();
  }

  // Uses the table until the power goes off, after a random number of writes and flushes of one of the devices.
  void live() {
    uint64_t ends_at = 1 + random_() % 400;
    bool is_log = has_log_ && random_() % 2 == 0;
    // The power goes off while the table is being made.
    if (const uint64_t first = std::exchange(first_ends_at_, 0); first != 0) {
      ends_at = first;
      is_log = false;
    }
    (is_log ? log_ : store_)->start_again(is_log ? ends_at / 4 + 1 : ends_at);
    life_ = {};
    const std::unique_ptr<BucketStore> store = open_store_(*store_);
    StoredTable table;
    StoredOptions options = small_options();
    options.staging_bytes = (16 + random_() % 64) << 10;
    if (has_log_) options.log = log_;
    if (!table.open(*store, options)) return;
    add_test_functions(table);
    StoredSession session;
    if (!session.open(table)) {
      static_cast<void>(table.close());
      return;
    }
    const auto key = [](std::mt19937_64& from) { return key_of(from() % kCutKeys); };
    bool is_closed = false;
    for (int i = 0; i < 600 && !is_off(); ++i) {
      Batch batch = random_batch(random_, random_() % 8 == 0 ? 150 : 3, key);
      if (batch.code.action == Action::kRead) continue;
      life_.changes.push_back(batch);
      if (run(session, batch) != "") break;
      if (random_() % 25 == 0 && session.sync()) life_.synced = life_.changes.size();
      if (random_() % 60 == 0) static_cast<void>(session.flush());
    }
    if (random_() % 4 == 0) {
      is_closed = table.close().has_value();
      if (is_closed) life_.synced = life_.changes.size();
    }
    closed_ += is_closed;
    if (!is_closed) {
      // Nothing more reaches the devices, except perhaps a part of the next request.
      if (!store_->is_off()) store_->start_again(1);
      if (!log_->is_off()) log_->start_again(1);
      static_cast<void>(table.close());
    }
  }

  void lose_power() {
    constexpr unsigned kKept[] = {0, 50, 90, 100};
    const unsigned kept = kKept[random_() % 4];
    for (storage::CutDevice** device : {&store_, &log_}) {
      auto* const after = new storage::CutDevice((*device)->medium(random_(), kept), ~uint64_t{0});
      (*device)->close();
      *device = after;
    }
  }

  // `before` is the content when the life began; it is set to the content that is found now.
  void look(Model& before) {
    const std::unique_ptr<BucketStore> store = open_store_(*store_);
    StoredTable table;
    StoredOptions options = small_options();
    options.staging_bytes = (16 + random_() % 64) << 10;
    if (has_log_) options.log = log_;
    auto opened = table.open(*store, options);
    ASSERT_TRUE(opened) << opened.error().message;
    add_test_functions(table);
    StoredSession session;
    opened = session.open(table);
    ASSERT_TRUE(opened) << opened.error().message;
    const Model found = content_of(session, 8);
    has_log_ ? look_for_a_moment(before, found) : look_at_each_key(before, found);
    before = found;
    auto closed = table.close();
    ASSERT_TRUE(closed) << closed.error().message;
  }

  uint64_t closed_ = 0, later_ = 0, lost_ = 0;

 private:
  bool is_off() { return store_->is_off() || log_->is_off(); }

  static Batch one_of(const Batch& batch, size_t i) {
    return {.code = batch.code, .keys = {batch.keys[i]}, .given = {batch.given[i]}};
  }

  void look_for_a_moment(const Model& before, const Model& found) {
    Model model = before;
    bool is_found = life_.synced == 0 && model == found;
    size_t moments = 0;
    for (size_t i = 0; i < life_.changes.size() && !is_found; ++i)
      for (size_t j = 0; j < life_.changes[i].keys.size() && !is_found; ++j) {
        Batch one = one_of(life_.changes[i], j);
        make_in(model, one);
        const bool is_last = j + 1 == life_.changes[i].keys.size();
        if (i + 1 < life_.synced || (i + 1 == life_.synced && !is_last)) continue;
        ++moments;
        is_found = model == found;
      }
    EXPECT_TRUE(is_found) << "no moment since the last sync was like that";
    later_ += moments > 1;
    lost_ += !life_.changes.empty() && life_.synced < life_.changes.size();
  }

  void look_at_each_key(const Model& before, const Model& found) {
    constexpr uint64_t kNone = ~uint64_t{0};
    const auto of = [](const Model& model, const std::string& key) {
      const auto at = model.find(key);
      return at == model.end() ? kNone : at->second;
    };
    // All states of each key since then.
    std::map<std::string, std::vector<uint64_t>> states;
    Model model = before;
    for (uint64_t i = 0; i < kCutKeys; ++i) states[key_of(i)] = {of(before, key_of(i))};
    for (size_t i = 0; i < life_.changes.size(); ++i) {
      for (size_t j = 0; j < life_.changes[i].keys.size(); ++j) {
        Batch one = one_of(life_.changes[i], j);
        make_in(model, one);
        states[one.keys[0]].push_back(of(model, one.keys[0]));
      }
      if (i + 1 == life_.synced)
        for (auto& [key, all] : states) all.erase(all.begin(), all.end() - 1);
    }
    for (const auto& [key, all] : states) {
      const uint64_t now = of(found, key);
      EXPECT_NE(std::ranges::find(all, now), all.end());
      later_ += now != all.front();
      lost_ += now != all.back();
    }
  }

  std::mt19937_64 random_;
  uint64_t first_ends_at_;
  const bool has_log_;
  const OpenStore open_store_;
  storage::CutDevice* store_;
  storage::CutDevice* log_;
  Life life_;
};

inline void cut_many(bool has_log, uint64_t seeds, const OpenStore& open_store) {
  uint64_t closed = 0, later = 0, lost = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    PowerCut cut(seed, has_log, open_store);
    Model model;
    for (int life = 0; life < 4; ++life) {
      cut.live();
      cut.lose_power();
      cut.look(model);
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ", life " << life;
    }
    closed += cut.closed_;
    later += cut.later_;
    lost += cut.lost_;
  }
  // The cases that the test is about have occurred.
  EXPECT_GT(closed, seeds / 15);
  EXPECT_GT(later, seeds * 2 / 3);
  EXPECT_GT(lost, seeds * 2 / 3);
}

}  // namespace batch
