#include "kv/collection/large_values.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "kv/testing/store_image.h"
#include "kv/testing/test_store.h"

namespace kv {
namespace {

// Differs everywhere, so that a piece in another one's place is noticed.
std::string value_of(uint64_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string value(bytes, '\0');
  for (uint64_t at = 0; at < bytes; at += 8) {
    const uint64_t drawn = random();
    memcpy(value.data() + at, &drawn, std::min<uint64_t>(8, bytes - at));
  }
  return value;
}

class LargeValuesTest : public StoreTest {
 protected:
  LargeValuesTest() : StoreTest(65 << 20) {}
  void SetUp() override {
    make({.segment_bytes = 1 << 20});
    inline_most = store->identity().geometry.value_bytes_max();
  }
  // After the collector has released what it was given.
  uint64_t live_bytes() {
    store->compact();
    return store->counts().log.live_bytes - store->counts().log.tombstone_bytes;
  }

  // Restarts on a medium as if the process had ended while a value was being written, after `change` has changed that medium.
  template <class Change>
  void end_while_writing(const Change& change) {
    ValueWriter writer;
    ASSERT_TRUE(writer.open(session, "key"));
    ASSERT_TRUE(writer.append(bytes_of(value_of(3'000'000, 2))));
    // Until all segments but the one that is written to have summaries.
    for (int i = 0; i < 1000 && store->counts().log.open_segments > 1; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    session.close();
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, device->capacity_bytes()));
    const std::span medium(memory, device->capacity_bytes());
    Channel channel;
    ASSERT_TRUE(channel.open_for_threads(*device));
    ASSERT_EQ(channel.read(0, medium), 0);
    change(medium);
    ASSERT_TRUE(session.open(*store));
    writer.abandon();
    close();
    ASSERT_EQ(channel.write(0, medium), 0);
    std::free(memory);
    channel.close();
    open();
  }

