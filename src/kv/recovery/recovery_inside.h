// What the files of recovery (recovery.h) share. No other file includes this.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "kv/media/checkpoint_format.h"
#include "kv/recovery/recovery.h"
#include "sys/lock.h"
#include "sys/threads.h"

namespace kv {

class Recovery {
 public:
  Recovery(storage::Device& device, const Identity& identity, Log& log);

  base::Expected<RecoveredStore> run(Index*& index);

 private:
  // Records of a segment that the index points to, as one worker has counted them: a difference, modulo 2^64. The log gets the sums.
  struct Live {
    uint64_t grains = 0;
    uint64_t records = 0;
  };
  // A record, and where it is.
  struct Placed {
    SummaryEntry entry;
    uint64_t address = 0;
  };
  // A replayed segment's records that are to be applied, by part (recovery_apply.cc).
  struct Parted {
    std::vector<uint32_t> parts;  // how many each part has; during staging: where its next one goes
    uint32_t count = 0;           // of all parts
  };
  // What the index has for a key. `entry` null: nothing.
  struct Known {
    Location at;
    const SummaryEntry* entry = nullptr;
  };
  // The state of one thread.
  struct Worker {
    RecoveryReader reader;
    std::vector<Live> live;           // by segment
    std::vector<uint64_t> sample;     // KeyHash::low of the records of part 0
    std::vector<uint64_t> sequences;  // of large values (recovery_pieces.cc)
    Location candidates[Index::kMaxCandidates];
    uint64_t others[Index::kMaxCandidates];
  };
  using Step = base::Expected<void> (Recovery::*)(Worker& worker, uint32_t segment);

  // Calls act(worker) on all threads. Returns the worst error, if there is any (outranks()).
  template <class Act>
  base::Expected<void> by_all(const Act& act);
  // Calls act(worker, begin, end) for all numbers below `count`, `step` of them at a time, until one call fails.
  template <class Act>
  base::Expected<void> for_all(uint64_t count, uint64_t step, const Act& act);
  base::Expected<void> for_all_segments(Step step);

  base::Expected<void> open_workers();
  base::Expected<void> find_all();
  bool has_read_all() const;
  base::Expected<void> check_readable() const;
  base::Expected<void> load_checkpoint(Index*& index);
  bool has_gaps(std::span<const uint32_t> parts) const;
  base::Expected<void> open_index(Index*& index);
  base::Expected<void> leave_checkpoint(Index*& index);
  base::Expected<void> restore(uint64_t number, std::span<const uint32_t> parts, Index& index);
  base::Expected<void> list(Worker& worker, uint32_t index);
  // REQUIRES: nobody else lists the segment.
  base::Expected<void> list_once(Worker& worker, uint32_t index);
  Segment::State state_of(uint32_t index) const;
  bool has_free_segment() const;
  base::Expected<void> drop_copies();
  base::Expected<bool> are_all_elsewhere(uint32_t index);
  void tell_log(uint32_t index);
  void tell_log_what_lives();
  bool was_open() const;
  base::Expected<void> skip_lost();
  void tell_log_of_unknown();
  base::Expected<void> seal(Worker& worker, uint32_t index);
  bool is_left_damaged(uint32_t index, std::span<const SummaryEntry> that_count);
  uint64_t known_records(uint32_t index) const;
  std::vector<SummaryEntry> entries_that_count(uint32_t index);

  base::Expected<const SummaryEntry*> entry_at(Worker& worker, uint64_t address);
  uint32_t part_of(const KeyHash& hash) const;
  base::Expected<void> apply_all();
  base::Expected<void> count_parts(Worker& worker, uint32_t index);
  bool reserve();
  base::Expected<void> apply_some(uint32_t begin, uint32_t end);
  void stage(uint32_t index);
  base::Expected<void> apply(Worker& worker, uint32_t part);
  base::Expected<bool> try_apply(Worker& worker, const SummaryEntry& entry, uint64_t address);
  Placed* staged_records() const { return reinterpret_cast<Placed*>(staging_.get()); }
  void prefetch_other(const SummaryEntry& entry) const;
  base::Expected<void> end_tombstones(Worker& worker, uint32_t index);

