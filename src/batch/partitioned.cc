#include "batch/partitioned.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/check.h"
#include "batch/sizes.h"
#include "batch/table.h"
#include "sys/barrier.h"
#include "sys/streaming.h"

namespace batch {
namespace {

// How much of the table belongs to a region: it should stay in a processor's own cache while the changes are made.
constexpr uint64_t kRegionTableBytes = 256 << 10;
// How much of an area belongs to a region at least: for fewer changes it does not pay to go through so much of the table.
constexpr uint64_t kRegionAreaBytes = 4 << 10;
constexpr uint32_t kMixed = 1 << 8;
constexpr uint32_t kChunk = 128;
constexpr uint64_t kMaxDelta = ~uint32_t{0};
constexpr uint32_t kMaxScanned = 64;
constexpr uint64_t kLinesPerChange = 4;
constexpr uint64_t kNoStamp = ~uint64_t{0};
constexpr uint32_t kNone = ~uint32_t{0};

// Copies to or from an open line, which its owner may change while others copy it. This is an intended race: look() finds out afterwards whether the line
// was overwritten, and then does not use the copy.
__attribute__((no_sanitize("thread"))) void copy_open(std::byte* to, const std::byte* from, uint64_t bytes) {
  for (; bytes >= sizeof(uint64_t);
       bytes -= sizeof(uint64_t), to += sizeof(uint64_t), from += sizeof(uint64_t))
    __builtin_memcpy(to, from, sizeof(uint64_t));
  for (; bytes > 0; --bytes) *to++ = *from++;
}

}  // namespace

// A region's part of an area.
struct Partitioned::Region {
  std::atomic<uint32_t> count{0};  // of staged changes; only the owner changes it
  uint32_t made = 0;  // the first `made` of them are in the table already; under the region's lock
  // The first change that has a stamp (all later ones have stamps, too), and its stamp; both published by count. kNone: no change has one.
  std::atomic<uint32_t> first_stamped{0};
  uint64_t begin_stamp = 0;
  // The code of all changes; kMixed: they have different codes.
  std::atomic<uint32_t> code{0};
};

struct Partitioned::Area final : StagingArea {
  std::atomic<uint64_t> call_stamp{0};  // of the call under way; 0: there is none
  bool is_free = false;                 // under areas_lock_
  HugeMemory memory;
  std::byte* lines = nullptr;  // two for each region, which take turns: the open one, and the one before
  Region* regions = nullptr;
  std::byte* buffers = nullptr;
  uint32_t* stamps = nullptr;
  uint8_t* codes = nullptr;

  // The line that holds the bytes at this offset in region `number`'s buffer until they are streamed there.
  std::byte* line(uint64_t number, uint64_t offset_bytes) const {
    return lines + (2 * number + (offset_bytes / base::kLineBytes & 1)) * base::kLineBytes;
  }
};

// What an area has staged for a region, as look() has found it for the thread that holds the region's lock.
struct Partitioned::Part {
  Region* region;
  const std::byte* buffer;
  const uint32_t* stamps;
  const uint8_t* codes;  // null: all have `code`
  uint8_t code;
  uint32_t at, end;  // the changes [at, end) have to be made
  uint32_t first_stamped;
  // For a merge: the stamp of change `at`, or kNoStamp at the end; and the value of `at` when the current chunk began.
  uint64_t next_stamp;
  uint32_t begin;
  uint64_t line_begin;  // bytes from here on are in `line`, the others in the buffer
  alignas(base::kLineBytes) std::byte line[base::kLineBytes];

