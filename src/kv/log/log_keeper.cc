// The keeper's part of the log: it prepares segments ahead of the writers and seals them behind. Also everything else that writes headers:
// giving segments back, and the floor of a cache.
#include <algorithm>

#include "base/check.h"
#include "kv/log/log.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace kv {
namespace {

constexpr uint32_t kPreparedAtOnce = 16;
constexpr uint32_t kSealedAtOnce = 16;
constexpr uint64_t kReadyBytes = 32 << 20;
constexpr uint32_t kReadyParts = 32;
constexpr uint64_t kPutOffNs = 100'000'000;
constexpr uint8_t kPutOffDoublings = 6;
constexpr uint32_t kFloorTries = 8;
// This many headers get a floor, so that if one of them cannot be read by the next start, another one still tells it.
constexpr uint32_t kFloorCopies = 2;
// Zeros that are written at a time to a file's holes: other requests wait behind no more than this.
constexpr uint64_t kZeroBytes = 128 << 10;
// Room that is allocated when headers are written: the largest grain, and the least that file systems allocate.
constexpr uint64_t kHeaderRoomBytes = 4096;
// A medium writes a block of this size as a whole or not at all, even when power fails.
constexpr uint32_t kMinBlockBytes = 512;
// Which of a segment's two headers: in its first grain, in its last grain.
constexpr unsigned kFirst = 1, kLast = 2;

uint64_t entries_bytes(const Geometry& geometry) {
  return uint64_t{geometry.segment_grains()} * sizeof(SummaryEntry);
}

}  // namespace

void Log::fill_all() {
  for (uint32_t i = 0; i <= relocation_stream(); ++i) {
    sys::LockGuard scope(streams_[i].lock);
    if (streams_[i].segment.load(std::memory_order_relaxed) != kNone) fill(streams_[i]);
  }
}

int Log::seal_all(Channel& channel) {
  fill_all();
  hurried_ns_ = 0;
  if (hurry_put_offs()) retry_seals();
  // A segment that stays without a summary is read as a whole by the next start.
  for (bool did = true; did;) {
    did = false;
    const int error = seal(channel, did);
    if (flush_error() != 0) return flush_error();
    if (error != 0) break;
  }
  // A start would read a ready segment as a whole, since its header says that it is in use and it has no summary.
  if (const int error = free_all(channel, Segment::State::kReady); error != 0) return error;
  if (const int error = give_back(channel); error != 0) return error;
  return flush(channel);
}

int Log::keep_floor(Channel& channel, uint32_t first) {
  int error = 0;
  uint32_t copies = 0;
  for (uint32_t i = 0, tries = 0; i < segment_count_ && tries < kFloorTries && copies < kFloorCopies; ++i) {
    const uint32_t index = (first + i) % segment_count_;
    // A snapshot may have begun to keep a record of `first`: its header is written all the same.
    if (i != 0 && !can_be_collected(segments_[index], true)) continue;
    error = write_header_again(channel, index);
    if (error != 0 && !is_of_segment(error)) break;
    copies += error == 0;
    ++tries;
  }
  return copies != 0 ? flush(channel) : error;
}

int Log::write_header_again(Channel& channel, uint32_t segment) {
  NextHeader header = {.segment = segment,
                       .generation = segments_[segment].generation.load(std::memory_order_relaxed)};
  write_headers(channel, {&header, 1}, SegmentState::kUsed, kFirst);
  return header.error;
}

int Log::give_back(Channel& channel) { return free_all(channel, Segment::State::kEmptied); }

bool Log::is_due_to_give_back() {
  if (put_off_count() == 0) return false;
  sys::LockGuard scope(lock_);
  for (uint32_t i = 0; i < segment_count_; ++i)
    if (segments_[i].state.load(std::memory_order_relaxed) == Segment::State::kEmptied &&
        is_put_off(segments_[i]) && is_due(segments_[i]))
      return true;
  return false;
}

// --- write errors of single segments ---

// If not, it concerns the device or this process. After a failed flush nobody knows which writes are lost.
bool Log::is_of_segment(int error) const { return is_of_medium(error) && flush_error() == 0; }

bool Log::is_due(const Segment& segment) const {
  return !is_put_off(segment) || sys::monotonic_ns() >= segment.put_off_until_ns;
}

// REQUIRES: lock_.
void Log::put_off(Segment& segment) {
  if (!is_put_off(segment)) {
    put_off_count_.fetch_add(1, std::memory_order_relaxed);
    if (segment.state.load(std::memory_order_relaxed) == Segment::State::kEmptied) --emptied_count_;
  }
  segment.put_off_until_ns =
      sys::monotonic_ns() + (kPutOffNs << std::min(segment.put_offs, kPutOffDoublings));
  if (segment.put_offs <= kPutOffDoublings) ++segment.put_offs;
}