  uint64_t inline_most = 0;
};

TEST_F(LargeValuesTest, AreGivenBackWhateverTheirSize) {
  const uint64_t piece = inline_most - 72;
  const uint64_t sizes[] = {inline_most - 1, inline_most,   inline_most + 1, piece,     2 * piece - 1,
                            2 * piece,       2 * piece + 1, 3 * inline_most, 5'000'000, 1};
  for (int turn = 0; turn < 2; ++turn) {
    for (const uint64_t size : sizes) {
      const std::string key = "key" + std::to_string(size);
      if (turn == 0) ASSERT_EQ(put(key, value_of(size, size), {.flags = 7}), Outcome::kDone);
      ASSERT_TRUE(get(key) == value_of(size, size)) << size;
      auto found = session.get(key);
      EXPECT_EQ(found->is_large(), size > inline_most) << size;
      EXPECT_EQ(found->value_bytes(), size);
      EXPECT_EQ(found->flags(), 7u);
    }
    reopen();
    EXPECT_EQ(store->recovery().headless_pieces, 0u);
  }
}

TEST_F(LargeValuesTest, AreReadFromAnyPlaceInOnePieceOfMemory) {
  const std::string value = value_of(3'000'000, 1);
  put("key", value);
  auto found = session.get("key");
  ASSERT_TRUE(found && found->is_large());
  std::mt19937_64 random(2);
  for (int i = 0; i < 200; ++i) {
    const uint64_t offset = random() % 3'100'000;
    std::string part(random() % (i % 2 == 0 ? 1000 : 900'000), '\0');
    const auto read = session.read_value(*found, offset, std::as_writable_bytes(std::span(part)));
    ASSERT_TRUE(read);
    const std::string expected = offset < value.size() ? value.substr(offset, part.size()) : "";
    ASSERT_EQ(*read, expected.size());
    ASSERT_TRUE(part.substr(0, *read) == expected);
  }
}

TEST_F(LargeValuesTest, MayBeWrittenInParts) {
  std::mt19937_64 random(3);
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{100}, inline_most, inline_most + 1, uint64_t{4'000'000}}) {
    const std::string value = value_of(size, size);
    ValueWriter writer;
    ASSERT_TRUE(writer.open(session, "key"));
    for (size_t done = 0; done < value.size();) {
      const size_t part = std::min<size_t>(1 + random() % 300'000, value.size() - done);
      ASSERT_TRUE(writer.append(bytes_of(value).subspan(done, part)));
      done += part;
    }
    EXPECT_NE(get("key"), value) << "before it is there";
    ASSERT_TRUE(writer.commit());
    ASSERT_TRUE(get("key") == value);
  }
}

TEST_F(LargeValuesTest, PutsThatDependOnWhatIsThere) {
  const std::string one = value_of(1'000'000, 1), other = value_of(2'000'000, 2);
  EXPECT_EQ(put("key", one, {.when = When::kIfAbsent}), Outcome::kDone);
  EXPECT_EQ(put("key", other, {.when = When::kIfAbsent}), Outcome::kPresent);
  const uint64_t version = session.get("key")->version();
  EXPECT_EQ(put("key", other, {.when = When::kIfVersion, .version = version + 1}), Outcome::kVersion);
  ASSERT_TRUE(get("key") == one);
  EXPECT_EQ(put("key", other, {.when = When::kIfVersion, .version = version}), Outcome::kDone);
  ASSERT_TRUE(get("key") == other);
}

// The room of pieces comes back whatever ends a value: another large one, a small one, a removal, a writer that gives up, a condition that fails.
TEST_F(LargeValuesTest, LeaveNothingBehind) {
  const uint64_t before = live_bytes();
  for (int i = 0; i < 5; ++i) ASSERT_EQ(put("key", value_of(3'000'000, i)), Outcome::kDone);
  const uint64_t with_one = live_bytes();
  EXPECT_GT(with_one, before + 3'000'000);
  EXPECT_LT(with_one, before + 3'500'000);
  put("key", "small");
  EXPECT_LT(live_bytes(), before + 2000);
  ASSERT_EQ(put("key", value_of(3'000'000, 9)), Outcome::kDone);
  EXPECT_EQ(remove("key"), Outcome::kDone);
  EXPECT_EQ(live_bytes(), before);
  {
    ValueWriter writer;
    ASSERT_TRUE(writer.open(session, "key"));
    ASSERT_TRUE(writer.append(bytes_of(value_of(3'000'000, 10))));
  }
  EXPECT_EQ(live_bytes(), before);
  EXPECT_EQ(put("key", value_of(3'000'000, 9), {.when = When::kIfPresent}), Outcome::kAbsent);
  EXPECT_EQ(live_bytes(), before);
  EXPECT_EQ(store->counts().index.entries, 0u);
}

// A value that does not fit leaves its pieces to the collector while the next one already waits. Once they are released, there is room for a part of
// that one, or for all of it.
TEST_F(LargeValuesTest, AreRefusedByAFullStoreAgainAndAgain) {
  for (const size_t bytes : {500'000, 1'000'000, 3'000'000}) {
    close();
    make({.segment_bytes = 1 << 20, .capacity_bytes = 16 << 20});
    const std::string value(bytes, 'v');
    uint64_t refused = 0;
    for (int i = 0; i < 200; ++i) {
      auto done = session.put("key" + std::to_string(i), bytes_of(value));
      if (done) continue;
      ASSERT_EQ(done.error().number, ENOSPC);
      ++refused;
    }
    EXPECT_GT(refused, 150u);
    EXPECT_EQ(get("key0"), value);
  }
}

TEST_F(LargeValuesTest, AReaderKeepsTheVersionThatItFound) {
  const std::string old = value_of(3'000'000, 1);
  put("key", old);
  auto found = session.get("key");
  ASSERT_EQ(put("key", value_of(2'000'000, 2)), Outcome::kDone);
  // Meanwhile everything is moved or overwritten.
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(put("other" + std::to_string(i % 3), value_of(2'000'000, i)), Outcome::kDone);
  EXPECT_GT(store->counts().collected.victims, 20u);
  ASSERT_TRUE(whole_value(session, *found) == old);
  const uint64_t with_old = live_bytes();
  found = Found();
  EXPECT_LT(live_bytes(), with_old - 2'900'000);
}

TEST_F(LargeValuesTest, PiecesWithoutAHeadEndWithARestart) {
  const std::string old = value_of(1'500'000, 1);
  put("key", old);
  const uint64_t before = live_bytes();
  end_while_writing([](std::span<std::byte>) {});
  EXPECT_GT(store->recovery().headless_pieces, 5u);
  EXPECT_EQ(live_bytes(), before);
  ASSERT_TRUE(get("key") == old);
}

// The keys of all pieces, which say whose they are, are damaged: of a value that was being written, and of one that is there. Summaries list the
// pieces. The former end at once, otherwise their segments would stay for good; the latter end with their value.
TEST_F(LargeValuesTest, PiecesThatSayNothingEndUnlessAHeadNamesThem) {
  put("key", value_of(1'500'000, 1));
  end_while_writing([](std::span<std::byte> medium) {
    std::vector<uint64_t> places;
    const StoreImage image(std::vector<std::byte>(medium.begin(), medium.end()));
    image.for_each_record([&](const StoreImage::Place& place) {
      if (place.record.header.kind() == RecordKind::kPiece) places.push_back(place.offset);
    });
    EXPECT_GT(places.size(), 15u);
    for (const uint64_t at : places) medium[at + sizeof(RecordHeader)] ^= std::byte{1};
  });
  EXPECT_GT(store->recovery().headless_pieces, 5u);
  EXPECT_EQ(store->counts().index.entries, 1u + 6);
  auto found = session.get("key");
  ASSERT_TRUE(found && found->found());
  std::byte first;
  EXPECT_EQ(session.read_value(*found, 0, {&first, 1}).error().number, EBADMSG);
  found = Found();
  EXPECT_EQ(remove("key"), Outcome::kDone);
  EXPECT_EQ(live_bytes(), 0u);
  EXPECT_EQ(store->counts().index.entries, 0u);
}

// A user's key with the bytes of a piece's key is a different key.
TEST_F(LargeValuesTest, PiecesAreNoKeys) {
  put("key", value_of(1'000'000, 1));
  auto found = session.get("key");
  const KeyHash head = hash_key(store->identity().secret, "key");
  for (uint64_t sequence = 1; sequence < 5; ++sequence) {
    const PieceKey key = {.head = head, .sequence = sequence, .number = 0};
    EXPECT_FALSE(session.get(key.text())->found());
    ASSERT_EQ(session.put(key.text(), bytes_of("mine"))->outcome, Outcome::kDone);
  }
  ASSERT_TRUE(whole_value(session, *found) == value_of(1'000'000, 1));
}

TEST_F(LargeValuesTest, ThreadsThatReadAndReplaceTheSame) {
  constexpr int kThreads = 4;
  for (const char* key : {"key0", "key1"}) put(key, value_of(1'000'000, 0));
  std::vector<std::thread> threads;
  std::atomic<uint64_t> reads{0};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Session own;
      ASSERT_TRUE(own.open(*store));
      for (uint64_t i = 0; i < 40; ++i) {
        const std::string key = "key" + std::to_string(i % 2);
        if (t % 2 == 0) {
          const uint64_t seed = static_cast<uint64_t>(t) * 1000 + i;
          const std::string value = value_of(1'000'000 + seed, seed);
          auto done = own.put(key, bytes_of(value));
          ASSERT_TRUE(done) << done.error().message;
        } else {
          auto found = own.get(key);
          ASSERT_TRUE(found) << found.error().message;
          if (!found->found()) continue;
          const uint64_t seed = found->value_bytes() - 1'000'000;
          ASSERT_TRUE(whole_value(own, *found) == value_of(1'000'000 + seed, seed));
          ++reads;
        }
      }
      own.close();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_GT(reads, 20u);
  remove("key0");
  remove("key1");
  EXPECT_EQ(live_bytes(), 0u);
  store->verify();
}

// A checkpoint that counts none, while the index has pieces without a head, lets the next start keep them.
TEST(HeadlessCountTest, MissesNoPiecesWhileTheyAreGivenUp) {
  constexpr uint64_t kCount = 100'000;
  LargeValues values;
  std::atomic<uint64_t> begun{0};
  std::thread writer([&] {
    for (uint64_t sequence = 1; sequence <= kCount; ++sequence) {
      const Pieces pieces = {.head = {}, .of = {.sequence = sequence}};
      values.begin_write(pieces);
      begun = sequence;
      values.abandon_write(pieces);
    }
  });
  bool has_missed = false;
  while (begun < kCount) {
    const uint64_t least = begun;  // nobody releases them
    has_missed = has_missed || values.headless_count() < least;
  }
  writer.join();
  EXPECT_FALSE(has_missed);
  EXPECT_EQ(values.headless_count(), kCount);
}

}  // namespace
}  // namespace kv
