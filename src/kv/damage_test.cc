// Stores with one damaged place: each opens, says so, and all other keys have what they had. Wrong answers, which an older version gave
// after such damage: that keys are gone, an older value, a damaged one, or that the store cannot be opened.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kv/media/checkpoint_format.h"
#include "kv/testing/store_image.h"
#include "kv/testing/test_effort.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

constexpr uint64_t kBytes = 25 << 20;
constexpr int kKeys = 120;

// How the store ended before it was damaged.
struct Shape {
  bool is_sealed = false;  // it was closed; if not, the process was killed
  bool has_checkpoint = false;
};

std::string key_of(int i) { return "key" + std::to_string(i); }

class DamageTest : public testing::TestWithParam<Shape>, protected StoreInUse {
 protected:
  ~DamageTest() override {
    if (store != nullptr) close();
    device->close();
  }

  void open() {
    StoreInUse::open(*device, {.durability = Durability::kNone,
                               .stream_count = 1,
                               .checkpoint_records = GetParam().has_checkpoint ? 1'000'000u : 0});
  }
  void put(int i, const std::string& value) {
    auto done = session.put(key_of(i), bytes_of(value));
    ASSERT_TRUE(done) << done.error().message;
    earlier[i] = std::exchange(expected[i], value);
  }
  // Puts two values of each key, the first ones in a segment that is sealed, and a large value.
  void SetUp() override {
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    open();
    for (int i = 0; i < kKeys; ++i) put(i, "first " + std::string(500 + 17 * i, 'f'));
    ASSERT_TRUE(session.put("large", bytes_of(large)));
    close();
    open();
    for (int i = 0; i < kKeys; ++i) put(i, "second " + std::string(700 + 13 * i, 's'));
    if (GetParam().is_sealed) close();
    image.emplace(device->medium(1, 100));
    if (store != nullptr) close();
  }
  // Opens the damaged medium as a new process would.
  void open_image() {
    if (store != nullptr) close();
    device->close();
    device = new storage::CutDevice(image->bytes, 0);
    open();
  }
  void expect_others(int but) {
    for (int i = 0; i < kKeys; ++i) {
      if (i == but) continue;
      auto found = session.get(key_of(i));
      ASSERT_TRUE(found) << key_of(i) << ": " << found.error().message;
      ASSERT_TRUE(found->found()) << key_of(i);
      ASSERT_EQ(text_of(found->value()), expected[i]) << key_of(i);
    }
  }
  void expect_large() {
    auto found = session.get("large");
    ASSERT_TRUE(found && found->found());
    EXPECT_TRUE(whole_value(session, *found) == large);
  }
  // For a key whose newest record is damaged: checks now, after a restart, and once the key has a new value or none.
  void expect_damaged(int key) {
    for (int turn = 0; turn < 2; ++turn) {
      expect_others(key);
      auto found = session.get(key_of(key));
      if (GetParam().is_sealed) {
        ASSERT_FALSE(found) << "its summary knows that there was one";
        EXPECT_EQ(found.error().number, EBADMSG);
      } else {
        // Nothing tells it from a write that the end of the process, or a power cut, cut short.
        ASSERT_TRUE(found && found->found());
        EXPECT_EQ(text_of(found->value()), earlier[key]);
        if (turn == 0) EXPECT_GT(store->recovery().passed_grains, 0u);
      }
      close();
      open();
    }
    if (GetParam().is_sealed) {
      // If a record is damaged after its key, it is at least known that the key is there.
      auto done = session.put(key_of(key), {}, {.when = When::kIfAbsent});
      EXPECT_EQ(done ? done->outcome : Changed::Outcome::kPresent, Changed::Outcome::kPresent);
      if (!done) {
        EXPECT_EQ(done.error().number, EBADMSG);
        done = session.remove(key_of(key), When::kIfVersion, 1);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().number, EBADMSG);
      }
    }
    expect_ends(key, true);
    expect_ends(key, false);
  }
  void expect_ends(int key, bool by_remove) {
    open_image();
    auto done = by_remove ? session.remove(key_of(key)) : session.put(key_of(key), bytes_of("third"));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->outcome, Changed::Outcome::kDone);
    for (int turn = 0; turn < 2; ++turn) {
      auto found = session.get(key_of(key));
      ASSERT_TRUE(found) << found.error().message;
      ASSERT_EQ(found->found(), !by_remove);
      if (!by_remove) EXPECT_EQ(text_of(found->value()), "third");
      expect_others(key);
      found = Found();
      close();
      open();
    }
    store->verify();
  }
  // All keys have what they had, though something else is damaged.
  void expect_all() {
    const auto at_first = expected;
    for (int turn = 0; turn < 2; ++turn) {
      expect_others(-1);
      expect_large();
      close();
      open();
    }
    for (int i = 0; i < kKeys; i += 2) put(i, "third");
    store->compact();
    expect_others(-1);
    expect_large();
    store->verify();
    expected = at_first;
  }
  uint32_t segment_of(int key) const { return image->newest(key_of(key))->segment; }

  storage::CutDevice* device = new storage::CutDevice(std::vector<std::byte>(kBytes), 0);
  std::map<int, std::string> expected, earlier;
  const std::string large = std::string(700'000, 'l') + "!";
  std::optional<StoreImage> image;
};