// REQUIRES: lock_; the caller has updated emptied_count_.
void Log::end_put_off(Segment& segment) {
  if (is_put_off(segment)) put_off_count_.fetch_sub(1, std::memory_order_relaxed);
  segment.put_offs = 0;
}

bool Log::hurry_put_offs() {
  if (put_off_count() == 0) return false;
  sys::LockGuard scope(lock_);
  const uint64_t now = sys::monotonic_ns();
  if (now < hurried_ns_ + kPutOffNs) return false;
  hurried_ns_ = now;
  for (uint32_t i = 0; i < segment_count_; ++i) segments_[i].put_off_until_ns = 0;
  return true;
}

// --- headers ---

int Log::free_all(Channel& channel, Segment::State from) {
  NextHeader headers[kPreparedAtOnce];
  int error = 0;
  for (uint32_t i = 0; i < segment_count_ && error == 0;) {
    size_t count = 0;
    for (; i < segment_count_ && count < kPreparedAtOnce; ++i) {
      if (segments_[i].state.load(std::memory_order_relaxed) != from) continue;
      sys::LockGuard scope(lock_);
      if (!is_due(segments_[i])) continue;
      headers[count++] = {.segment = i, .generation = ++generation_};
    }
    if (count != 0) error = free_some(channel, from, {headers, count});
  }
  return error;
}

// Once a segment's free header is durable, nothing that it held counts, whatever happens. 0, or an errno value; a header that the medium does
// not accept is no error.
int Log::free_some(Channel& channel, Segment::State from, std::span<NextHeader> headers) {
  const Geometry& geometry = identity_->geometry;
  // A torn write of the last grain may destroy the footer without leaving a header: so the first header is made durable before.
  if (geometry.grain_bytes > kMinBlockBytes) {
    write_headers(channel, headers, SegmentState::kFree, kFirst);
    if (const int error = flush(channel); error != 0) return error;
    write_headers(channel, headers, SegmentState::kFree, kLast);
  } else {
    write_headers(channel, headers, SegmentState::kFree, kFirst | kLast);
  }
  if (const int error = flush(channel); error != 0) return error;
  int error = 0;
  for (const NextHeader& header : headers) {
    Segment& segment = segments_[header.segment];
    bool stays_free = false;
    {
      sys::LockGuard scope(lock_);
      // Ready segments are given back only when the store closes: the next start tries them again.
      if (is_of_medium(header.error) && from == Segment::State::kEmptied) put_off(segment);
      if (header.is_there) segment.is_void.store(true, std::memory_order_relaxed);
      stays_free = from == Segment::State::kEmptied && available() >= free_high_;
    }
    if (header.error != 0) {
      if (error == 0 && !is_of_medium(header.error)) error = header.error;
      continue;
    }
    // Whether a discard succeeds does not matter. Segments that are written to soon are not discarded: in a file, each write would first have to
    // allocate room, one after the other.
    if (stays_free)
      static_cast<void>(channel.discard(geometry.segment_offset(header.segment) + geometry.grain_bytes,
                                        geometry.segment_bytes - 2 * geometry.grain_bytes));
    sys::LockGuard scope(lock_);
    if (from == Segment::State::kReady)
      --ready_count_;
    else if (!is_put_off(segment))
      --emptied_count_;
    ++free_count_;
    end_put_off(segment);
    segment.state.store(Segment::State::kFree, std::memory_order_release);
  }
  keeper_wanted.notify_all();
  changed_room();
  return error;
}

// One for each stream, at least two, and as many more as may be filled while segments are prepared and sealed on a busy device: without
// them all writers would wait. Not many, since a start after a crash reads all of them.
uint32_t Log::ready_wanted() const {
  const uint64_t ahead =
      std::min<uint64_t>(kReadyBytes / identity_->geometry.segment_bytes, segment_count_ / kReadyParts);
  return std::min<uint32_t>(kPreparedAtOnce, std::max(2u, stream_count_) + static_cast<uint32_t>(ahead));
}

int Log::keep(Channel& channel, bool& did) {
  did = false;
  const int error = prepare(channel, did);
  const int seal_error = flush_error() == 0 ? seal(channel, did) : 0;
  return error != 0 ? error : seal_error;
}

