// A checkpoint that is taken while the index's only table is split and keys are changed: its images show different moments.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "kv/testing/medium_device.h"
#include "kv/testing/test_store.h"

namespace kv {
namespace {

// A device in memory at which the first write of a checkpoint's piece waits until it is let through.
class PieceGateDevice final : public MediumDevice {
 public:
  using MediumDevice::MediumDevice;

  bool is_held() {
    std::lock_guard scope(lock_);
    return state_ == State::kHeld;
  }
  void let_through() {
    std::lock_guard scope(lock_);
    state_ = State::kOpen;
    changed_.notify_all();
  }

 private:
  enum class State { kClosed, kHeld, kOpen };

  int before(const storage::Io& io) override {
    if (io.operation != storage::Operation::kWrite) return 0;
    const auto* const bytes = static_cast<const std::byte*>(io.segments[0].iov_base);
    if (!is_piece({bytes, io.segments[0].iov_len})) return 0;
    std::unique_lock scope(lock_);
    if (state_ == State::kClosed) state_ = State::kHeld;
    changed_.wait(scope, [&] { return state_ == State::kOpen; });
    return 0;
  }
  static bool is_piece(Bytes bytes) {
    constexpr std::string_view kMagic = "spkv ckp";
    return bytes.size() > kMagic.size() && memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
  }

  std::mutex lock_;
  std::condition_variable changed_;
  State state_ = State::kClosed;
};

constexpr uint64_t kRecords = 25'200;  // fit in the first table; a checkpoint is due a little earlier

class CheckpointSplitTest : public testing::Test {
 protected:
  void open(uint64_t checkpoint_records) {
    auto opened = Store::open(
        *device,
        {.durability = Durability::kNone, .stream_count = 1, .checkpoint_records = checkpoint_records});
    ASSERT_TRUE(opened) << opened.error().message;
    store = *opened;
    ASSERT_TRUE(session.open(*store));
  }
  void close() {
    session.close();
    ASSERT_TRUE(store->close());
    device->close();
  }
  void put(uint64_t number, const std::string& value) {
    ASSERT_TRUE(session.put("key" + std::to_string(number), bytes_of(value)));
  }
  template <class Condition>
  static void wait_until(const Condition& condition) {
    for (int tries = 0; !condition(); ++tries) {
      ASSERT_LT(tries, 60'000) << "a millisecond each";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  PieceGateDevice* device = new PieceGateDevice(std::vector<std::byte>(129 << 20));
  Store* store = nullptr;
  Session session;
};

TEST_F(CheckpointSplitTest, AKeyIsThereOnce) {
  constexpr uint64_t kChanged = 1500, kMore = 20'000;
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  open(kRecords - 200);
  for (uint64_t i = 0; i < kRecords; ++i) put(i, "old");
  wait_until([&] { return device->is_held(); });
  ASSERT_EQ(store->counts().index.tables, 1u);
  // The first image has the old addresses; the child's will have the new ones, in a segment that was open when the checkpoint began.
  for (uint64_t i = 0; i < kChanged; ++i) put(i, "new");
  for (uint64_t i = kRecords; i < kRecords + kMore; ++i) put(i, "more");
  ASSERT_GT(store->counts().index.tables, 1u);
  device->let_through();
  wait_until([&] { return store->counts().collected.checkpoints == 1; });
  auto* const next = new PieceGateDevice(device->medium());
  next->let_through();
  close();

  device = next;
  open(1'000'000);
  ASSERT_NE(store->recovery().checkpoint, 0u);
  EXPECT_EQ(store->counts().index.entries, kRecords + kMore);
  for (uint64_t i = 0; i < kChanged; ++i) {
    const std::string key = "key" + std::to_string(i);
    auto found = session.get(key);
    ASSERT_TRUE(found && found->found());
    ASSERT_EQ(text_of(found->value()), "new") << key;
    *found = Found();
    ASSERT_TRUE(session.remove(key));
    found = session.get(key);
    ASSERT_TRUE(found);
    ASSERT_FALSE(found->found()) << key;
  }
  EXPECT_EQ(store->counts().index.entries, kRecords + kMore - kChanged);
  store->verify();
  close();
}

}  // namespace
}  // namespace kv
