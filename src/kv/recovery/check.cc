#include "kv/recovery/check.h"

#include <algorithm>
#include <vector>

#include "base/ids.h"
#include "kv/index/entry.h"
#include "kv/index/index.h"
#include "kv/log/log.h"
#include "kv/media/forgetful_device.h"
#include "kv/media/superblocks.h"
#include "kv/recovery/check_segments.h"
#include "kv/recovery/recovery.h"

namespace kv {
namespace {

// Index and log, as recovery makes them.
class Recovered {
 public:
  explicit Recovered(const Identity& identity) : identity_(identity) {}
  ~Recovered() {
    log_.close();
    if (index_ != nullptr) index_->close();
    if (device_ != nullptr) device_->close();
  }
  Recovered(const Recovered&) = delete;
  Recovered& operator=(const Recovered&) = delete;

  base::Expected<void> open(storage::Device& device) {
    auto forgetful = make_forgetful_device(device);
    if (!forgetful) return std::unexpected(forgetful.error());
    device_ = *forgetful;
    if (auto opened = log_.open(identity_, 1); !opened) return opened;
    auto recovered = recover(*device_, identity_, log_, index_);
    if (!recovered) return std::unexpected(recovered.error());
    rejected_checkpoints_ = std::move(recovered->rejected_checkpoints);
    return {};
  }
  std::span<const RejectedCheckpoint> rejected_checkpoints() const { return rejected_checkpoints_; }
  const Index& index() const { return *index_; }
  // False: recovery gives the segment back, since it holds only copies.
  bool is_kept(uint64_t segment) {
    return log_.segment(segment).state.load(std::memory_order_relaxed) != Segment::State::kEmptied;
  }
  // Some of the segment could not be read, or is damaged, so that its counters are not known.
  bool is_unknown(uint32_t segment) { return log_.segment(segment).is_damaged; }
  uint64_t live_grains(uint32_t segment) {
    return log_.segment(segment).live_grains.load(std::memory_order_relaxed);
  }

 private:
  const Identity& identity_;
  storage::Device* device_ = nullptr;
  Index* index_ = nullptr;
  Log log_;
  std::vector<RejectedCheckpoint> rejected_checkpoints_;
};

// Step 3.
class IndexCheck {
 public:
  IndexCheck(const Identity& identity, CheckedContent& content, Recovered& recovered, Findings& findings,
             CheckReport& report)
      : identity_(identity),
        geometry_(identity.geometry),
        content_(content),
        recovered_(recovered),
        findings_(findings),
        report_(report),
        live_grains_(identity.geometry.segment_count) {}

  // Sorts records by key, the newest first; copies by their places on the medium.
  void run() {
    std::ranges::sort(content_.records, [](const CheckedRecord& a, const CheckedRecord& b) {
      if (a.hash != b.hash) return is_before(a.hash, b.hash);
      if (a.sequence() != b.sequence()) return a.sequence() > b.sequence();
      return a.address < b.address;
    });
    std::ranges::sort(content_.heads, {}, &CheckedHead::address);
    for_each_key([&](Key key) { name_pieces(key); });
    std::ranges::sort(damaged_pieces_);
    for_each_key([&](Key key) { note_live(key); });
    std::ranges::sort(live_);
    for_each_key([&](Key key) { check_key(key); });
    report_.entries = recovered_.index().counts().entries;
    if (report_.entries > found_ + wrong_.size()) {
      const uint64_t others = report_.entries - found_ - wrong_.size();
      report_.wrong_entries += others;
      findings_.add("index: ", others, " entries of no record");
    }
    check_counters();
  }

 private:
  // All records of a key, the newest first.
  using Key = std::span<const CheckedRecord>;
  // Should its newest record be in the index?
  enum class Life {
    kLive,
    kGone,    // it was removed, or is a piece of no value
    kEither,  // both are right: a value that has expired, or a piece whose head may be damaged
  };

  static bool is_before(const KeyHash& a, const KeyHash& b) {
    return a.low != b.low ? a.low < b.low : a.high < b.high;
  }
  template <class Do>
  void for_each_key(const Do& act) const {
    const Key records = content_.records;
    for (size_t begin = 0, end = 0; begin < records.size(); begin = end) {
      while (end < records.size() && records[end].hash == records[begin].hash) ++end;
      act(records.subspan(begin, end - begin));
    }
  }
  // The key's newest record, with its copies.
  static Key newest(Key key) {
    size_t count = 1;
    while (count < key.size() && key[count].sequence() == key[0].sequence()) ++count;
    return key.first(count);
  }
  static bool is_value(const CheckedRecord& record) { return record.kind() != RecordKind::kTombstone; }

