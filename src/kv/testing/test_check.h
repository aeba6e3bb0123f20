// For tests of check.h: a store in memory whose bytes a test can find and damage.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kv/recovery/check.h"
#include "kv/testing/test_store.h"
#include "storage/backends/memory.h"

namespace kv {

// Checks the store, and appends a line for each finding.
inline CheckReport check_of(storage::Device& device, std::string& findings) {
  auto report = check(
      device, [](void* to, const char* line) { (*static_cast<std::string*>(to) += line) += "\n"; },
      [](void*, uint64_t, uint64_t) {}, &findings);
  EXPECT_TRUE(report) << report.error().message;
  return report.value_or(CheckReport());
}

class CheckTest : public testing::Test {
 protected:
  static constexpr uint64_t kCapacity = 33 << 20;
  static constexpr uint64_t kSegment = 1 << 20;

  CheckTest() : device(*storage::make_memory_device(kCapacity)) {}
  ~CheckTest() override { device->close(); }

  std::byte* memory() const {
    return reinterpret_cast<std::byte*>(const_cast<char*>(device->whereabouts().memory));
  }
  std::vector<std::byte> image() const { return {memory(), memory() + kCapacity}; }
  void set_image(const std::vector<std::byte>& bytes) { memcpy(memory(), bytes.data(), bytes.size()); }

  static void fill(Session& session) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 3000; ++i) {
      const std::string key = "key" + std::to_string(random() % 700);
      if (random() % 5 == 0)
        ASSERT_TRUE(session.remove(key));
      else
        ASSERT_TRUE(session.put(key, bytes_of(std::string(random() % 5000, 'v'))));
    }
    // So long that its size code cannot tell the length exactly.
    ASSERT_TRUE(session.put("long", bytes_of(std::string(17 * 512, 'l'))));
  }
  // Makes a store, and leaves it closed, or as a process leaves it that is killed. Returns how many keys it has.
  uint64_t make(bool closed = true, const std::function<void(Session&)>& change = fill) {
    EXPECT_TRUE(Store::make(*device, {.segment_bytes = kSegment}));
    Store* const store = *Store::open(
        *device,
        {.durability = Durability::kNone, .stream_count = 2, .checkpoint_records = checkpoint_records});
    Session session;
    EXPECT_TRUE(session.open(*store));
    change(session);
    session.close();
    if (!closed) store->compact();  // nobody writes when the image is taken
    const uint64_t keys = store->counts().index.entries;
    const std::vector<std::byte> now = image();
    EXPECT_TRUE(store->close());
    if (!closed) set_image(now);
    return keys;
  }

  CheckReport run(storage::Device& of) {
    findings.clear();
    auto report = check(
        of, [](void* self, const char* line) { static_cast<CheckTest*>(self)->findings.push_back(line); },
        [](void* self, uint64_t done, uint64_t all) {
          auto& test = *static_cast<CheckTest*>(self);
          EXPECT_LE(done, all);
          if (done == all && test.before_index) test.before_index();
        },
        this);
    EXPECT_TRUE(report) << report.error().message;
    for (const std::string& line : findings) EXPECT_EQ(line.find('\n'), std::string::npos);
    return report ? *report : CheckReport();
  }
  CheckReport run() {
    before_.assign(memory(), memory() + kCapacity);
    const CheckReport report = run(*device);
    EXPECT_TRUE(memcmp(before_.data(), memory(), kCapacity) == 0 || before_index) << "a check writes nothing";
    return report;
  }
  std::string all_findings() const {
    std::string all;
    for (const std::string& line : findings) all += line + "\n";
    return all;
  }

  // The offset at which the text stands for the first time from `from` on.
  size_t find(const std::string& text, size_t from = kSegmentsOffset) const {
    const std::string_view all(reinterpret_cast<const char*>(memory()), kCapacity);
    const size_t at = all.find(text, from);
    EXPECT_NE(at, std::string_view::npos) << text;
    return at;
  }
  void flip(size_t at) { memory()[at] ^= std::byte{0x10}; }
  // The offset at which the first sealed segment begins.
  size_t sealed_segment() const { return sealed_segment_after(0); }
  // The offset of the next sealed segment.
  size_t sealed_segment_after(size_t segment) const {
    const size_t footer = find("spkv end", std::max<size_t>(segment + kSegment, kSegmentsOffset));
    return footer / kSegment * kSegment;
  }

  // The offset at which the entries of the segment's summary begin.
  size_t summary_of(size_t segment) const {
    SegmentFooter footer;
    memcpy(&footer, memory() + segment + kSegment - sizeof footer, sizeof footer);
    const uint64_t bytes = footer.entry_count * sizeof(SummaryEntry) + sizeof footer;
    return segment + kSegment - (bytes + 511) / 512 * 512;
  }

  storage::Device* device;
  uint64_t checkpoint_records = 0;  // an option of the store that make() opens
  std::vector<std::string> findings;
  std::function<void()> before_index;

 private:
  std::vector<std::byte> before_;  // a member, since fresh memory of this size takes the kernel long
};

}  // namespace kv