  bool may_have_headless() const;
  base::Expected<void> end_pieces();
  base::Expected<void> list_pieces(Worker& worker, uint32_t index);
  std::vector<Placed> pieces_in_index() const;
  base::Expected<void> end_if_headless(Worker& worker, std::span<const Placed> pieces);
  base::Expected<void> end_unlisted(Worker& worker, PieceKey key, uint64_t count);
  void end_all(Worker& worker, std::span<const Placed> pieces);
  base::Expected<void> end_nameless(std::span<const std::span<const Placed>> values);
  base::Expected<void> note_named(Worker& worker, uint32_t index);
  std::vector<uint64_t> take_sequences();
  base::Expected<bool> read_key(Worker& worker, const Placed& piece, PieceKey& key);
  base::Expected<PiecesOf> read_head(Worker& worker, uint64_t address, const SummaryEntry& entry);
  base::Expected<bool> has_head(Worker& worker, const KeyHash& head, uint64_t sequence);

  // Had the segment no records when the checkpoint began?
  bool is_newer(uint64_t segment) const {
    return segments_[segment].header.generation > state_.generation || was_ready_[segment] != 0;
  }
  // May the record, which is in a replayed segment, be missing in the checkpoint, or have ended something that is in it?
  bool is_to_apply(uint32_t segment, const SummaryEntry& entry) const {
    if (entry.kind() == RecordKind::kVoid) return false;
    return recovered_.report.checkpoint == 0 || is_newer(segment) || entry.kind() == RecordKind::kPiece ||
           entry.sequence() >= state_.next_sequence;
  }
  // Segments have a power of two grains.
  uint64_t segment_of(uint64_t address) const { return address >> segment_shift_; }
  void hold(Worker& worker, uint64_t address, uint32_t size);
  void release(Worker& worker, uint64_t address, uint32_t size);
  void release(Worker& worker, const Known& known);

  static constexpr uint32_t kMaxThreads = 8;
  static constexpr uint32_t kLocks = 64;

  storage::Device& device_;
  const Identity& identity_;
  const Geometry& geometry_;
  const unsigned segment_shift_;
  Log& log_;
  Index* index_ = nullptr;
  std::vector<FoundSegment> segments_;
  std::vector<char> is_replayed_;
  std::vector<char> was_ready_;           // was the segment READY when the checkpoint began?
  uint32_t part_count_ = 1;               // a power of two
  std::vector<Parted> parted_;            // by segment
  std::unique_ptr<std::byte[]> staging_;  // memory for Placed, each of which is written before it is read
  bool has_others_ = true;  // for many records that are applied the index has another record of the key
  std::vector<uint32_t> part_ends_;  // where each part ends in staging_
  CheckpointState state_;
  bool has_told_log_ = false;             // the log knows what each segment's footer says
  std::atomic<bool> has_dropped_{false};  // the checkpoint had entries in segments that were used again since
  // Some segments are left as they are (is_left_damaged()).
  std::atomic<bool> has_left_damaged_{false};
  std::vector<uint64_t> nameless_;  // sequences of values none of whose pieces says whose they are
  RecoveredStore recovered_;
  std::unique_ptr<Worker[]> workers_;
  uint32_t worker_count_ = 0;
  sys::Mutex locks_[kLocks];  // for listing segments on demand, by their numbers modulo kLocks
};

template <class Act>
base::Expected<void> Recovery::by_all(const Act& act) {
  struct Part {
    const Act& act;
    Worker& worker;
    base::Expected<void> result;
    static void run(void* argument) {
      Part& part = *static_cast<Part*>(argument);
      part.result = part.act(part.worker);
    }
  };
  std::vector<Part> parts;
  for (uint32_t i = 0; i < worker_count_; ++i) parts.push_back({act, workers_[i], {}});
  std::vector<sys::Thread> threads;
  for (Part& part : parts) {
    auto thread = sys::start_thread(&Part::run, &part, "kv-recovery");
    if (!thread) break;
    threads.push_back(*thread);
  }
  if (threads.empty()) Part::run(&parts[0]);
  for (const sys::Thread thread : threads) sys::join_thread(thread);
  base::Expected<void> result;
  const auto number = [](const base::Expected<void>& of) { return of ? 0 : of.error().number; };
  for (const Part& part : parts)
    if (outranks(number(part.result), number(result))) result = part.result;
  return result;
}

template <class Act>
base::Expected<void> Recovery::for_all(uint64_t count, uint64_t step, const Act& act) {
  std::atomic<uint64_t> next{0};
  std::atomic<bool> has_failed{false};
  return by_all([&](Worker& worker) {
    base::Expected<void> done;
    while (done && !has_failed.load(std::memory_order_relaxed)) {
      const uint64_t begin = next.fetch_add(step, std::memory_order_relaxed);
      if (begin >= count) break;
      done = act(worker, begin, std::min(count, begin + step));
    }
    if (!done) has_failed.store(true, std::memory_order_relaxed);
    return done;
  });
}

}  // namespace kv
