// Tasks that have all items to themselves, beside calls of other workers: those see all of what such a task does, or nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "kv/testing/test_effort.h"
#include "server/items/items.h"
#include "server/items/test_items.h"
#include "server/items/walk.h"
#include "task/test_tasks.h"

namespace server {
namespace {

constexpr uint32_t kWorkers = 3;
const int kTimes = static_cast<int>(1500 / kv::kEffortParts);

class ItemsAloneTest : public ItemsTest {
 protected:
  void SetUp() override {
    ItemsTest::SetUp();
    ASSERT_TRUE(scheduler.open({.worker_count = kWorkers, .stack_bytes = task::kTestStackBytes}));
  }
  void TearDown() override { scheduler.close(); }

  // Calls body(Items&, the worker's number) on each worker, with Items of its own.
  template <class Body>
  void on_all_workers(const Body& body) {
    std::atomic<uint32_t> next{0};
    auto work = [&] {
      auto own = std::make_unique<Items>();
      ASSERT_TRUE(own->open(shared));
      body(*own, next++);
      own->close();
    };
    auto main = [&] {
      std::vector<task::Task*> tasks;
      for (uint32_t i = 0; i < kWorkers; ++i)
        tasks.push_back(&task::start("works", work, &scheduler.worker(i)));
      join(tasks);
    };
    ASSERT_TRUE(scheduler.run(task::calls("main", main)));
  }
  static void join(const std::vector<task::Task*>& tasks) {
    for (task::Task* const each : tasks) static_cast<void>(task::join(*each));
  }
  static std::string value_of(Items& own, const std::string& key) {
    Item item = of(own.get(key));
    return item.found() ? whole_value(own, item) : "(none)";
  }
  static std::string some_value(int number) {
    return std::string(static_cast<size_t>(1 + number % 40), static_cast<char>('a' + number % 26));
  }

  task::Scheduler scheduler;
};

TEST_F(ItemsAloneTest, OthersSeeAllOrNothing) {
  for (const char* key : {"a", "b", "c", "d"}) set(key, some_value(0));
  std::atomic<int> number{0}, torn_before{0}, torn_gets{0}, torn_walks{0}, torn_sets{0};
  on_all_workers([&](Items& own, uint32_t worker) {
    auto is_alone = [&] {
      for (int i = 0; i < kTimes; ++i) {
        const Isolation::Alone alone(shared.isolation());
        torn_before += value_of(own, "a") != value_of(own, "b");
        torn_sets += value_of(own, "c") != value_of(own, "d");
        const std::string next = some_value(++number);
        EXPECT_EQ(of(own.set("a", bytes_of(next))).outcome, Outcome::kDone);
        EXPECT_EQ(of(own.set("b", bytes_of(next))).outcome, Outcome::kDone);
      }
    };
    auto gets = [&] {
      const std::string_view keys[] = {"a", "b"};
      for (int i = 0; i < kTimes; ++i) {
        std::vector<std::string> found;
        EXPECT_EQ(own.get_some(keys,
                               [&](base::Expected<Item>& item) {
                                 Item taken = of(std::move(item));
                                 found.push_back(whole_value(own, taken));
                               }),
                  2u);
        torn_gets += found.front() != found.back();
      }
    };
    auto walks = [&] {
      for (int i = 0; i < kTimes / 8; ++i) {
        Walk walk;
        if (!walk.open(own)) continue;
        uint64_t a_bytes = 0, b_bytes = 0;
        Walk::Entry entry;
        auto more = walk.next(entry);
        for (; more && *more; more = walk.next(entry)) {
          if (entry.key == "a") a_bytes = entry.value_bytes;
          if (entry.key == "b") b_bytes = entry.value_bytes;
        }
        walk.close();
        torn_walks += more && a_bytes != b_bytes;
      }
    };
    // Only one worker does: of two that set the same keys, each may be seen in one of them.
    auto sets = [&] {
      for (int i = 0; i < kTimes && worker == 0; ++i) {
        const std::string next = some_value(i);
        const NewItem both[] = {{.key = "c", .value = bytes_of(next)}, {.key = "d", .value = bytes_of(next)}};
        base::Expected<Done> done[2];
        own.set(both, done);
        EXPECT_TRUE(done[0] && done[1]);
      }
    };
    join({&task::start("is alone", is_alone), &task::start("gets", gets), &task::start("walks", walks),
          &task::start("sets", sets)});
  });
  EXPECT_EQ(torn_before, 0);
  EXPECT_EQ(torn_gets, 0);
  EXPECT_EQ(torn_walks, 0);
  EXPECT_EQ(torn_sets, 0);
  EXPECT_EQ(number, static_cast<int>(kWorkers) * kTimes);
  EXPECT_EQ(get("a"), get("b"));
}

TEST_F(ItemsAloneTest, TransfersLoseNothing) {
  constexpr int64_t kAll = 1000;
  set("a", "1000");
  set("b", "0");
  std::atomic<int> torn{0};
  on_all_workers([&](Items& own, uint32_t worker) {
    auto transfers = [&] {
      for (int i = 0; i < kTimes; ++i) {
        const int64_t amount = i % 7 - static_cast<int64_t>(worker);
        const Isolation::Alone alone(shared.isolation());
        of(own.add_integer("a", -amount));
        of(own.add_integer("b", amount));
      }
    };
    auto looks = [&] {
      for (int i = 0; i < kTimes / 4; ++i) {
        const Isolation::Alone alone(shared.isolation());
        torn += std::stoll(value_of(own, "a")) + std::stoll(value_of(own, "b")) != kAll;
      }
    };
    // Changes that others make do not get in their way.
    auto others = [&] {
      for (int i = 0; i < kTimes; ++i) {
        of(own.add_integer("c", 1));
        of(own.remove("none"));
      }
    };
    join(
        {&task::start("transfers", transfers), &task::start("looks", looks), &task::start("others", others)});
  });
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(std::stoll(get("a")) + std::stoll(get("b")), kAll);
  EXPECT_EQ(get("c"), std::to_string(static_cast<int>(kWorkers) * kTimes));
}

// All kinds of calls, each of which would wait for ever if it took its own task for another.
TEST_F(ItemsAloneTest, WhoIsAloneMakesAnyCall) {
  on_all_workers([&](Items& own, uint32_t worker) {
    if (worker != 0) return;
    const Isolation::Alone alone(shared.isolation());
    EXPECT_EQ(of(own.set("key", bytes_of("1"))).outcome, Outcome::kDone);
    EXPECT_EQ(of(own.set("key", bytes_of("2"), {.mode = Mode::kAppend})).outcome, Outcome::kDone);
    EXPECT_EQ(of(own.fetch("key", {.expires_ms = now_ms() + 1000})).expires_ms, now_ms() + 1000);
    EXPECT_EQ(of(own.touch("key", kNever)).outcome, Outcome::kDone);
    EXPECT_EQ(of(own.add_integer("key", 1)).number, 13);
    EXPECT_TRUE(of(own.look("key")).found());
    Walk walk;
    ASSERT_TRUE(walk.open(own));
    Walk::Entry entry;
    EXPECT_TRUE(of(walk.next(entry)));
    walk.close();
    EXPECT_EQ(of(own.remove("key")).outcome, Outcome::kDone);
    EXPECT_TRUE(own.flush_at(now_ms() + 1));
    clock.move(1);
    EXPECT_EQ(value_of(own, "key"), "(none)");
    EXPECT_TRUE(own.flush());
  });
}

}  // namespace
}  // namespace server