  // The stamp of change `at`. 0: it has none, and is older than all changes that have one.
  uint64_t stamp() const { return at < first_stamped ? 0 : region->begin_stamp + stamps[at]; }
  // Copies the first `bytes` of a record.
  [[gnu::always_inline]] void copy(uint32_t index, uint32_t record_bytes, std::byte* to,
                                   uint32_t bytes) const {
    const uint64_t first = uint64_t{index} * record_bytes;
    if (first + bytes <= line_begin) [[likely]] {
      __builtin_memcpy(to, buffer + first, bytes);
      return;
    }
    const uint64_t before = first >= line_begin ? 0 : std::min<uint64_t>(bytes, line_begin - first);
    memcpy(to, buffer + first, before);
    if (before < bytes) memcpy(to + before, line + (first + before - line_begin), bytes - before);
  }
};

base::Expected<std::unique_ptr<Staging>> Partitioned::make(const Shape& shape, uint64_t area_bytes,
                                                           uint64_t key_space, uint64_t home_count,
                                                           bool has_barrier) {
  if (area_bytes < kMinAreaBytes)
    return base::failure(EINVAL, "what a session stages takes ", kMinAreaBytes, " bytes at least, not ",
                         area_bytes);
  const uint64_t wanted = home_count * shape.bucket_bytes / kRegionTableBytes;
  const uint64_t count = std::clamp<uint64_t>(wanted, 1, area_bytes / kRegionAreaBytes);
  std::unique_ptr<Partitioned> made(new (std::nothrow) Partitioned(shape, Spread::of(key_space, count)));
  if (made == nullptr) return base::failure(ENOMEM, "no memory for what is staged");
  made->streams_ = has_barrier;
  const auto set = [&]<class Sizes>(Sizes) {
    made->put_ = &Partitioned::put_all<Sizes>;
    made->make_merged_ = &Partitioned::make_merged<Sizes>;
  };
  if (!with_common_sizes(shape, set)) with_sizes<AnySizes>(shape, set);
  const uint64_t region_bytes = area_bytes / count - 2 * base::kLineBytes - sizeof(Region);
  made->capacity_ = static_cast<uint32_t>(std::min<uint64_t>(region_bytes / shape.record_bytes(), kNone - 1));
  made->buffer_bytes_ = base::round_up(uint64_t{made->capacity_} * shape.record_bytes(), base::kLineBytes);
  if (auto opened = made->locks_memory_.open(count * sizeof(sys::Mutex), "the locks of regions"); !opened)
    return std::unexpected(opened.error());
  made->locks_ = made->locks_memory_.at<sys::Mutex>(0);  // zeros, that is unlocked
  return made;
}

Partitioned::~Partitioned() {
  for (uint32_t i = 0; i < area_count_.load(std::memory_order_relaxed); ++i) delete areas_[i];
}

uint64_t Partitioned::memory_bytes() const {
  uint64_t bytes = locks_memory_.bytes();
  const uint32_t count = area_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) bytes += areas_[i]->memory.bytes();
  return bytes;
}

base::Expected<StagingArea*> Partitioned::open_area() {
  sys::LockGuard scope(areas_lock_);
  const uint32_t count = area_count_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    if (!areas_[i]->is_free) continue;
    areas_[i]->is_free = false;
    return areas_[i];
  }
  if (count == kMaxAreas)
    return base::failure(ENOMEM, "at most ", uint64_t{kMaxAreas}, " sessions stage at a time");
  std::unique_ptr<Area> area(new (std::nothrow) Area);
  if (area == nullptr) return base::failure(ENOMEM, "no memory for what is staged");
  const uint64_t regions = regions_.bucket_count();
  const uint64_t buffers_at = 0, stamps_at = buffers_at + regions * buffer_bytes_;
  const uint64_t lines_at =
      base::round_up(stamps_at + regions * capacity_ * sizeof(uint32_t), base::kLineBytes);
  const uint64_t regions_at = lines_at + regions * 2 * base::kLineBytes;
  const uint64_t codes_at = regions_at + regions * sizeof(Region);
  if (auto opened = area->memory.open(codes_at + regions * capacity_, "what a session stages"); !opened)
    return std::unexpected(opened.error());
  area->buffers = area->memory.at<std::byte>(buffers_at);
  area->stamps = area->memory.at<uint32_t>(stamps_at);
  area->lines = area->memory.at<std::byte>(lines_at);
  area->regions = area->memory.at<Region>(regions_at);  // zeros, that is empty
  area->codes = area->memory.at<uint8_t>(codes_at);
  areas_[count] = area.release();
  if (count == 1) begin_stamps();
  // Pairs with the acquire in look_at_all() and staged_count().
  area_count_.store(count + 1, std::memory_order_release);
  return areas_[count];
}

// Called before the second area is used: from now on changes need stamps. What the first area has staged so far is older than all that others will stage.
void Partitioned::begin_stamps() {
  has_stamps_.store(true, std::memory_order_relaxed);
  sys::pass_seldom(streams_);  // the other side is pass_often() in put()
  // Waits for the end of a call that may not have seen has_stamps_, before others stage anything. Pairs with the release in put().
  const std::atomic<uint64_t>& call_stamp = areas_[0]->call_stamp;
  const uint64_t under_way = call_stamp.load(std::memory_order_acquire);
  while (under_way != 0 && call_stamp.load(std::memory_order_acquire) == under_way) sched_yield();
}

