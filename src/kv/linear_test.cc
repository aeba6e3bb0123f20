// The store is linearizable, while its index grows and shrinks, and across crashes. What clients are told is recorded, and checked
// by history.h.
//
// Longer: SPILLWAY_TEST_ROUNDS=1000. A seed that fails: SPILLWAY_TEST_SEED=n SPILLWAY_TEST_ROUNDS=1; threads may have to be given several chances.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "kv/testing/jitter_device.h"
#include "kv/testing/linear_load.h"
#include "kv/testing/test_effort.h"
#include "storage/backends/memory.h"
#include "storage/testing/test_cut_device.h"
#include "task/test_tasks.h"

namespace kv {
namespace {

// Small enough for collection to go on all the time.
constexpr uint64_t kDeviceBytes = 24 << 20;
constexpr uint64_t kCutDeviceBytes = 16 << 20;
constexpr int kThreads = 4;

// What the seed has chosen for a round.
struct Choices {
  explicit Choices(uint64_t seed) : random(seed) {
    const uint32_t slow[] = {0, 8, 64};
    slow_of_256 = slow[random() % 3];
    keeper_is_slow = random() % 2 == 0;
    durability = static_cast<Durability>(random() % 3);
    key_count = 3 + random() % 6;
    region = random() % kRegions;
    memory_bytes = random() % 2 == 0 ? 0 : uint64_t{4} << 20;
  }
  std::mt19937_64 random;
  uint32_t slow_of_256;
  bool keeper_is_slow;
  Durability durability;
  size_t key_count;
  uint32_t region;
  uint64_t memory_bytes;
};

// A store, its users, and what they were told.
class Stage {
 public:
  explicit Stage(uint64_t seed) : choices(seed), seed_(seed) {}

  // `churn_is_slow`: as slow as the clients. Errors: those of Store::open. REQUIRES: it is not open.
  base::Expected<void> open(JitterDevice& device, bool churn_is_slow) {
    device.set_slow_of_256(choices.keeper_is_slow ? choices.slow_of_256 : 0);
    auto opened = Store::open(device, {.durability = choices.durability,
                                       .batch_ns = 1'000'000,
                                       .stream_count = 2,
                                       .memory_bytes = choices.memory_bytes});
    if (!opened) return std::unexpected(opened.error());
    store = *opened;
    device.set_slow_of_256(churn_is_slow ? choices.slow_of_256 : 0);
    EXPECT_TRUE(churn_session_.open(*store));
    device.set_slow_of_256(choices.slow_of_256);
    if (keys.empty()) keys = keys_of_region(*store, "key", choices.region, choices.key_count);
    return {};
  }
  base::Expected<void> close() {
    regions_moved += store->counts().index.regions_moved;
    churn_session_.close();
    auto closed = store->close();
    store = nullptr;
    return closed;
  }

  std::unique_ptr<Client> new_client() {
    return std::make_unique<Client>(clock, keys, ++client_count_, seed_);
  }
  // `use` calls clients' work(), in whatever threads; meanwhile other keys are changed.
  template <class F>
  void beside_churn(bool is_lasting, const F& use) {
    Churn churn(*store, choices.region, seed_, is_lasting);
    std::atomic<bool> stop{false}, cycled{false};
    std::thread thread([&] { churn.work(churn_session_, stop, cycled); });
    use(cycled);
    stop = true;
    thread.join();
  }
  void fill() { Churn(*store, choices.region, seed_, false).fill(churn_session_); }
  void work_of_threads(std::vector<std::unique_ptr<Client>>& clients, size_t least, size_t most,
                       const std::atomic<bool>& enough) {
    std::vector<std::thread> threads;
    for (auto& client : clients)
      threads.emplace_back([&] {
        Session session;
        ASSERT_TRUE(session.open(*store));
        client->work(session, least, most, enough);
        session.close();
      });
    for (auto& thread : threads) thread.join();
  }
  void look() {
    Session session;
    ASSERT_TRUE(session.open(*store));
    const auto client = new_client();
    client->look(session);
    add(*client);
    session.close();
  }
  void add(const Client& client) { calls.insert(calls.end(), client.calls.begin(), client.calls.end()); }
  // Changes that ended with an error have been made by now, or never will be.
  void crash() {
    const uint64_t now = clock.stamp();
    for (Call& call : calls)
      if (!call.is_known && call.ended == Call::kNever) call.ended = now;
  }

