// RecoveryReader: reads headers and footers of segments, and lists their records. Each thread of recovery has one.
//
// What the medium cannot read is skipped and counted: it may be readable again at the next start (recovery.h).
#pragma once
#include <atomic>
#include <vector>

#include "kv/media/channel.h"
#include "kv/media/format.h"

namespace kv {

struct RecoveryReport {
  uint64_t records = 0;  // in the log, dead ones too
  uint64_t read_bytes = 0;
  uint64_t scanned_segments = 0;     // without a summary, so that they were read whole
  uint64_t damaged_segments = 0;     // with a damaged first grain; what they are was known from the last one
  uint64_t lost_segments = 0;        // damaged at both ends: what they hold is not known
  uint64_t unreadable_segments = 0;  // like lost ones, but an end cannot be read, maybe only for a while
  uint64_t unreadable_grains = 0;    // of scanned segments
  uint64_t unsealed_segments = 0;    // scanned ones whose summary the medium does not accept
  uint64_t passed_grains = 0;        // of scanned segments, before the last record, that belong to no record
  uint64_t headless_pieces = 0;      // of large values that were never completed, or were replaced
  uint64_t checkpoint = 0;           // the number of the one that was used; 0: none
  uint64_t replayed_records = 0;     // that were looked at one by one

  // Has everything been read that should be on the medium? If not, some keys may be missing, or have older values.
  bool has_read_all() const {
    return unreadable_segments == 0 && unreadable_grains == 0 && lost_segments == 0;
  }
  void add(const RecoveryReport& other);
};

// A segment, as it is on the medium.
struct FoundSegment {
  bool is_known = false;       // a header or the footer is right; if not, what the segment holds is unknown
  bool is_unreadable = false;  // it is not known, and the medium could not read one of its ends
  bool has_summary = false;
  bool has_copies = false;             // it held copies only, and `entries` was emptied
  std::atomic<bool> is_listed{false};  // `footer` and `entries` are those of the segment; stored last
  SegmentHeader header;
  SegmentFooter footer;               // set if the segment is in use, and has a summary or is listed
  std::vector<SummaryEntry> entries;  // in the order of their grains
  uint64_t unreadable_grains = 0;     // that a scan could not read
  // There may be a summary that could not be read: then it is not known which of the records found by a scan are listed there as void.
  bool is_summary_unread = false;

  bool is_used() const { return is_known && header.state == SegmentState::kUsed; }
};

// Is the first error worse than the second? Of several errors the worst is reported; in ascending order: 0, damage (EBADMSG), a place that the medium
// cannot read, lack of memory, all others, which mean that the device has failed.
bool outranks(int error, int other);

class RecoveryReader {
 public:
  RecoveryReader() = default;
  ~RecoveryReader();
  RecoveryReader(const RecoveryReader&) = delete;
  RecoveryReader& operator=(const RecoveryReader&) = delete;

  // Both outlive it. Errors: ENOMEM, EMFILE.
  base::Expected<void> open(storage::Device& device, const Identity& identity);

  // Bytes of a segment, valid until the next call. Errors: those of I/O, as for all calls here. REQUIRES: bytes <= kMaxBytes, or those of a
  // summary.
  static constexpr uint64_t kMaxBytes = 4 << 20;
  base::Expected<Bytes> read(uint32_t segment, uint64_t offset, uint64_t bytes);
  // The same, to a part of memory().
  base::Expected<void> read_into(uint32_t segment, uint64_t offset, std::span<std::byte> to);
  // At least kMaxBytes; read() reads to its beginning.
  std::span<std::byte> memory() { return memory_; }
  // Reads headers and footers of found.size() segments from `first` on. REQUIRES: found.size() <= kFoundAtOnce.
  static constexpr size_t kFoundAtOnce = 32;
  base::Expected<void> find(uint32_t first, std::span<FoundSegment> found);
  // Lists the records of a segment in use by its summary. Without one, the whole segment is read, and each record whose check is right counts; a
  // grain where none begins is skipped.
  base::Expected<void> list(uint32_t segment, FoundSegment& found);
  // One grain, valid until the next call; empty: the medium cannot read it.
  base::Expected<Bytes> read_grain(uint32_t segment, uint32_t grain);
  // Reads a record that is listed; kDamaged also if the medium cannot read it.
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
