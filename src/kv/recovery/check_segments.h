// Steps 1 and 2 of a check (check.h): reads what a store's segments hold, and reports what is wrong with it.
#pragma once
#include <unordered_map>
#include <vector>

#include "kv/media/channel.h"
#include "kv/media/format.h"
#include "kv/recovery/check.h"

namespace kv {

// Where findings go: a line each, which says where it is and then what it is.
class Findings {
 public:
  Findings(void (*finding)(void* context, const char* line), void* context)
      : finding_(finding), context_(context) {}
  template <class... Parts>
  void add(const Parts&... parts) {
    base::Text<400> line;
    (line << ... << parts);
    finding_(context_, line.c_str());
  }

 private:
  void (*finding_)(void* context, const char* line);
  void* context_;
};

// A record that counts.
struct CheckedRecord {
  KeyHash hash;
  uint64_t sequence_and_kind = 0;
  uint64_t address = 0;
  uint32_t grains = 0;
  bool is_damaged = false;  // then all this is from the summary
  bool is_named = false;    // a live head names this piece. Set in the first record of the piece's key

  uint64_t sequence() const { return sequence_and_kind >> 8; }
  RecordKind kind() const { return static_cast<RecordKind>(sequence_and_kind & 0xff); }
};

static_assert(sizeof(CheckedRecord) == 40);

// What an undamaged head names.
struct CheckedHead {
  uint64_t address = 0;
  PiecesOf of;
};

struct CheckedContent {
  std::vector<CheckedRecord> records;
  std::vector<CheckedHead> heads;
};

// Does the process lack something, such as memory or files? That says nothing about the store.
bool is_of_process(int error);

class SegmentCheck {
 public:
  SegmentCheck(const Identity& identity, Channel& channel, Findings& findings, CheckReport& report)
      : identity_(identity),
        geometry_(identity.geometry),
        channel_(channel),
        findings_(findings),
        report_(report) {}
  ~SegmentCheck();
  SegmentCheck(const SegmentCheck&) = delete;
  SegmentCheck& operator=(const SegmentCheck&) = delete;

  // Errors: ENOMEM.
  base::Expected<void> open();
  // Checks a segment, and appends what it holds. Errors: what the process lacks, which is no finding.
  base::Expected<void> run(uint32_t segment, CheckedContent& content);
  // Does the segment have this checkpoint's end, whole? Then everything before the end was durable.
  bool has_end(uint32_t segment, uint64_t checkpoint);

 private:
  // What is known about the segment before its records are read.
  struct Known {
    uint64_t generation = 0;  // 0: free, or nothing is known
    SegmentFooter footer;
    bool has_footer = false;
  };

  Known look(uint32_t segment);
  bool read_entries(uint32_t segment, const SegmentFooter& footer);
  void check_sealed(uint32_t segment, const Known& known, CheckedContent& content);
  bool check_entry(uint32_t segment, uint64_t generation, const SummaryEntry& entry, Record& record);
  bool take_head(uint32_t segment, uint32_t grain, const Record& record, CheckedContent& content);
  void scan(uint32_t segment, uint64_t generation, CheckedContent& content);

  int read(uint32_t segment, uint64_t grain, std::span<std::byte> to);
  Bytes grains_at(uint32_t segment, uint64_t grain, uint64_t count, uint64_t end);
  template <class... Parts>
  void record_is_wrong(uint32_t segment, uint64_t grain, const Parts&... what);
  template <class... Parts>
  void segment_is_wrong(uint32_t segment, const Parts&... what);

  const Identity& identity_;
  const Geometry& geometry_;
  Channel& channel_;
  Findings& findings_;
  CheckReport& report_;
  std::span<std::byte> memory_;  // the window: a part of a segment
  std::vector<std::byte> summary_;
  std::span<const SummaryEntry> entries_;  // in summary_
  // What is in the window.
  uint32_t window_segment_ = 0;
  uint64_t window_begin_ = 0;  // grains
  uint64_t window_end_ = 0;
  std::unordered_map<uint64_t, uint32_t> segment_of_generation_;  // of those in use
  int lacking_ = 0;  // an errno value, if the process lacks something: from then on nothing is a finding
};

}  // namespace kv
