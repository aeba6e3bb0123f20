// Files with checksums whose device loses power: what was synced is there, and a partly written page is reported.
#include <random>

#include "pagecache/test_cache.h"
#include "storage/testing/test_cut_device.h"

namespace pagecache {
namespace {

constexpr uint64_t kPages = 60, kPage = 4096, kData = kPage - File::kChecksumBytes;

// The contents that a page has had since it was last synced, oldest first.
using States = std::vector<std::vector<std::byte>>;

struct Cut {
  std::vector<States> pages = std::vector<States>(kPages, States(1, std::vector<std::byte>(kData)));
  uint64_t torn = 0, synced = 0, later = 0;
};

// Changes pages until the power is gone; keeps in `cut` what the last sync promised.
void change_until(storage::CutDevice& device, std::mt19937_64& random, Cut& cut) {
  PageCache* const cache = *PageCache::open(with_frames(20));
  File* const file = *cache->add(device, {.checksums = true});
  Session session;
  session.open(*cache);
  std::vector<std::byte> bytes;
  while (!device.is_off()) {
    if (random() % 30 == 0) {
      if (!session.sync(*file)) continue;
      for (States& states : cut.pages) states.erase(states.begin(), states.end() - 1);
      continue;
    }
    const uint64_t page = random() % kPages, begin = random() % kData;
    bytes.resize(random() % 4 == 0 ? kData : 1 + random() % (kData - begin));
    const uint64_t at = bytes.size() == kData ? 0 : begin;
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    if (!session.write(*file, page * kData + at, bytes)) continue;
    std::vector<std::byte> now = cut.pages[page].back();
    std::ranges::copy(bytes, now.begin() + static_cast<ptrdiff_t>(at));
    cut.pages[page].push_back(std::move(now));
  }
  session.close();
  cache->close();
}

void look(storage::Device& device, Cut& cut) {
  PageCache* const cache = *PageCache::open(with_frames(20));
  File* const file = *cache->add(device, {.checksums = true});
  Session session;
  session.open(*cache);
  std::vector<std::byte> found(kData);
  for (uint64_t page = 0; page < kPages; ++page) {
    const States& states = cut.pages[page];
    if (auto read = session.read(*file, page * kData, found); !read) {
      EXPECT_EQ(read.error().number, EBADMSG);
      EXPECT_GT(states.size(), 1u) << "nobody has written there since it was synced";
      ++cut.torn;
      continue;
    }
    EXPECT_NE(std::ranges::find(states, found), states.end()) << page;
    ++(found == states[0] ? cut.synced : cut.later);
  }
  session.close();
  cache->close();
}

TEST(PowerCutTest, WhatWasSyncedIsThereAndNothingTornIsRead) {
  uint64_t torn = 0, synced = 0, later = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    auto* const device = new storage::CutDevice(std::vector<std::byte>(kPages * kPage), 1 + random() % 400);
    Cut cut;
    change_until(*device, random, cut);
    constexpr unsigned kKept[] = {0, 50, 90, 100};
    auto* const after = new storage::CutDevice(device->medium(seed, kKept[seed % 4]), ~uint64_t{0});
    device->close();
    look(*after, cut);
    after->close();
    if (HasFailure()) FAIL() << "seed " << seed;
    torn += cut.torn;
    synced += cut.synced;
    later += cut.later;
  }
  // The test has covered the cases that it is for.
  EXPECT_GT(torn, 200u);
  EXPECT_GT(synced, 2000u);
  EXPECT_GT(later, 500u);
}

}  // namespace
}  // namespace pagecache