TEST_P(DamageTest, ARecordInTheMiddleOfItsSegment) {
  const auto place = image->newest(key_of(50));
  ASSERT_TRUE(place);
  image->flip(place->offset + 20);
  open_image();
  expect_damaged(50);
}

TEST_P(DamageTest, TheFirstRecordOfItsSegment) {
  const auto place = image->newest(key_of(0));
  ASSERT_TRUE(place);
  ASSERT_EQ(place->offset, image->begin_of(place->segment) + 512);
  std::fill_n(image->bytes.begin() + static_cast<ptrdiff_t>(place->offset), 512, std::byte{0});
  open_image();
  expect_damaged(0);
}

TEST_P(DamageTest, AByteOfAValue) {
  const auto place = image->newest(key_of(77));
  ASSERT_TRUE(place);
  image->flip(place->offset + place->record.bytes() - 1);
  open_image();
  expect_damaged(77);
}

TEST_P(DamageTest, ASegmentsHeader) {
  image->flip(image->begin_of(segment_of(50)) + 16);
  open_image();
  EXPECT_EQ(store->recovery().damaged_segments, 1u);
  EXPECT_EQ(store->recovery().lost_segments, 0u);
  expect_all();
}

TEST_P(DamageTest, ASegmentsFirstGrainIsOfZeros) {
  std::fill_n(image->bytes.begin() + static_cast<ptrdiff_t>(image->begin_of(segment_of(50))), 512,
              std::byte{0});
  open_image();
  EXPECT_EQ(store->recovery().damaged_segments, 1u);
  expect_all();
}

TEST_P(DamageTest, ASegmentsLastGrain) {
  const uint32_t segment = segment_of(50);
  ASSERT_EQ(image->summary_of(segment).has_value(), GetParam().is_sealed);
  image->flip(image->end_of(segment) - 40);
  image->flip(image->last_grain_of(segment) + 16);
  open_image();
  EXPECT_GE(store->recovery().scanned_segments, 1u);
  EXPECT_EQ(store->recovery().passed_grains, 0u);
  expect_all();
}

// Only stores that were closed: otherwise nothing lists the record.
class SealedDamageTest : public DamageTest {};

// A change reads only the beginning of a long record, which has no check of its own: where it would decide something, the whole record is read.
TEST_P(SealedDamageTest, AHeaderThatWouldDecide) {
  const int key = 50;
  const uint64_t offset = image->newest(key_of(key))->offset;
  const uint64_t version = image->newest(key_of(key))->record.header.sequence();
  const std::vector<std::byte> good = image->bytes;
  for (const size_t damaged : {offsetof(RecordHeader, sequence_and_kind) + 1,
                               offsetof(RecordHeader, expiry_and_key) + 2, sizeof(RecordHeader) + 1}) {
    SCOPED_TRACE(damaged);
    image->bytes = good;
    image->flip(offset + damaged);
    open_image();
    EXPECT_FALSE(session.get(key_of(key)));
    for (const When when : {When::kIfAbsent, When::kIfPresent, When::kIfVersion}) {
      const auto done = session.put(key_of(key), {}, {.when = when, .version = version});
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().number, EBADMSG);
    }
    expect_ends(key, true);
    expect_ends(key, false);
  }
}

TEST_P(DamageTest, ASummary) {
  const auto summary = image->summary_of(image->newest("large")->segment);
  ASSERT_TRUE(summary);
  image->flip(*summary + 3);
  open_image();
  if (!GetParam().has_checkpoint) EXPECT_GE(store->recovery().scanned_segments, 1u);
  expect_all();
}