// If the medium accepts none of the headers, other segments are tried once, to tell bad places from a bad device. If there are no other free
// segments, the places count as bad as long as writers have, or will have, segments to go on with; if the device is bad, they will find out.
int Log::prepare(Channel& channel, bool& did) {
  NextHeader headers[2 * kPreparedAtOnce];
  size_t count = 0;
  const auto has_written = [&] {
    return std::ranges::any_of(std::span(headers, count), [](const NextHeader& of) { return of.error == 0; });
  };
  for (int turn = 0; turn < 2; ++turn) {
    const std::span more(headers + count, choose_to_prepare(std::span(headers + count, kPreparedAtOnce)));
    write_prepared(channel, more);
    count += more.size();
    if (more.empty() || has_written() || !is_of_segment(more.front().error)) break;
  }
  if (count == 0) return 0;
  did = true;
  const bool goes_on = has_written() || has_only_others();
  prepared({headers, count}, goes_on);
  if (goes_on) changed_room();
  for (const NextHeader& header : std::span(headers, count))
    if (header.error != 0 && !(goes_on && is_of_segment(header.error))) return header.error;
  return 0;
}

// Are the segments that are being prepared the only free ones, and are others ready or emptied?
bool Log::has_only_others() {
  sys::LockGuard scope(lock_);
  return free_count_ == 0 && ready_count_ + emptied_count_ > 0;
}

size_t Log::choose_to_prepare(std::span<NextHeader> to) {
  size_t count = 0;
  sys::LockGuard scope(lock_);
  const uint32_t wanted = ready_wanted();
  for (uint32_t looked = 0; ready_count_ + count < wanted && free_count_ > 0 && looked < segment_count_;
       ++looked) {
    const uint32_t index = next_free_;
    next_free_ = (next_free_ + 1) % segment_count_;
    if (segments_[index].state.load(std::memory_order_relaxed) != Segment::State::kFree) continue;
    segments_[index].state.store(Segment::State::kPreparing, std::memory_order_relaxed);
    --free_count_;
    ++preparing_count_;
    to[count++] = {.segment = index, .generation = ++generation_};
  }
  return count;
}

// After an error a segment is as free as it was, whichever header is on the medium: no record has the new generation.
void Log::prepared(std::span<const NextHeader> headers, bool puts_off) {
  sys::LockGuard scope(lock_);
  for (const NextHeader& header : headers) {
    Segment& segment = segments_[header.segment];
    segment.generation.store(header.generation, std::memory_order_relaxed);
    --preparing_count_;
    if (header.error == 0) {
      ++ready_count_;
      segment.state.store(Segment::State::kReady, std::memory_order_relaxed);
    } else if (puts_off && is_of_segment(header.error)) {
      ++emptied_count_;
      segment.is_void.store(true, std::memory_order_relaxed);
      segment.state.store(Segment::State::kEmptied, std::memory_order_release);
      put_off(segment);
    } else {
      ++free_count_;
      segment.state.store(Segment::State::kFree, std::memory_order_relaxed);
    }
  }
}

base::Expected<void> Log::map_entries(Segment& segment) {
  auto memory = sys::map_anonymous(entries_bytes(identity_->geometry), "the summary of a segment");
  if (!memory) return std::unexpected(memory.error());
  segment.entries = reinterpret_cast<SummaryEntry*>(*memory);
  return {};
}

void Log::unmap_entries(Segment& segment) {
  sys::unmap(segment.entries, entries_bytes(identity_->geometry));
  segment.entries = nullptr;
}

void Log::write_prepared(Channel& channel, std::span<NextHeader> headers) {
  for (NextHeader& header : headers) {
    Segment& segment = segments_[header.segment];
    if (segment.entries != nullptr) continue;
    if (!map_entries(segment)) header.error = ENOMEM;
  }
  for (const NextHeader& header : headers) find_room(channel, header.segment);
  write_headers(channel, headers, SegmentState::kUsed, kFirst | kLast);
  if (const int error = headers.empty() ? 0 : flush(channel); error != 0)
    for (NextHeader& header : headers) header.error = error;
}

// Fills a segment's holes in a file. Otherwise each record's write would have to allocate room in the file system, one after the other, and a put
// would cost ten times as much. Errors are not reported: whoever writes a record there meets them again.
void Log::find_room(Channel& channel, uint32_t segment) {
  const Geometry& geometry = identity_->geometry;
  // The headers at both ends have room already.
  const uint64_t begin = geometry.segment_offset(segment) + kHeaderRoomBytes;
  const uint64_t end = geometry.segment_offset(segment + 1) - kHeaderRoomBytes;
  if (channel.has_room_at(begin, end - begin)) return;
  auto memory = sys::map_anonymous(kZeroBytes, "zeros");
  if (!memory) return;
  const std::span zeros(reinterpret_cast<const std::byte*>(*memory), kZeroBytes);
  int error = 0;
  for (uint64_t at = begin; at < end && error == 0; at += kZeroBytes) {
    error = channel.write(at, zeros.first(std::min(kZeroBytes, end - at)));
    meanwhile();
  }
  sys::unmap(*memory, kZeroBytes);
}