// What is staged stays in the area; the next session that needs an area takes this one over.
void Partitioned::close_area(StagingArea* area) {
  sys::LockGuard scope(areas_lock_);
  static_cast<Area*>(area)->is_free = true;
}

Staged Partitioned::put(Session& session, Job& job) {
  Area& area = *static_cast<Area*>(session.area());
  const uint64_t stamp = sys::cycle_clock();
  // Relaxed: the counts, which are stored after it, publish it; and see begin_stamps().
  area.call_stamp.store(stamp, std::memory_order_relaxed);
  sys::pass_often(streams_);
  const bool has_room =
      (this->*put_)(session, job, area, has_stamps_.load(std::memory_order_relaxed) ? stamp : 0);
  sys::drain_streams();
  // Pairs with the acquire in look(): a thread that sees that the call has ended sees all that the call has staged.
  area.call_stamp.store(0, std::memory_order_release);
  return has_room ? Staged::kDone : Staged::kNoRoom;
}

// `stamp` 0: the changes get no stamps. False: a region is full, and the table has no room for its changes.
template <class Sizes>
bool Partitioned::put_all(Session& session, Job& job, Area& area, uint64_t stamp) {
  const Sizes sizes(shape_);
  const uint32_t code = job.code.byte();
  for (; job.done_count < job.count; ++job.done_count) {
    const std::byte* const key = job.keys + job.done_count * job.key_stride;
    const uint64_t number = regions_.home(load_key(key, sizes.key_bytes()));
    Region& region = area.regions[number];
    uint32_t count = region.count.load(std::memory_order_relaxed);
    if (count == capacity_ ||
        (stamp != 0 && count != 0 && region.first_stamped.load(std::memory_order_relaxed) != kNone &&
         stamp - region.begin_stamp > kMaxDelta)) [[unlikely]] {
      if (!make_region(session, number)) return false;
      count = region.count.load(std::memory_order_relaxed);
    }
    if (count == 0) {
      region.first_stamped.store(kNone, std::memory_order_relaxed);
      region.code.store(code, std::memory_order_relaxed);
    } else if (const uint32_t known = region.code.load(std::memory_order_relaxed); known != code)
        [[unlikely]] {
      note_code(region, area.codes + number * capacity_, count, code);
    }
    if (stamp != 0) {
      if (region.first_stamped.load(std::memory_order_relaxed) == kNone) {
        region.begin_stamp = stamp;
        region.first_stamped.store(count, std::memory_order_relaxed);
      }
      area.stamps[number * capacity_ + count] = static_cast<uint32_t>(stamp - region.begin_stamp);
    }
    std::byte record[kMaxRecordBytes];
    __builtin_memcpy(record, key, sizes.key_bytes());
    if (job.given != nullptr)
      __builtin_memcpy(record + sizes.key_bytes(), job.given + job.done_count * job.given_stride,
                       sizes.value_bytes());
    const uint64_t at = uint64_t{count} * sizes.record_bytes(), in_line = at % base::kLineBytes;
    std::byte* const line = area.line(number, at);
    const uint64_t first = std::min<uint64_t>(sizes.record_bytes(), base::kLineBytes - in_line);
    copy_open(line + in_line, record, first);
    if (in_line + first == base::kLineBytes) {
      std::byte* const to = area.buffers + number * buffer_bytes_ + (at - in_line);
      streams_ ? sys::stream_line(to, line) : static_cast<void>(memcpy(to, line, base::kLineBytes));
      copy_open(area.line(number, at + first), record + first, sizes.record_bytes() - first);
    }
    // Pairs with the acquire in look().
    region.count.store(count + 1, std::memory_order_release);
    // Only after the count is stored may the next record overwrite the line before the open one: its readers notice by the count.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  return true;
}

// Notes the code of a change, if it differs from those of the changes before, or if these differ from each other.
void Partitioned::note_code(Region& region, uint8_t* codes, uint32_t count, uint32_t code) {
  const uint32_t known = region.code.load(std::memory_order_relaxed);
  if (known != kMixed) memset(codes, static_cast<int>(known), count);
  codes[count] = static_cast<uint8_t>(code);
  // Pairs with the acquire in look(): a thread that sees kMixed sees the codes.
  if (known != kMixed) region.code.store(kMixed, std::memory_order_release);
}

// Sets `part` to the area's changes in the region that may be made now: those of calls that began before `limit` and have returned; all, if the area is
// `own`. False: there are none. REQUIRES: the region's lock.
bool Partitioned::look(Area& area, uint64_t number, const Area* own, uint64_t limit, Part& part) const {
  Region& region = area.regions[number];
  uint32_t count = region.count.load(std::memory_order_acquire);
  if (count == region.made) return false;
  part.region = &region;
  part.buffer = area.buffers + number * buffer_bytes_;
  part.stamps = area.stamps + number * capacity_;
  part.at = region.made;
  for (bool has_changed = false;;) {
    const uint64_t call_stamp = &area == own ? 0 : area.call_stamp.load(std::memory_order_acquire);
    uint64_t end_stamp = &area == own ? ~uint64_t{0} : limit;
    if (call_stamp != 0) end_stamp = std::min(call_stamp, limit);
    part.first_stamped = region.first_stamped.load(std::memory_order_relaxed);
    part.end = count;
    while (part.end > std::max(part.at, part.first_stamped) &&
           region.begin_stamp + part.stamps[part.end - 1] >= end_stamp)
      --part.end;
    part.line_begin = base::round_down(uint64_t{count} * shape_.record_bytes(), base::kLineBytes);
    // Step 3. Changes without stamps may belong to the call that is under way.
    if (streams_ && (has_changed || (call_stamp != 0 && (part.end < count || part.at < part.first_stamped))))
      sys::process_barrier();
    copy_open(part.line, area.line(number, part.line_begin), base::kLineBytes);
    std::atomic_thread_fence(std::memory_order_acquire);
    const uint32_t now = region.count.load(std::memory_order_acquire);
    if (now == count) break;
    count = now;
    has_changed = true;
  }
  // kMixed may have been set for changes after the count; the codes of those before it are there in that case, too.
  const uint32_t code = region.code.load(std::memory_order_acquire);
  part.codes = code == kMixed ? area.codes + number * capacity_ : nullptr;
  part.code = static_cast<uint8_t>(code);
  return part.at < part.end;
}

// Looks at all areas; fills `parts` from the front, and returns how many there are. REQUIRES: the region's lock.
uint32_t Partitioned::look_at_all(uint64_t number, const Area* own, Part* parts) const {
  uint32_t found = 0;
  // Areas are looked at one after the other. A change of a call that begins later than now may have to follow one in an area that was looked at before
  // that one was staged; so it is left for later.
  const uint64_t limit = sys::cycle_clock();
  sys::finish_loads();
  // Pairs with the release in open_area().
  const uint32_t count = area_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) found += look(*areas_[i], number, own, limit, parts[found]);
  return found;
}

