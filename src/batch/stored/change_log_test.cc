// Change logs without a table: which records are found.
#include "batch/stored/change_log.h"

#include <gtest/gtest.h>

#include <vector>

#include "storage/backends/memory.h"

namespace batch {
namespace {

constexpr Shape kShape = {.key_bytes = 8, .value_bytes = 8};
constexpr uint64_t kBufferBytes = 8 << 10;

class ChangeLogTest : public testing::Test {
 protected:
  ~ChangeLogTest() override { device->close(); }

  std::unique_ptr<ChangeLog> open() { return *ChangeLog::open(*device, kShape, kBufferBytes); }
  // Appends changes of `count` keys from `first` on.
  static void append(ChangeLog& log, uint64_t first, uint32_t count) {
    log.append(count, [&](uint32_t i, std::byte* to) {
      const uint64_t words[2] = {first + i, 0};
      const auto* const bytes = reinterpret_cast<const std::byte*>(words);
      ChangeLog::fill_entry(kShape, {.action = Action::kUpsert}, bytes, bytes + 8, to);
    });
  }
  static void write(ChangeLog& log) {
    ASSERT_TRUE(log.begin_write());
    ASSERT_TRUE(log.write(true));
    log.end_write(true, true);
  }
  // The first key of each record that is found.
  static std::vector<uint64_t> found(ChangeLog& log, uint64_t tail, uint32_t incarnation) {
    std::vector<uint64_t> firsts;
    const auto visit = [&](uint64_t, const std::byte* entries, uint32_t) -> base::Expected<void> {
      uint64_t key = 0;
      memcpy(&key, entries + 1, sizeof key);
      firsts.push_back(key);
      return {};
    };
    EXPECT_TRUE(log.replay(tail, incarnation, false, visit));
    return firsts;
  }

  storage::Device* const device = *storage::make_memory_device(128 << 10);
};

TEST_F(ChangeLogTest, RecordsAreFoundOverTheEndOfTheRing) {
  const auto log = open();
  ASSERT_TRUE(log->begin({}, 1));
  log->go_on(0, 1);
  std::vector<uint64_t> last;
  uint64_t tail = 0;
  for (uint64_t first = 0; first < 100'000; first += 100) {
    if (log->room() < 100) write(*log);
    // Half of the ring is still needed.
    if (first % 2000 == 0) {
      tail = log->end();
      log->set_tail(tail);
      last.clear();
    }
    append(*log, first, 100);
    last.push_back(first);
  }
  write(*log);
  const auto again = open();
  EXPECT_EQ(found(*again, tail, 1), last);
}

// Records from an earlier opening may lie exactly where the next one would; they are not later changes.
TEST_F(ChangeLogTest, RecordsOfTheTimeBeforeACrashAreNotFound) {
  {
    const auto log = open();
    ASSERT_TRUE(log->begin({}, 1));
    log->go_on(0, 1);
    append(*log, 0, 10);
    write(*log);
    append(*log, 10, 10);
    write(*log);
    EXPECT_EQ(found(*open(), 0, 1), (std::vector<uint64_t>{0, 10}));
  }
  const auto log = open();
  log->go_on(0, 2);
  append(*log, 20, 10);
  write(*log);
  EXPECT_EQ(found(*open(), 0, 2), (std::vector<uint64_t>{20}));
}

}  // namespace
}  // namespace batch