// Writes them all in one batch, except those of segments that have had an error other than the medium's.
void Log::write_headers(Channel& channel, std::span<NextHeader> headers, SegmentState state, unsigned which) {
  const Geometry& geometry = identity_->geometry;
  const size_t bytes = headers.size() * geometry.grain_bytes;
  if (bytes == 0) return;
  auto memory = sys::map_anonymous(bytes, "headers of segments");
  if (!memory) {
    for (NextHeader& header : headers) header.error = ENOMEM;
    return;
  }
  storage::Io ios[2 * kPreparedAtOnce];
  storage::Io* batch[2 * kPreparedAtOnce];
  NextHeader* of[2 * kPreparedAtOnce];
  iovec pieces[kPreparedAtOnce];
  size_t count = 0;
  for (size_t i = 0; i < headers.size(); ++i) {
    if (headers[i].error != 0 && !is_of_medium(headers[i].error)) continue;
    const std::span header(reinterpret_cast<std::byte*>(*memory) + i * geometry.grain_bytes,
                           geometry.grain_bytes);
    write_segment_header(*identity_,
                         {.generation = headers[i].generation,
                          .state = state,
                          .opened_sequence = sequence_.load(std::memory_order_relaxed),
                          .floor = floor()},
                         header);
    pieces[i] = {header.data(), header.size()};
    for (const size_t end : {0, 1}) {
      if ((which & (1u << end)) == 0) continue;
      storage::Io& io = ios[count];
      io.operation = storage::Operation::kWrite;
      of[count] = &headers[i];
      io.offset_bytes = geometry.header_offsets(headers[i].segment)[end];
      io.segments = &pieces[i];
      io.segment_count = 1;
      io.length_bytes = header.size();
      batch[count++] = &io;
    }
  }
  channel.run({batch, count});
  sys::unmap(*memory, bytes);
  for (size_t i = 0; i < count; ++i) {
    if (ios[i].whole())
      of[i]->is_there = true;
    else if (of[i]->error == 0)
      of[i]->error = ios[i].error != 0 ? ios[i].error : EIO;
  }
}

// --- summaries ---

int Log::seal(Channel& channel, bool& did) {
  uint32_t chosen[kSealedAtOnce];
  uint32_t count = 0;
  for (uint32_t i = 0; i < segment_count_ && count < kSealedAtOnce; ++i)
    // Pairs with the release in leave(): what its writers stored is seen.
    if (segments_[i].state.load(std::memory_order_acquire) == Segment::State::kFull &&
        segments_[i].writers.load(std::memory_order_seq_cst) == 0)
      chosen[count++] = i;
  if (count == 0) return 0;
  did = true;
  if (const int error = flush(channel); error != 0) return error;
  int first_error = 0;
  for (const uint32_t index : std::span(chosen, count)) {
    Segment& segment = segments_[index];
    const int error = write_summary_of(channel, index, {segment.entries, segment.entry_count});
    if (error == 0) {
      sealed(segment);
    } else if (is_of_segment(error)) {
      sys::LockGuard scope(lock_);
      put_off(segment);
      has_new_victims_ = true;
      segment.state.store(Segment::State::kUnsealed, std::memory_order_release);
    } else if (first_error == 0) {
      first_error = error;
    }
    meanwhile();
  }
  collector_wanted.notify_all();
  return first_error;
}

void Log::sealed(Segment& segment) {
  unmap_entries(segment);
  segment.has_old_copies.store(false, std::memory_order_relaxed);
  sys::LockGuard scope(lock_);
  count_ends(segment, true);
  end_put_off(segment);
  has_new_victims_ = true;
  segment.state.store(Segment::State::kSealed, std::memory_order_release);
}

int Log::write_summary_of(Channel& channel, uint32_t index, std::span<const SummaryEntry> entries) {
  const Geometry& geometry = identity_->geometry;
  const Segment& segment = segments_[index];
  const uint32_t grains = summary_grains(geometry, entries.size());
  const uint64_t bytes = uint64_t{grains} * geometry.grain_bytes;
  auto memory = sys::map_anonymous(bytes, "the summary of a segment");
  if (!memory) return ENOMEM;
  const std::span to(reinterpret_cast<std::byte*>(*memory), bytes);
  memcpy(to.data(), entries.data(), entries.size_bytes());
  SegmentFooter footer = {.generation = segment.generation.load(std::memory_order_relaxed),
                          .sealed_generation = taken_generation(),
                          .used_grains = segment.used_grains,
                          .first_expiry = segment.first_expiry.load(std::memory_order_relaxed)};
  describe(entries, footer);
  write_summary(*identity_, footer, to);
  const int error = channel.write(geometry.segment_offset(index + 1) - bytes, to);
  sys::unmap(*memory, bytes);
  return error;
}

}  // namespace kv