  Life life_of(Key key) const {
    const Key copies = newest(key);
    if (key[0].kind() == RecordKind::kPiece) {
      if (key[0].is_named) return Life::kLive;
      const bool is_known =
          !has_damaged_head_ && !std::ranges::binary_search(damaged_pieces_, key[0].sequence());
      return is_known ? Life::kGone : Life::kEither;
    }
    // An expired value becomes a tombstone of the same sequence: either of the two may have been found first.
    if (std::ranges::all_of(copies, is_value)) return Life::kLive;
    return std::ranges::none_of(copies, is_value) ? Life::kGone : Life::kEither;
  }

  bool is_in_index(const CheckedRecord& record) const {
    Location found[Index::kMaxCandidates];
    const size_t count = recovered_.index().find_all(record.hash.low, found);
    return std::any_of(found, found + count,
                       [&](const Location& location) { return location.address == record.address; });
  }

  // Marks the pieces that the key's head names, if it counts. A value that is in the index although it may have expired need not have all of them.
  void name_pieces(Key key) {
    if (key[0].kind() == RecordKind::kPiece) {
      for (const CheckedRecord& piece : key)
        if (piece.is_damaged) damaged_pieces_.push_back(piece.sequence());
      return;
    }
    const Life life = life_of(key);
    bool is_named = false;
    for (const CheckedRecord& record : newest(key)) {
      if (record.kind() != RecordKind::kHead || (life == Life::kEither && !is_in_index(record))) continue;
      const auto head = std::ranges::lower_bound(content_.heads, record.address, {}, &CheckedHead::address);
      const bool is_whole = head != content_.heads.end() && head->address == record.address;
      has_damaged_head_ = has_damaged_head_ || !is_whole;
      if (!is_whole || is_named) continue;
      is_named = true;
      const uint64_t missing = name_pieces(record.hash, head->of);
      if (missing == 0 || life == Life::kEither) continue;
      ++report_.damaged_records;
      findings_.add("segment ", geometry_.segment_of(record.address), ", grain ",
                    geometry_.grain_of(record.address), " (byte ", geometry_.offset_of(record.address),
                    "): the large value lacks ", missing, " of its ", head->of.count(), " pieces");
    }
  }
  // Returns how many are missing.
  uint64_t name_pieces(const KeyHash& head, const PiecesOf& of) {
    uint64_t missing = 0;
    for (uint64_t number = 0; number < of.count(); ++number) {
      const KeyHash hash =
          hash_piece(identity_.secret, {.head = head, .sequence = of.sequence, .number = number});
      const auto piece = std::ranges::lower_bound(content_.records, hash, is_before, &CheckedRecord::hash);
      if (piece != content_.records.end() && piece->hash == hash)
        piece->is_named = true;
      else
        ++missing;
    }
    return missing;
  }

  void note_live(Key key) {
    if (life_of(key) == Life::kGone) return;
    for (const CheckedRecord& record : newest(key))
      if (is_value(record)) live_.push_back(record.address);
  }

  void check_key(Key key) {
    const Life life = life_of(key);
    const Key copies = newest(key);
    Location candidates[Index::kMaxCandidates];
    const size_t count = recovered_.index().find_all(key[0].hash.low, candidates);
    const CheckedRecord* found = nullptr;
    for (const Location& candidate : std::span(candidates).first(count)) {
      const auto own = std::ranges::find(key, candidate.address, &CheckedRecord::address);
      const bool is_newest = own != key.end() && own->sequence() == copies[0].sequence();
      if (is_newest && is_value(*own) && life != Life::kGone && found == nullptr) {
        found = &*own;
        if (candidate.size != size_code::of(own->grains))
          entry_is_wrong(candidate.address, "has the wrong size");
      } else if (own != key.end() || !std::ranges::binary_search(live_, candidate.address)) {
        // A candidate may belong to another key with the same tag: if it may be live, it is checked with its own key.
        if (note_wrong(candidate.address)) entry_is_wrong(candidate.address, "is of no live record");
      }
    }
    // All tombstones count as live.
    for (const CheckedRecord& record : key)
      if (!is_value(record) && recovered_.is_kept(geometry_.segment_of(record.address))) hold(record);
    if (found != nullptr) {
      ++found_;
      hold(*found);
    } else if (life == Life::kLive) {
      hold(key[0]);
      entry_is_wrong(key[0].address, "is missing: the newest record of its key is there");
    }
    report_.live_records += found != nullptr || life == Life::kLive;
  }

  bool note_wrong(uint64_t address) {
    const auto at = std::ranges::lower_bound(wrong_, address);
    if (at != wrong_.end() && *at == address) return false;
    wrong_.insert(at, address);
    return true;
  }
  void entry_is_wrong(uint64_t address, const char* what) {
    ++report_.wrong_entries;
    findings_.add("index: the entry of segment ", geometry_.segment_of(address), ", grain ",
                  geometry_.grain_of(address), " (byte ", geometry_.offset_of(address), ") ", what);
  }
  void hold(const CheckedRecord& record) {
    live_grains_[geometry_.segment_of(record.address)] += size_code::grains(size_code::of(record.grains));
  }

