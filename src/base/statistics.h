// The runtime's counters, tables of sites, curves and words: one for each line of statistics.inc. Counters are relaxed atomics: each of them is exact, but
// several that are read together are no snapshot. Cost: one atomic addition; threads that count the same thing at the same time contend for its line.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "base/miss_curve.h"
#include "base/site_table.h"

namespace base {

struct Statistics {
  struct alignas(kLineBytes) Counter {
    std::atomic<uint64_t> value{0};
    void add(uint64_t n = 1) { value.fetch_add(n, std::memory_order_relaxed); }
    void subtract(uint64_t n) { value.fetch_sub(n, std::memory_order_relaxed); }
    void set(uint64_t n) { value.store(n, std::memory_order_relaxed); }
    // Raises the value to n if it is lower.
    void raise(uint64_t n) {
      uint64_t old = value.load(std::memory_order_relaxed);
      while (old < n && !value.compare_exchange_weak(old, n, std::memory_order_relaxed)) {
      }
    }
    uint64_t get() const { return value.load(std::memory_order_relaxed); }
  };
  // Letters in one number, so that a reader never gets parts of two words.
  struct alignas(kLineBytes) Word {
    static constexpr size_t kMaxLetters = 8;
    std::atomic<uint64_t> letters{0};
    // REQUIRES: word.size() <= kMaxLetters.
    void set(std::string_view word) {
      uint64_t packed = 0;
      for (size_t i = word.size(); i-- > 0;) packed = packed << 8 | static_cast<unsigned char>(word[i]);
      letters.store(packed, std::memory_order_relaxed);
    }
    uint64_t get() const { return letters.load(std::memory_order_relaxed); }
  };
#define STATISTIC(folder, name, doc) Counter folder##_##name;
#include "base/statistics.inc"
#define SITES(folder, name, doc) SiteTable folder##_##name;
#include "base/statistics.inc"
#define CURVE(folder, name, doc) MissCurve folder##_##name;
#include "base/statistics.inc"
#define WORD(folder, name, doc) Word folder##_##name;
#include "base/statistics.inc"
};

struct StatisticInfo {
  const char* folder;
  const char* name;
  const char* doc;
  bool is_counter = false;  // a COUNTER of statistics.inc
};
inline constexpr StatisticInfo kStatisticInfo[] = {
#define COUNTER(folder, name, doc) {#folder, #name, doc, true},
#define GAUGE(folder, name, doc) {#folder, #name, doc},
#include "base/statistics.inc"
};
inline constexpr size_t kStatisticCount = sizeof kStatisticInfo / sizeof kStatisticInfo[0];
inline constexpr StatisticInfo kSitesInfo[] = {
#define SITES(folder, name, doc) {#folder, #name, doc},
#include "base/statistics.inc"
};
inline constexpr size_t kSitesCount = sizeof kSitesInfo / sizeof kSitesInfo[0];
inline constexpr StatisticInfo kCurveInfo[] = {
#define CURVE(folder, name, doc) {#folder, #name, doc},
#include "base/statistics.inc"
};
inline constexpr size_t kCurveCount = sizeof kCurveInfo / sizeof kCurveInfo[0];
inline constexpr StatisticInfo kWordInfo[] = {
#define WORD(folder, name, doc) {#folder, #name, doc},
#include "base/statistics.inc"
};
inline constexpr size_t kWordCount = sizeof kWordInfo / sizeof kWordInfo[0];
// The text of a Word.
class WordText {
 public:
  explicit constexpr WordText(uint64_t letters) {
    for (; letters != 0 && length_ < sizeof text_; letters >>= 8)
      text_[length_++] = static_cast<char>(letters);
  }
  std::string_view view() const { return {text_, length_}; }

 private:
  char text_[Statistics::Word::kMaxLetters] = {};
  size_t length_ = 0;
};
// How many sites of each SiteTable are reported.
inline constexpr uint32_t kSitesTold = 16;

// The offsets in Statistics of the counter of kStatisticInfo[i], the table of kSitesInfo[i], the curve of kCurveInfo[i] and the word of kWordInfo[i]: for
// readers in other processes.
constexpr size_t counter_offset_bytes(size_t i) { return i * sizeof(Statistics::Counter); }
constexpr size_t sites_offset_bytes(size_t i) {
  return counter_offset_bytes(kStatisticCount) + i * sizeof(SiteTable);
}
constexpr size_t curve_offset_bytes(size_t i) {
  return sites_offset_bytes(kSitesCount) + i * sizeof(MissCurve);
}
constexpr size_t word_offset_bytes(size_t i) {
  return round_up(curve_offset_bytes(kCurveCount), kLineBytes) + i * sizeof(Statistics::Word);
}
static_assert(word_offset_bytes(kWordCount) == sizeof(Statistics));

// The process's statistics.
extern Statistics statistics;

// The current value of kStatisticInfo[i].
uint64_t statistic_value(size_t i);
// The sites of kSitesInfo[i].
const SiteTable& statistic_sites(size_t i);
// The curve of kCurveInfo[i].
const MissCurve& statistic_curve(size_t i);
// The word of kWordInfo[i].
WordText statistic_word(size_t i);

}  // namespace base