// The place accepts no new summary, and a dead record of the segment is damaged, too: there are fewer records than the footer says.
TEST_P(DamageTest, ASummaryWhosePlaceTakesNoWrites) {
  std::optional<StoreImage::Place> dead;
  image->for_each_record([&](const StoreImage::Place& place) {
    if (place.record.key == key_of(50) &&
        (!dead || place.record.header.sequence() < dead->record.header.sequence()))
      dead = place;
  });
  ASSERT_TRUE(dead);
  const auto summary = image->summary_of(dead->segment);
  ASSERT_TRUE(summary);
  image->flip(dead->offset + 20);
  image->flip(*summary + 3);
  device->close();
  device = new storage::CutDevice(image->bytes, 0);
  device->fail_writes(*summary, 512);
  open();
  // After a close with a checkpoint, the start reads no summaries.
  const bool is_read = !GetParam().is_sealed || !GetParam().has_checkpoint;
  EXPECT_EQ(store->recovery().unsealed_segments, is_read ? 1u : 0u);
  expect_others(-1);
  expect_large();
  device->fail_writes(0, 0);
  close();
  open();
  EXPECT_EQ(store->recovery().scanned_segments, 0u) << "it has its summary now";
  expect_others(-1);
  expect_large();
  store->verify();
}

// Nothing overwrites what is left of it, no checkpoint forgets it, and each start reports it; keys elsewhere are not affected.
TEST_P(DamageTest, BothEndsOfASegment) {
  const uint32_t segment = segment_of(50);
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(segment_of(i), segment);
  image->flip(image->begin_of(segment) + 16);
  std::fill_n(image->bytes.begin() + static_cast<ptrdiff_t>(image->last_grain_of(segment)), 512,
              std::byte{0});
  const auto content = [&](const std::vector<std::byte>& bytes) {
    const auto begin = bytes.begin() + static_cast<ptrdiff_t>(image->begin_of(segment));
    return std::vector<std::byte>(begin, begin + (1 << 20));
  };
  const std::vector<std::byte> left = content(image->bytes);
  open_image();
  EXPECT_FALSE(store->recovery().has_read_all());
  EXPECT_EQ(store->recovery().lost_segments, 1u);
  expect_large();
  for (int i = 0; i < kKeys; ++i) {
    const auto found = session.get(key_of(i));
    if (GetParam().is_sealed && GetParam().has_checkpoint) {
      ASSERT_FALSE(found) << "the checkpoint knows that there was one";
      EXPECT_EQ(found.error().number, EBADMSG);
    } else {
      ASSERT_TRUE(found && found->found());
      EXPECT_EQ(text_of(found->value()), earlier[i]);
    }
  }
  // Writes everything several times.
  for (int turn = 0; turn < 400; ++turn)
    for (int i = 0; i < kKeys; ++i) put(i, "third " + std::to_string(turn) + std::string(1000, 't'));
  EXPECT_GT(store->counts().collected.victims, 20u);
  EXPECT_EQ(store->counts().collected.checkpoints, 0u);
  expect_others(-1);
  EXPECT_TRUE(store->compact());
  close();
  for (int turn = 0; turn < 2; ++turn) {
    open();
    EXPECT_EQ(store->recovery().lost_segments, 1u);
    expect_others(-1);
    expect_large();
    store->verify();
    close();
  }
  EXPECT_TRUE(content(device->medium(1, 100)) == left);
}

TEST_P(DamageTest, APieceOfALargeValue) {
  std::optional<StoreImage::Place> piece;
  image->for_each_record([&](const StoreImage::Place& place) {
    if (place.record.header.kind() == RecordKind::kPiece) piece = place;
  });
  ASSERT_TRUE(piece);
  image->flip(piece->offset + 5000);
  open_image();
  for (int turn = 0; turn < 2; ++turn) {
    expect_others(-1);
    auto found = session.get("large");
    ASSERT_TRUE(found && found->found());
    std::string value(found->value_bytes(), '\0');
    auto read = session.read_value(*found, 0, std::as_writable_bytes(std::span(value)));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().number, EBADMSG);
    found = Found();
    close();
    open();
  }
  ASSERT_TRUE(session.put("large", bytes_of(large)));
  expect_all();
}