  Choices choices;
  StampClock clock;
  Store* store = nullptr;
  std::vector<std::string> keys;
  std::vector<Call> calls;
  uint64_t regions_moved = 0;

 private:
  const uint64_t seed_;
  Session churn_session_;  // of threads, one at a time
  uint32_t client_count_ = 0;
};

class LinearTest : public testing::Test {
 protected:
  // Calls round(seed) for this many seeds, unless the environment says otherwise, until one fails.
  template <class F>
  void rounds(uint64_t count, const F& round) {
    const uint64_t first = setting("SPILLWAY_TEST_SEED", 1),
                   end = first + setting("SPILLWAY_TEST_ROUNDS", count);
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
      SCOPED_TRACE("SPILLWAY_TEST_SEED=" + std::to_string(seed) +
                   " SPILLWAY_TEST_ROUNDS=1 build/tests/kv_linear_test --gtest_filter=" +
                   test.test_suite_name() + "." + test.name());
      round(seed);
    }
    if (end - first >= count && !HasFailure()) {
      EXPECT_GT(regions_moved, 2 * count) << "the index neither grew nor shrank";
      EXPECT_GT(call_count, 200 * count);
    }
  }
  void check(Stage& stage) {
    EXPECT_EQ(violation_of(stage.calls), "");
    regions_moved += stage.regions_moved;
    call_count += stage.calls.size();
  }

  // On a device that stays; `use(stage, cycled)` makes the clients' calls, and gives them to the stage.
  template <class F>
  void round_on_memory(uint64_t seed, const F& use) {
    auto* const device = new JitterDevice(*storage::make_memory_device(kDeviceBytes), seed);
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    Stage stage(seed);
    const auto opened = stage.open(*device, false);
    ASSERT_TRUE(opened) << opened.error().message;
    stage.beside_churn(true, [&](std::atomic<bool>& cycled) { use(stage, cycled); });
    stage.look();
    stage.store->verify();
    const auto closed = stage.close();
    ASSERT_TRUE(closed) << closed.error().message;
    device->close();
    check(stage);
  }

  void round_of_tasks(uint64_t seed, uint32_t tasks_of_session);

