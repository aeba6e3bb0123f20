#include "kv/check.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/ids.h"
#include "kv/check_segments.h"
#include "kv/entry.h"
#include "kv/forgetful_device.h"
#include "kv/index.h"
#include "kv/log.h"
#include "kv/recovery.h"

namespace kv {
namespace {

using Records = std::vector<CheckedRecord>;

// Index and log as recovery makes them.
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
    return {};
  }
  const Index& index() const { return *index_; }
  uint64_t live_grains(uint32_t segment) {
    return log_.segment(segment).live_grains.load(std::memory_order_relaxed);
  }

 private:
  const Identity& identity_;
  storage::Device* device_ = nullptr;
  Index* index_ = nullptr;
  Log log_;
};

// Step 3.
class IndexCheck {
 public:
  IndexCheck(const Geometry& geometry, Recovered& recovered, Findings& findings, CheckReport& report)
      : geometry_(geometry),
        recovered_(recovered),
        findings_(findings),
        report_(report),
        live_grains_(geometry.segment_count) {}

  // By key, the newest first; of copies, the one that comes first on the medium.
  void run(Records& records) {
    std::ranges::sort(records, [](const CheckedRecord& a, const CheckedRecord& b) {
      if (a.hash.low != b.hash.low) return a.hash.low < b.hash.low;
      if (a.hash.high != b.hash.high) return a.hash.high < b.hash.high;
      if (a.sequence() != b.sequence()) return a.sequence() > b.sequence();
      return a.address < b.address;
    });
    for_each_key(records, [&](std::span<const CheckedRecord> key) { note_live(key); });
    std::ranges::sort(live_);
    for_each_key(records, [&](std::span<const CheckedRecord> key) { check_key(key); });
    report_.entries = recovered_.index().counts().entries;
    if (report_.entries > found_ + wrong_.size()) {
      const uint64_t others = report_.entries - found_ - wrong_.size();
      report_.wrong_entries += others;
      findings_.add("index: ", others, " entries of no record");
    }
    check_counters();
  }

 private:
  template <class Do>
  static void for_each_key(const Records& records, const Do& act) {
    for (size_t begin = 0, end = 0; begin < records.size(); begin = end) {
      while (end < records.size() && records[end].hash == records[begin].hash) ++end;
      act(std::span(records).subspan(begin, end - begin));
    }
  }
  static bool is_newest(std::span<const CheckedRecord> key, const CheckedRecord& record) {
    return record.sequence() == key[0].sequence();
  }
  static bool is_removed(std::span<const CheckedRecord> key) {
    return key[0].kind() == RecordKind::kTombstone;
  }

  void note_live(std::span<const CheckedRecord> key) {
    if (is_removed(key)) return;
    ++report_.live_records;
    for (const CheckedRecord& record : key)
      if (is_newest(key, record)) live_.push_back(record.address);
  }

  void check_key(std::span<const CheckedRecord> key) {
    Location candidates[Index::kCandidatesMax];
    const size_t count = recovered_.index().find_all(key[0].hash.low, candidates);
    const CheckedRecord* found = nullptr;
    for (const Location& candidate : std::span(candidates).first(count)) {
      const auto own = std::ranges::find(key, candidate.address, &CheckedRecord::address);
      const bool is_right = own != key.end() && !is_removed(key) && is_newest(key, *own) && found == nullptr;
      if (is_right) {
        found = &*own;
        if (candidate.size != size_code::of(own->grains))
          entry_is_wrong(candidate.address, "has the wrong size");
      } else if (own != key.end() || !std::ranges::binary_search(live_, candidate.address)) {
        // Of those of other keys with the same tag each is looked at with its own key.
        if (note_wrong(candidate.address)) entry_is_wrong(candidate.address, "is of no live record");
      }
    }
    // The newest counts as live, also a tombstone: it stays until no older copy can be left, which is not to be known here.
    hold(found != nullptr ? *found : key[0]);
    if (found != nullptr)
      ++found_;
    else if (!is_removed(key))
      entry_is_wrong(key[0].address, "is missing: the newest record of its key is there");
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
      if (recovered_.live_grains(i) == live_grains_[i]) continue;
      ++report_.wrong_counters;
      findings_.add("segment ", i, " (byte ", geometry_.segment_offset(i), "): ", recovered_.live_grains(i),
                    " live grains are counted, but there are ", live_grains_[i]);
    }
  }

  const Geometry& geometry_;
  Recovered& recovered_;
  Findings& findings_;
  CheckReport& report_;
  std::vector<uint64_t> live_;         // addresses of the newest values of their keys, copies too
  std::vector<uint64_t> wrong_;        // of wrong entries that were told
  std::vector<uint64_t> live_grains_;  // by segment, as they should be
  uint64_t found_ = 0;
};

base::Expected<Identity> read_superblock_at(storage::Device& device, Channel& channel, uint64_t offset) {
  alignas(4096) std::byte block[kSuperblockBytes];
  if (offset + kSuperblockBytes > device.capacity_bytes()) return base::failure(EINVAL, "holds no store");
  if (const int error = channel.read(offset, block); error != 0)
    return base::failure(error, "cannot be read: ", base::error_name(error));
  return read_superblock(block, device.capacity_bytes());
}

// What both superblocks say, or the one that is whole.
base::Expected<Identity> check_superblocks(storage::Device& device, Channel& channel, Findings& findings,
                                           CheckReport& report) {
  const auto first = read_superblock_at(device, channel, kSuperblockOffsets[0]);
  const auto second = read_superblock_at(device, channel, kSuperblockOffsets[1]);
  // The first one's reason is given, unless it is only that there is none.
  const auto& identity = first || (!second && first.error().number != EINVAL) ? first : second;
  if (!identity)
    return base::failure(identity.error().number, "store: ", device.name(), " ", identity.error().message);
  if (identity->geometry.grain_bytes < device.block_bytes())
    return base::failure(EINVAL, "store: grains of ", identity->geometry.grain_bytes, " bytes, but ",
                         device.name(), " has blocks of ", device.block_bytes());
  const auto is_wrong = [&](uint64_t offset, const char* what) {
    ++report.damaged_superblocks;
    findings.add("superblock (byte ", offset, "): the device ", what);
  };
  if (!first) is_wrong(kSuperblockOffsets[0], first.error().message);
  if (!second) is_wrong(kSuperblockOffsets[1], second.error().message);
  if (first && second && memcmp(&*first, &*second, sizeof *first) != 0)
    is_wrong(kSuperblockOffsets[1], "holds that of another store");
  return identity;
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

  Records records;
  SegmentCheck segments(*identity, channel, findings, report);
  if (auto opened = segments.open(); !opened) return std::unexpected(opened.error());
  const uint64_t all_bytes = geometry.segment_count * geometry.segment_bytes;
  for (uint32_t i = 0; i < geometry.segment_count; ++i) {
    segments.run(i, records);
    progress(context, (i + 1) * geometry.segment_bytes, all_bytes);
  }

  Recovered recovered(*identity);
  if (auto opened = recovered.open(device); !opened) {
    ++report.wrong_entries;
    findings.add("index: it cannot be made: ", opened.error().message);
    return report;
  }
  IndexCheck(geometry, recovered, findings, report).run(records);
  return report;
}

}  // namespace kv