  void check_counters() {
    for (uint32_t i = 0; i < live_grains_.size(); ++i) {
      if (recovered_.live_grains(i) == live_grains_[i] || recovered_.is_unknown(i)) continue;
      ++report_.wrong_counters;
      findings_.add("segment ", i, " (byte ", geometry_.segment_offset(i), "): ", recovered_.live_grains(i),
                    " live grains are counted, but there are ", live_grains_[i]);
    }
  }

  const Identity& identity_;
  const Geometry& geometry_;
  CheckedContent& content_;
  Recovered& recovered_;
  Findings& findings_;
  CheckReport& report_;
  bool has_damaged_head_ = false;
  std::vector<uint64_t> damaged_pieces_;  // sequences of values with a damaged piece
  std::vector<uint64_t> live_;            // addresses of records that may be in the index, with copies
  std::vector<uint64_t> wrong_;           // addresses of wrong entries that were reported
  std::vector<uint64_t> live_grains_;     // by segment, as they should be
  uint64_t found_ = 0;
};

std::unexpected<base::Error> not_done(const base::Error& why) {
  return base::failure(why.number, "the store was not checked: ", why.message, "; ",
                       why.number == ENOMEM ? "give the process more memory, and check again"
                                            : "give the process more files and threads, and check again");
}

// What the superblocks say, or the one of them that is whole.
base::Expected<Identity> check_superblocks(storage::Device& device, Channel& channel, Findings& findings,
                                           CheckReport& report) {
  Superblocks superblocks;
  const auto identity = superblocks.read(device, channel);
  const auto &first = superblocks.copy(0), &second = superblocks.copy(1);
  for (const auto* one : {&first, &second})
    if (!*one && is_of_process(one->error().number)) return not_done(one->error());
  if (!identity) return identity;
  const auto is_wrong = [&](uint64_t offset, const char* what) {
    ++report.damaged_superblocks;
    findings.add("superblock (byte ", offset, "): the device ", what);
  };
  if (!first) is_wrong(kSuperblockOffsets[0], first.error().message);
  if (!second) is_wrong(kSuperblockOffsets[1], second.error().message);
  if (first && second && *first != *second) is_wrong(kSuperblockOffsets[1], "holds that of another store");
  if (identity->is_cache)
    return base::failure(
        EOPNOTSUPP, "store: ", device.name(),
        " is a cache, whose dropped records cannot be told from lost ones yet; it was not checked");
  return identity;
}

// Step 4.
void check_checkpoints(std::span<const RejectedCheckpoint> rejected, const Geometry& geometry,
                       SegmentCheck& segments, Findings& findings, CheckReport& report) {
  for (const RejectedCheckpoint& one : rejected) {
    const bool is_damaged =
        one.error == EBADMSG && !one.has_gaps && segments.has_end(one.segments.back(), one.number);
    if (one.error == EBADMSG && !is_damaged) continue;
    ++report.damaged_checkpoints;
    const uint32_t first = one.segments.front();
    findings.add("segment ", first, " (byte ", geometry.segment_offset(first),
                 "): the checkpoint that begins here ", is_damaged ? "is damaged" : "cannot be read",
                 "; no data is lost by that, since a start reads the log instead");
  }
}

}  // namespace

base::Expected<CheckReport> check(storage::Device& device, void (*finding)(void* context, const char* line),
                                  void (*progress)(void* context, uint64_t done_bytes, uint64_t all_bytes),
                                  void* context) {
  struct Opened : Channel {
    ~Opened() { close(); }
  } channel;
  if (auto opened = channel.open_for_threads(device); !opened) return std::unexpected(opened.error());
  Findings findings(finding, context);
  CheckReport report;
  auto identity = check_superblocks(device, channel, findings, report);
  if (!identity) return std::unexpected(identity.error());
  const Geometry& geometry = identity->geometry;

  CheckedContent content;
  SegmentCheck segments(*identity, channel, findings, report);
  if (auto opened = segments.open(); !opened) return not_done(opened.error());
  const uint64_t all_bytes = geometry.segment_count * geometry.segment_bytes;
  for (uint32_t i = 0; i < geometry.segment_count; ++i) {
    if (auto ran = segments.run(i, content); !ran) return not_done(ran.error());
    progress(context, (i + 1) * geometry.segment_bytes, all_bytes);
  }

  Recovered recovered(*identity);
  if (auto opened = recovered.open(device); !opened) {
    if (is_of_process(opened.error().number)) return not_done(opened.error());
    ++report.wrong_entries;
    findings.add("index: it cannot be made: ", opened.error().message);
    return report;
  }
  check_checkpoints(recovered.rejected_checkpoints(), geometry, segments, findings, report);
  IndexCheck(*identity, content, recovered, findings, report).run();
  return report;
}

}  // namespace kv