  uint64_t regions_moved = 0, call_count = 0;
};

TEST_F(LinearTest, Threads) {
  rounds(30, [&](uint64_t seed) {
    round_on_memory(seed, [&](Stage& stage, const std::atomic<bool>& cycled) {
      std::vector<std::unique_ptr<Client>> clients(kThreads);
      for (auto& client : clients) client = stage.new_client();
      stage.work_of_threads(clients, 400, 4000, cycled);
      for (const auto& client : clients) {
        EXPECT_FALSE(client->has_failed()) << client->error().message;
        stage.add(*client);
      }
    });
  });
}

// Two workers with eight tasks each; `tasks_of_session` of them share a session.
void LinearTest::round_of_tasks(uint64_t seed, uint32_t tasks_of_session) {
  constexpr uint32_t kWorkers = 2, kTasks = 8;
  // It outlives all threads that may wake its tasks.
  task::Scheduler scheduler;
  ASSERT_TRUE(scheduler.open({.worker_count = kWorkers, .stack_bytes = task::kTestStackBytes}));
  round_on_memory(seed, [&](Stage& stage, const std::atomic<bool>& cycled) {
    std::vector<std::unique_ptr<Client>> clients(kWorkers * kTasks);
    for (auto& client : clients) client = stage.new_client();
    const auto of_worker = [&](uint32_t worker) {
      std::vector<Session> sessions(kTasks / tasks_of_session);
      for (Session& session : sessions) ASSERT_TRUE(session.open(*stage.store, 16));
      struct Use {
        Client& client;
        Session& session;
        const std::atomic<bool>& enough;
        void operator()() { client.work(session, 100, 1000, enough); }
      };
      std::vector<Use> uses;
      for (uint32_t i = 0; i < kTasks; ++i)
        uses.push_back({*clients[worker * kTasks + i], sessions[i / tasks_of_session], cycled});
      std::vector<task::Task*> tasks;
      for (Use& use : uses) tasks.push_back(&task::start("client", use));
      for (task::Task* const task : tasks) static_cast<void>(task::join(*task));
      for (Session& session : sessions) session.close();
    };
    auto first = [&] { of_worker(0); };
    auto second = [&] { of_worker(1); };
    auto main = [&] {
      task::Task& other = task::start("second", second, &scheduler.worker(1));
      first();
      static_cast<void>(task::join(other));
    };
    ASSERT_TRUE(scheduler.run(task::calls("main", main)));
    for (const auto& client : clients) {
      EXPECT_FALSE(client->has_failed()) << client->error().message;
      stage.add(*client);
    }
  });
  scheduler.close();
}

TEST_F(LinearTest, TasksOfOneSession) {
  rounds(10, [&](uint64_t seed) { round_of_tasks(seed, 8); });
}
TEST_F(LinearTest, TwoTasksOfASession) {
  rounds(10, [&](uint64_t seed) { round_of_tasks(seed, 2); });
}
TEST_F(LinearTest, TasksWithASessionEach) {
  rounds(10, [&](uint64_t seed) { round_of_tasks(seed, 1); });
}

// A store's lives, each of which ends in the middle of its work: power fails, or the process ends and the device goes on. What was seen in one
// life is there in the next, and what a crash has left undone stays undone.
class Lives {
 public:
  explicit Lives(uint64_t seed) : stage(seed), seed_(seed), random_(~seed) {
    // Mostly the durability that promises most.
    if (random_() % 2 == 0) stage.choices.durability = Durability::kSync;
    use(new storage::CutDevice(std::vector<std::byte>(kCutDeviceBytes), 0));
    EXPECT_TRUE(Store::make(*device_, {.segment_bytes = 1 << 20}));
    EXPECT_TRUE(stage.open(*device_, false));
    stage.fill();
    EXPECT_TRUE(stage.close());
  }
  ~Lives() { device_->close(); }

  // `is_last`: nothing goes wrong in it. False: the store is full.
  bool live(bool is_last) {
    cut_->start_again(is_last ? 0 : 1 + random_() % (random_() % 4 == 0 ? 8'000 : 1'200));
    bool has_room = true;
    // Otherwise its many flushes would flush what clients have written, and most cuts would hit its writes.
    if (const auto opened = stage.open(*device_, true); opened) {
      stage.look();
      if (!is_last) has_room = work();
      const auto closed = stage.close();
      if (!closed) EXPECT_TRUE(cut_->is_off()) << closed.error().message;
    } else {
      EXPECT_TRUE(cut_->is_off()) << opened.error().message;
    }
    stage.crash();
    // Without kSync only the process ends.
    if (stage.choices.durability == Durability::kSync && random_() % 4 != 0) {
      const unsigned kept[] = {0, 50, 90, 100};
      auto* const next = new storage::CutDevice(cut_->medium(random_(), kept[random_() % 4]), 0);
      device_->close();
      use(next);
    }
    return has_room;
  }

  Stage stage;

 private:
  void use(storage::CutDevice* device) {
    cut_ = device;
    device_ = new JitterDevice(device, seed_);
  }
  bool work() {
    std::vector<std::unique_ptr<Client>> clients(6);
    for (auto& client : clients) client = stage.new_client();
    const std::atomic<bool> never{false};
    stage.beside_churn(false, [&](std::atomic<bool>&) { stage.work_of_threads(clients, 300, 300, never); });
    bool has_room = true;
    for (const auto& client : clients) {
      stage.add(*client);
      if (!client->has_failed() || cut_->is_off()) continue;
      has_room = false;
      ADD_FAILURE() << client->error().message;
    }
    return has_room;
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
  storage::CutDevice* cut_ = nullptr;
  JitterDevice* device_ = nullptr;
};

TEST_F(LinearTest, Crashes) {
  rounds(32 / kEffortParts, [&](uint64_t seed) {
    constexpr int kLives = 4;
    Lives lives(seed);
    for (int i = 0; i < kLives && lives.live(false); ++i) continue;
    lives.live(true);
    check(lives.stage);
  });
}

}  // namespace
}  // namespace kv
