// A store on an encrypted device: under its key it is a store like any other, even after a power cut; without the key there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kv/store.h"
#include "kv/testing/test_effort.h"
#include "storage/decorators/encrypt.h"
#include "storage/testing/test_cut_device.h"
#include "storage/testing/test_fail_device.h"

namespace kv {
namespace {

constexpr uint64_t kDeviceBytes = 9 << 20;

// The cut device's content, decrypted with the key. That device outlives this one.
storage::Device* under_key(storage::CutDevice& cut, unsigned char key_byte = 1) {
  storage::XtsKey key;
  key.bytes[0] = key_byte;
  return storage::make_encrypt_device(storage::FailDevice(&cut).lend(), key).value();
}

// Makes a store on a medium of zeros.
std::vector<std::byte> made_medium() {
  auto* const cut = new storage::CutDevice(std::vector<std::byte>(kDeviceBytes), 0);
  storage::Device* const device = under_key(*cut);
  EXPECT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  device->close();
  std::vector<std::byte> medium = cut->medium(0, 100);
  cut->close();
  return medium;
}

std::string key_of(int number) { return "a planted key, number " + std::to_string(number); }
std::string value_of(int number) {
  std::string value;
  while (value.size() < 2000) value += "planted value " + std::to_string(number) + " ";
  return value;
}

// Puts keys until one is refused. Returns how many were acknowledged.
int put_all(Store& store, int count) {
  Session session;
  EXPECT_TRUE(session.open(store));
  int done = 0;
  for (; done < count; ++done) {
    const std::string value = value_of(done);
    if (!session.put(key_of(done), bytes_of(value))) break;
  }
  session.close();
  return done;
}

// The first `promised` keys are there; others may be.
void expect_whole(Store& store, int count, int promised) {
  Session session;
  ASSERT_TRUE(session.open(store));
  for (int i = 0; i < count; ++i) {
    const auto found = session.get(key_of(i));
    ASSERT_TRUE(found) << found.error().message;
    if (i < promised) EXPECT_TRUE(found->found()) << i;
    if (found->found()) EXPECT_EQ(text_of(found->value()), value_of(i));
  }
  session.close();
}

TEST(Encrypted, CutsAllOverAShortLife) {
  constexpr int kKeys = 8;
  const std::vector<std::byte> empty = made_medium();
  bool ended_well = false;
  for (uint64_t ends_at = 1; !ended_well; ends_at += 3) {
    ASSERT_LT(ends_at, 100u);
    auto* const cut = new storage::CutDevice(empty, ends_at);
    storage::Device* const device = under_key(*cut);
    int acknowledged = 0;
    if (auto opened = Store::open(*device, {.durability = Durability::kSync, .stream_count = 1})) {
      acknowledged = put_all(**opened, kKeys);
      ended_well = (*opened)->close().has_value();
    }
    device->close();
    for (uint64_t seed = 0; seed < 8 / kEffortParts; ++seed) {
      SCOPED_TRACE("cut at " + std::to_string(ends_at) + ", seed " + std::to_string(seed));
      const std::vector<std::byte> left = cut->medium(seed, 50);
      EXPECT_EQ(text_of(left).find("planted"), std::string_view::npos);
      auto* const again = new storage::CutDevice(left, 0);
      storage::Device* const later = under_key(*again);
      auto opened = Store::open(*later, {});
      ASSERT_TRUE(opened) << opened.error().message;
      expect_whole(**opened, kKeys, acknowledged);
      EXPECT_TRUE((*opened)->close());
      later->close();
      again->close();
    }
    cut->close();
  }
}

TEST(Encrypted, WithoutTheKeyThereIsNoStoreAndNothingIsChanged) {
  auto* const cut = new storage::CutDevice(made_medium(), 0);
  storage::Device* const device = under_key(*cut);
  Store* const store = *Store::open(*device, {});
  EXPECT_EQ(put_all(*store, 4), 4);
  EXPECT_TRUE(store->close());
  device->close();
  const std::vector<std::byte> before = cut->medium(0, 100);
  storage::Device* const others[] = {under_key(*cut, 2), storage::FailDevice(cut).lend()};
  for (storage::Device* const other : others) {
    const auto opened = Store::open(*other, {});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().number, EINVAL);
    EXPECT_NE(std::string(opened.error().message).find("holds no store, or one under another key"),
              std::string::npos)
        << opened.error().message;
    other->close();
  }
  EXPECT_TRUE(std::ranges::equal(cut->medium(0, 100), before));
  storage::Device* const again = under_key(*cut);
  Store* const opened = *Store::open(*again, {});
  expect_whole(*opened, 4, 4);
  EXPECT_TRUE(opened->close());
  again->close();
  cut->close();
}

}  // namespace
}  // namespace kv