// Fetches the region's buckets into the cache from front to back if most of them are needed: that is faster than fetching each when its turn comes.
void Partitioned::fetch(const Session& session, uint64_t number, uint32_t changes) const {
  const Buckets& buckets = session.buckets();
  const uint64_t begin = buckets.spread().home_of_first(regions_, number),
                 end = buckets.spread().home_of_first(regions_, number + 1);
  if (changes * kLinesPerChange >= (end - begin) * shape_.lines()) buckets.fetch(begin, end);
}

// Makes changes that are all in the caller's own area, without copying them.
bool Partitioned::make_own(Session& session, Area& own, uint64_t number, Part& part) const {
  const uint32_t record_bytes = shape_.record_bytes();
  std::byte* const buffer = own.buffers + number * buffer_bytes_;
  if (part.line_begin < buffer_bytes_) memcpy(buffer + part.line_begin, part.line, base::kLineBytes);
  const std::byte* const first = buffer + uint64_t{part.at} * record_bytes;
  Job job{.code = Code::of(part.code),
          .count = part.end - part.at,
          .keys = first,
          .given = first + shape_.key_bytes,
          .key_stride = record_bytes,
          .given_stride = record_bytes,
          .codes = part.codes == nullptr ? nullptr : part.codes + part.at};
  session.apply_staged(job);
  part.region->made += static_cast<uint32_t>(job.done_count);
  return job.done_count == job.count;
}

