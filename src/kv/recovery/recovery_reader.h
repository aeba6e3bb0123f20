// RecoveryReader: what a start reads of segments: headers, footers, and what lists their records. One for each thread of it.
//
// What the medium cannot read is passed over and counted; it may be readable again at the next start (recovery.h).
#pragma once
#include <atomic>
#include <vector>

#include "kv/media/channel.h"
#include "kv/media/format.h"

namespace kv {

struct RecoveryReport {
  uint64_t records = 0;  // in the log, dead ones too
  uint64_t read_bytes = 0;
  uint64_t scanned_segments = 0;     // without a summary
  uint64_t damaged_segments = 0;     // whose first grain was damaged; their records were found nevertheless
  uint64_t lost_segments = 0;        // and those that nothing else was known of
  uint64_t unreadable_segments = 0;  // the medium could not read what would say what they are
  uint64_t unreadable_grains = 0;    // of others, which were scanned
  uint64_t unsealed_segments = 0;    // of them; the medium does not take their summaries
  uint64_t passed_grains = 0;        // of scanned segments, before their last record
  uint64_t headless_pieces = 0;      // of large values that never came to be, or were replaced
  uint64_t checkpoint = 0;           // the number of the one that was used; 0: none
  uint64_t replayed_records = 0;     // that were looked at one by one

  // Is all there that the medium should have? Else some keys may be missing, or have older values.
  bool has_read_all() const {
    return unreadable_segments == 0 && unreadable_grains == 0 && lost_segments == 0;
  }
  void add(const RecoveryReport& other);
};

// A segment, as it is on the medium.
struct FoundSegment {
  bool is_known = false;       // else neither header nor footer is right: what it holds is not known
  bool is_unreadable = false;  // nor could both be read
  bool has_summary = false;
  bool has_copies = false;             // and nothing else: what was listed is left out
  std::atomic<bool> is_listed{false};  // stored last
  SegmentHeader header;
  SegmentFooter footer;               // of one in use that has a summary, or is listed
  std::vector<SummaryEntry> entries;  // when it is listed; in the order of their grains
  uint64_t unreadable_grains = 0;     // of one that was scanned
  // There may be a summary, which could not be read: of what was scanned nobody knows what it lists as void.
  bool is_summary_unread = false;

  bool is_used() const { return is_known && header.state == SegmentState::kUsed; }
};

// Of errors that several threads, or Ios, have met the worst is told: 0, what is damaged (EBADMSG), a place that the medium cannot read,
// want of memory, and all others, which say that the device has failed. Is the first worse than the second?
bool outranks(int error, int other);

class RecoveryReader {
 public:
  RecoveryReader() = default;
  ~RecoveryReader();
  RecoveryReader(const RecoveryReader&) = delete;
  RecoveryReader& operator=(const RecoveryReader&) = delete;

  // Both outlive it. Errors: ENOMEM, EMFILE.
  base::Expected<void> open(storage::Device& device, const Identity& identity);

  // Bytes of a segment; valid until the next call. REQUIRES: bytes <= kMostBytes, or those of a summary. Errors: of I/O, as all.
  static constexpr uint64_t kMostBytes = 4 << 20;
  base::Expected<Bytes> read(uint32_t segment, uint64_t offset, uint64_t bytes);
  // The same, into memory of this reader.
  base::Expected<void> read_into(uint32_t segment, uint64_t offset, std::span<std::byte> to);
  // Of kMostBytes or more; what read() returns is its beginning.
  std::span<std::byte> memory() { return memory_; }
  // Headers and footers of as many segments, from this one on. REQUIRES: found.size() <= kFoundAtOnce.
  static constexpr size_t kFoundAtOnce = 32;
  base::Expected<void> find(uint32_t first, std::span<FoundSegment> found);
  // The records of one in use: by its summary, else all of it is read and each record counts whose check is right; a grain that begins
  // none is passed over.
  base::Expected<void> list(uint32_t segment, FoundSegment& found);
  // One of its grains; empty: the medium cannot. Valid as what read() returns.
  base::Expected<Bytes> read_grain(uint32_t segment, uint32_t grain);
  // A record that is listed.
  base::Expected<Reading> read_record(const FoundSegment& found, uint32_t segment, const SummaryEntry& entry,
                                      Record& record);

  Channel channel;
  RecoveryReport report;

 private:
  static base::Expected<void> cannot_read(uint32_t segment, int error);
  static bool needs_tail(const FoundSegment& found);
  void look_at_tail(Bytes tail, FoundSegment& found);
  base::Expected<void> read_entries(uint32_t segment, FoundSegment& found);
  base::Expected<void> scan(uint32_t segment, FoundSegment& found);
  base::Expected<bool> try_read(uint32_t segment, uint64_t offset, uint64_t bytes, Bytes& to);
  base::Expected<void> read_what_can_be(uint32_t segment, uint64_t offset, std::span<std::byte> to,
                                        FoundSegment& found);

  const Identity* identity_ = nullptr;
  std::span<std::byte> memory_;
};

}  // namespace kv
