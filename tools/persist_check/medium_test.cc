#include "medium.h"

#include <algorithm>
#include <set>

#include "images.h"
#include "test_history.h"

namespace persist_check {
namespace {

constexpr uint64_t kAddress = 0x10000;

using Contents = std::set<std::vector<Units>>;

// All contents that the first file may have after so many events, by the medium and the images.
Contents by_medium(const History& history, size_t event_count, bool& is_all) {
  Medium medium(history);
  while (medium.event_count() < event_count) medium.advance();
  const Choices choices(medium, 1000);
  Random random(1);
  Contents contents;
  const auto images = choose_images(choices, 100'000, random, is_all);
  for (const Image& image : images) {
    std::vector<Units> content = medium.sure()[0];
    for (size_t i = 0; i < image.size(); ++i)
      content[line_of(choices.lines[i])] = choices.states[i][image[i]].content;
    contents.insert(content);
  }
  return contents;
}

// The same by definition, slowly: each line by itself, from all events before the crash.
std::vector<std::set<Units>> lines_by_definition(const History& history, size_t event_count) {
  std::vector<std::set<Units>> lines;
  for (uint64_t line = 0; line < history.files[0].initial.size(); ++line) {
    std::vector<std::pair<size_t, const Piece*>> stores;
    for (size_t i = 0; i < event_count; ++i)
      if (history.events[i].kind == RecordKind::kStore)
        for (const Piece& piece : history.pieces_of(history.events[i]))
          if (line_of(piece.line) == line) stores.push_back({i, &piece});
    size_t sure = 0;
    for (size_t flush = 0; flush < event_count; ++flush) {
      const Event& event = history.events[flush];
      bool is_done = event.kind == RecordKind::kFlush && (event.flags & persist::kOrdered) != 0;
      for (size_t i = flush + 1; i < event_count; ++i)
        is_done |= history.events[i].kind == RecordKind::kFence && history.events[i].thread == event.thread;
      const bool is_store = event.kind == RecordKind::kStore && (event.flags & persist::kPastCaches) != 0;
      if (!is_done) continue;
      for (size_t s = 0; s < stores.size(); ++s) {
        if (is_store && stores[s].first <= flush &&
            std::ranges::any_of(stores, [&](auto& store) { return store.first == flush; }))
          sure = std::max(sure, s + 1);
        if (event.kind == RecordKind::kFlush && stores[s].first < flush && line >= event.first_line &&
            line < event.first_line + event.line_count)
          sure = std::max(sure, s + 1);
      }
    }
    std::set<Units> contents;
    Units content = history.files[0].initial[line];
    for (size_t s = 0; s <= stores.size(); ++s) {
      if (s >= sure) contents.insert(content);
      if (s == stores.size()) break;
      const bool is_found = (history.events[stores[s].first].flags & persist::kFound) != 0;
      for (unsigned units = 0; units < 256; ++units) {
        const Piece& piece = *stores[s].second;
        if (s < sure || is_found || (units & ~unsigned{piece.units}) != 0) continue;
        Units torn = content;
        for (size_t i = 0; i < 8; ++i)
          if ((units >> i & 1) != 0) torn[i] = piece.content[i];
        contents.insert(torn);
      }
      for (size_t i = 0; i < 8; ++i)
        if ((stores[s].second->units >> i & 1) != 0) content[i] = stores[s].second->content[i];
    }
    lines.push_back(contents);
  }
  return lines;
}

Contents by_definition(const History& history, size_t event_count) {
  Contents contents = {{}};
  for (const std::set<Units>& line : lines_by_definition(history, event_count)) {
    Contents longer;
    for (std::vector<Units> content : contents) {
      content.emplace_back();
      for (const Units& units : line) {
        content.back() = units;
        longer.insert(content);
      }
    }
    contents = std::move(longer);
  }
  return contents;
}

TEST(MediumTest, LeavesWhatTheDefinitionLeaves) {
  size_t contents_seen = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    LogBuilder log;
    log.map(1, kAddress, std::vector<uint64_t>(24, 1));
    const size_t event_count = 4 + random.below(9);
    for (size_t i = 0; i < event_count; ++i) {
      const uint32_t thread = static_cast<uint32_t>(random.below(2));
      const uint64_t unit = random.below(22);
      switch (random.below(8)) {
        case 0:
        case 1:
        case 2: log.store(thread, 1, kAddress + 8 * unit, {random.below(3)}); break;
        case 3: {
          std::vector<uint64_t> units(1 + random.below(3));  // also across the end of a line
          for (uint64_t& value : units) value = random.below(3);
          const uint8_t flags[] = {0, persist::kPastCaches, persist::kFound};
          log.store(thread, 1, kAddress + 8 * std::min<uint64_t>(unit, 21), units, flags[random.below(3)]);
          break;
        }
        case 4:
          log.flush(thread, 2, kAddress + 64 * (unit / 8), 1 + (unit < 16 && random.below(2) == 0));
          break;
        case 5: log.flush(thread, 2, kAddress + 64 * (unit / 8), 1, true); break;
        default: log.fence(thread, 3);
      }
    }
    const History history = log.history();
    ASSERT_EQ(history.damage, "");
    for (size_t crash = 1; crash <= history.events.size(); ++crash) {
      bool is_all = true;
      const Contents expected = by_definition(history, crash);
      EXPECT_EQ(by_medium(history, crash, is_all), expected) << "seed " << seed << " after event " << crash;
      EXPECT_TRUE(is_all);
      contents_seen += expected.size();
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(contents_seen, 100'000u);
}

class OneLineTest : public testing::Test {
 protected:
  void SetUp() override { log_.map(1, kAddress, std::vector<uint64_t>(16)); }
  // The values of the first two units that may be on the medium at the end.
  std::set<std::pair<uint64_t, uint64_t>> values() {
    const History history = log_.history();
    bool is_all = true;
    std::set<std::pair<uint64_t, uint64_t>> values;
    for (const auto& content : by_medium(history, history.events.size(), is_all))
      values.emplace(content[0][0], content[0][1]);
    return values;
  }
  using Values = std::set<std::pair<uint64_t, uint64_t>>;
  LogBuilder log_;
};

TEST_F(OneLineTest, StoresArriveInTheirOrder) {
  log_.store(1, 1, kAddress, {1});
  log_.store(2, 1, kAddress + 8, {2});
  EXPECT_EQ(values(), (Values{{0, 0}, {1, 0}, {1, 2}}));
}
TEST_F(OneLineTest, AWideStoreIsTorn) {
  log_.store(1, 1, kAddress, {1, 2});
  EXPECT_EQ(values(), (Values{{0, 0}, {1, 0}, {0, 2}, {1, 2}}));
}
TEST_F(OneLineTest, WhatIsFoundArrivesAsAWhole) {
  log_.store(1, 1, kAddress, {1, 2}, persist::kFound);
  EXPECT_EQ(values(), (Values{{0, 0}, {1, 2}}));
}
TEST_F(OneLineTest, AFlushAloneMakesNothingSure) {
  log_.store(1, 1, kAddress, {1});
  log_.flush(1, 1, kAddress);
  EXPECT_EQ(values(), (Values{{0, 0}, {1, 0}}));
}
TEST_F(OneLineTest, AFenceOfTheThreadThatFlushedDoes) {
  log_.store(1, 1, kAddress, {1});
  log_.flush(2, 1, kAddress);
  log_.fence(1, 1);
  EXPECT_EQ(values().size(), 2u);
  log_.fence(2, 1);
  EXPECT_EQ(values(), (Values{{1, 0}}));
}
TEST_F(OneLineTest, AFlushCoversWhatPrecedesIt) {
  log_.store(1, 1, kAddress, {1});
  log_.flush(1, 1, kAddress);
  log_.store(1, 1, kAddress + 8, {2});
  log_.fence(1, 1);
  EXPECT_EQ(values(), (Values{{1, 0}, {1, 2}}));
}
TEST_F(OneLineTest, AnOrderedFlushWaitsByItself) {
  log_.store(1, 1, kAddress, {1});
  log_.flush(1, 1, kAddress, 1, true);
  EXPECT_EQ(values(), (Values{{1, 0}}));
}
TEST_F(OneLineTest, AStorePastTheCachesNeedsAFence) {
  log_.store(1, 1, kAddress, {1}, persist::kPastCaches);
  EXPECT_EQ(values().size(), 2u);
  log_.fence(1, 1);
  EXPECT_EQ(values(), (Values{{1, 0}}));
}
TEST_F(OneLineTest, WhatAnotherMappingShowsIsThere) {
  log_.store(1, 1, kAddress, {1});
  log_.unmap(1);
  std::vector<uint64_t> content(16);
  content[1] = 9;
  log_.map(2, kAddress, content);
  EXPECT_EQ(values(), (Values{{0, 9}}));
}

TEST(ImagesTest, BeginWithThoseThatFindMost) {
  LogBuilder log;
  log.map(1, kAddress, std::vector<uint64_t>(8 * 12));
  for (uint64_t line = 0; line < 12; ++line) log.store(1, 1, kAddress + 64 * line, {line + 1, 5});
  const History history = log.history();
  Medium medium(history);
  while (medium.event_count() < history.events.size()) medium.advance();
  const Choices choices(medium, 64);
  Random random(3), same(3), other(4);
  bool is_all = true;
  const auto images = choose_images(choices, 100, random, is_all);
  EXPECT_FALSE(is_all);
  EXPECT_EQ(images.size(), 100u);
  EXPECT_EQ(std::set<Image>(images.begin(), images.end()).size(), 100u);
  EXPECT_EQ(images[0], choices.least());
  EXPECT_EQ(images[1], choices.most());
  size_t alone = 0, held = 0, torn = 0;
  for (const Image& image : images) {
    const auto least = std::ranges::count(image, 0u), most = std::ranges::count(image, 3u);
    alone += least == 11 && most == 1;
    held += least == 1 && most == 11;
    torn += (least == 11 || most == 11) && least + most == 11;
  }
  EXPECT_EQ(alone, 12u);
  EXPECT_EQ(held, 12u);
  EXPECT_EQ(torn, 48u);
  EXPECT_EQ(choose_images(choices, 100, same, is_all), images);
  EXPECT_NE(choose_images(choices, 100, other, is_all), images);
}

TEST(ImagesTest, LongPastsAreShortened) {
  LogBuilder log;
  log.map(1, kAddress, std::vector<uint64_t>(8));
  for (uint64_t i = 1; i <= 500; ++i) log.store(1, 1, kAddress, {i});
  const History history = log.history();
  Medium medium(history);
  while (medium.event_count() < history.events.size()) medium.advance();
  bool is_all = true;
  const auto states = medium.states(line_id(0, 0), 10, is_all);
  EXPECT_FALSE(is_all);
  ASSERT_EQ(states.size(), 10u);
  EXPECT_EQ(states.front().content[0], 0u);
  EXPECT_EQ(states.back().content[0], 500u);
}

}  // namespace
}  // namespace persist_check