TEST_P(DamageTest, ACheckpoint) {
  const auto segment = image->first(SegmentState::kCheckpoint);
  ASSERT_EQ(segment.has_value(), GetParam().has_checkpoint);
  if (!segment) return;
  open_image();
  EXPECT_NE(store->recovery().checkpoint, 0u);
  const StoreImage good = *image;
  const uint64_t begin = good.begin_of(*segment);
  PieceHeader table, end;
  ASSERT_TRUE(read_piece_header(good.identity, Bytes(good.bytes).subspan(begin + 512), table));
  const uint64_t end_at = begin + 512 + good.identity.geometry.grains(table.bytes) * 512;
  ASSERT_TRUE(read_piece_header(good.identity, Bytes(good.bytes).subspan(end_at), end));
  ASSERT_EQ(end.kind, PieceKind::kEnd);
  for (const uint64_t at : {begin + 512 + 17, begin + 512 + sizeof table + 7, begin + 512 + table.bytes - 2,
                            end_at + 20, end_at + sizeof end + 3}) {
    SCOPED_TRACE(at - begin);
    *image = good;
    image->flip(at);
    open_image();
    EXPECT_EQ(store->recovery().checkpoint, 0u);
    expect_all();
  }
  // One of its segment's headers, then both.
  *image = good;
  image->flip(begin + 30);
  open_image();
  EXPECT_NE(store->recovery().checkpoint, 0u) << "the other header says the same";
  expect_all();
  *image = good;
  image->flip(begin + 30);
  image->flip(good.last_grain_of(*segment) + 30);
  open_image();
  EXPECT_EQ(store->recovery().checkpoint, 0u);
  EXPECT_EQ(store->recovery().lost_segments, 1u);
  expect_all();
}

TEST_P(DamageTest, Superblocks) {
  const StoreImage good = *image;
  for (const uint64_t offset : kSuperblockOffsets) {
    *image = good;
    image->flip(offset + 100);
    open_image();
    expect_all();
  }
  *image = good;
  for (const uint64_t offset : kSuperblockOffsets) image->flip(offset + 100);
  close();
  storage::CutDevice* const damaged = new storage::CutDevice(image->bytes, 0);
  auto opened = Store::open(*damaged, {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number, EBADMSG);
  EXPECT_STREQ(opened.error().message, "store: cut has a damaged superblock");
  damaged->close();
}

// Any one byte, many times: the store opens, and each key has one of its values or is reported as damaged.
TEST_P(DamageTest, AnyByte) {
  const StoreImage good = *image;
  std::mt19937_64 random(7);
  std::vector<uint64_t> places;  // in segments that hold something
  for (uint32_t segment = 0; segment < good.identity.geometry.segment_count; ++segment)
    if (good.header_of(segment).state != SegmentState::kFree) places.push_back(good.begin_of(segment));
  for (uint64_t turn = 0; turn < 60 / kEffortParts; ++turn) {
    *image = good;
    const uint64_t at = places[random() % places.size()] + random() % (1 << 20);
    SCOPED_TRACE(at);
    image->flip(at);
    open_image();
    int damaged_count = 0;
    for (int i = 0; i < kKeys; ++i) {
      auto found = session.get(key_of(i));
      const bool is_right = found && found->found() && text_of(found->value()) == expected[i];
      damaged_count += !is_right;
      if (!is_right && !found) EXPECT_EQ(found.error().number, EBADMSG);
      if (!is_right && found) {
        EXPECT_FALSE(GetParam().is_sealed) << key_of(i);
        ASSERT_TRUE(found->found());
        EXPECT_EQ(text_of(found->value()), earlier[i]);
      }
    }
    EXPECT_LE(damaged_count, 1);
  }
}

std::string title(const testing::TestParamInfo<Shape>& shape) {
  return std::string(shape.param.is_sealed ? "Sealed" : "Open") +
         (shape.param.has_checkpoint ? "WithCheckpoint" : "");
}
INSTANTIATE_TEST_SUITE_P(Shapes, DamageTest,
                         testing::Values(Shape{false, false}, Shape{true, false}, Shape{false, true},
                                         Shape{true, true}),
                         title);
INSTANTIATE_TEST_SUITE_P(Shapes, SealedDamageTest, testing::Values(Shape{true, false}, Shape{true, true}),
                         title);

}  // namespace
}  // namespace kv