// Makes the changes of several areas in the order of their stamps.
template <class Sizes>
bool Partitioned::make_merged(Session& session, std::span<Part> parts) const {
  const Sizes sizes(shape_);
  const uint32_t record_bytes = sizes.record_bytes();
  std::byte records[kChunk * kMaxRecordBytes];
  uint8_t codes[kChunk];
  const Part* from[kChunk];
  for (Part& part : parts) part.next_stamp = part.stamp();
  for (;;) {
    for (Part& part : parts) part.begin = part.at;
    uint32_t count = 0;
    for (; count < kChunk; ++count) {
      // Without a branch that depends on which part it is: nobody could predict it.
      Part* oldest = parts.data();
      for (Part& part : parts.subspan(std::min<size_t>(1, parts.size())))
        oldest = part.next_stamp < oldest->next_stamp ? &part : oldest;
      if (parts.empty() || oldest->next_stamp == kNoStamp) break;
      oldest->copy(oldest->at, record_bytes, records + count * record_bytes, record_bytes);
      codes[count] = oldest->codes == nullptr ? oldest->code : oldest->codes[oldest->at];
      from[count] = oldest;
      ++oldest->at;
      oldest->next_stamp = oldest->at < oldest->end ? oldest->stamp() : kNoStamp;
    }
    if (count == 0) return true;
    Job job{.count = count,
            .keys = records,
            .given = records + sizes.key_bytes(),
            .key_stride = record_bytes,
            .given_stride = record_bytes,
            .codes = codes};
    session.apply_staged(job);
    if (job.done_count < count) {
      for (size_t i = 0; i < job.done_count; ++i) ++from[i]->region->made;
      return false;
    }
    for (const Part& part : parts) part.region->made += part.at - part.begin;
  }
}

bool Partitioned::make_region(Session& session, uint64_t number) {
  Area* const own = static_cast<Area*>(session.area());
  sys::LockGuard scope(locks_[number]);
  Part parts[kMaxAreas];
  const uint32_t count = look_at_all(number, own, parts);
  uint32_t changes = 0;
  for (const Part& part : std::span(parts, count)) changes += part.end - part.at;
  fetch(session, number, changes);
  const bool is_own = count == 1 && own != nullptr && parts[0].region == &own->regions[number];
  if (!(is_own ? make_own(session, *own, number, parts[0]) : (this->*make_merged_)(session, {parts, count})))
    return false;
  // Step 4.
  if (own == nullptr ||
      own->regions[number].made != own->regions[number].count.load(std::memory_order_relaxed))
    return true;
  own->regions[number].made = 0;
  own->regions[number].count.store(0, std::memory_order_relaxed);
  return true;
}

// May a change of the key be staged? If there are too many changes to look at, the answer is yes.
bool Partitioned::may_have(uint64_t number, const Key& key, const Area* own) {
  sys::LockGuard scope(locks_[number]);
  Part parts[kMaxAreas];
  const uint32_t count = look_at_all(number, own, parts);
  for (const Part& part : std::span(parts, count)) {
    if (part.end - part.at > kMaxScanned) return true;
    for (uint32_t i = part.at; i < part.end; ++i) {
      std::byte there[kMaxKeyBytes];
      part.copy(i, shape_.record_bytes(), there, shape_.key_bytes);
      if (load_key(there, shape_.key_bytes) == key) return true;
    }
  }
  return false;
}

Staged Partitioned::settle(Session& session, const Job& job) {
  for (size_t i = 0; i < job.count; ++i) {
    const Key key = load_key(job.keys + i * job.key_stride, shape_.key_bytes);
    const uint64_t number = regions_.home(key);
    if (may_have(number, key, static_cast<Area*>(session.area())) && !make_region(session, number))
      return Staged::kNoRoom;
  }
  return Staged::kDone;
}

Staged Partitioned::flush(Session& session) {
  for (uint64_t number = 0; number < regions_.bucket_count(); ++number)
    if (!make_region(session, number)) return Staged::kNoRoom;
  return Staged::kDone;
}

uint64_t Partitioned::staged_count() const {
  uint64_t count = 0;
  const uint32_t areas = area_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < areas; ++i)
    for (uint64_t number = 0; number < regions_.bucket_count(); ++number) {
      const Region& region = areas_[i]->regions[number];
      count += region.count.load(std::memory_order_relaxed) - region.made;
    }
  return count;
}

}  // namespace batch
