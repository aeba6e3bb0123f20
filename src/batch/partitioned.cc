#include "batch/partitioned.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/check.h"
#include "batch/table.h"
#include "sys/barrier.h"
#include "sys/streaming.h"

namespace batch {
namespace {

// Of the table, that a region's changes are made in: what stays in the cache that a processor has for itself while they are.
constexpr uint64_t kRegionTableBytes = 256 << 10;
// Of a lane, for a region: less is not worth a visit of so much of the table.
constexpr uint64_t kRegionLaneBytes = 4 << 10;
constexpr uint32_t kMixed = 1 << 8;
constexpr uint32_t kChunk = 128;
constexpr uint64_t kDeltaMax = ~uint32_t{0};
constexpr uint32_t kScannedMost = 64;

// To or from a line, which its owner may be changing while others copy it: they find out afterwards (look()). A race by design, of words that no one
// relies on then.
__attribute__((no_sanitize("thread"))) void copy_open(std::byte* to, const std::byte* from, uint64_t bytes) {
  for (; bytes >= sizeof(uint64_t);
       bytes -= sizeof(uint64_t), to += sizeof(uint64_t), from += sizeof(uint64_t))
    __builtin_memcpy(to, from, sizeof(uint64_t));
  for (; bytes > 0; --bytes) *to++ = *from++;
}

}  // namespace

// Of a region in a lane.
struct Partitioned::Region {
  std::atomic<uint32_t> count{0};  // staged; the owner's
  uint32_t made = 0;               // the first ones, in the table already; under the region's lock
  uint64_t begin_stamp = 0;        // of the first one; published by count
  // That of all, or kMixed: they have different ones.
  std::atomic<uint32_t> code{0};
};

struct Partitioned::Lane final : StagingLane {
  std::atomic<uint64_t> call_stamp{0};  // of the call that is under way; 0: none is
  bool is_free = false;                 // under lanes_lock_
  HugeMemory memory;
  std::byte* lines = nullptr;
  Region* regions = nullptr;
  std::byte* buffers = nullptr;
  uint32_t* stamps = nullptr;
  uint8_t* codes = nullptr;
};

// What a lane has in a region, as it is to be seen by who has its lock. Set by look().
struct Partitioned::Part {
  Region* region;
  const std::byte* buffer;
  const uint32_t* stamps;
  const uint8_t* codes;  // null: `code` is that of all
  uint8_t code;
  uint32_t at, end;     // entries
  uint64_t line_begin;  // bytes from here on are in the line
  alignas(base::kLineBytes) std::byte line[base::kLineBytes];

  uint64_t stamp() const { return region->begin_stamp + stamps[at]; }
  void copy(uint32_t index, uint32_t record_bytes, std::byte* to, uint32_t bytes) const {
    const uint64_t first = uint64_t{index} * record_bytes;
    const uint64_t before = first >= line_begin ? 0 : std::min<uint64_t>(bytes, line_begin - first);
    memcpy(to, buffer + first, before);
    if (before < bytes) memcpy(to + before, line + (first + before - line_begin), bytes - before);
  }
};

base::Expected<std::unique_ptr<Staging>> Partitioned::make(const Shape& shape, uint64_t lane_bytes,
                                                           uint64_t key_space, uint64_t home_count,
                                                           bool has_barrier) {
  if (lane_bytes < kLaneBytesMin)
    return base::failure(EINVAL, "what a session stages takes ", kLaneBytesMin, " bytes at least, not ",
                         lane_bytes);
  const uint64_t wanted = home_count * shape.bucket_bytes / kRegionTableBytes;
  const uint64_t count = std::clamp<uint64_t>(wanted, 1, lane_bytes / kRegionLaneBytes);
  std::unique_ptr<Partitioned> made(new (std::nothrow) Partitioned(
      shape, key_space == 0 ? Spread::by_hash(count) : Spread::by_number(key_space, count)));
  if (made == nullptr) return base::failure(ENOMEM, "no memory for what is staged");
  made->streams_ = has_barrier;
  const uint64_t each = shape.record_bytes() + sizeof(uint32_t) + sizeof(uint8_t);
  const uint64_t region_bytes = lane_bytes / count - base::kLineBytes - sizeof(Region);
  made->capacity_ = static_cast<uint32_t>(std::min<uint64_t>(region_bytes / each, kMixed << 16));
  made->buffer_bytes_ = base::round_up(uint64_t{made->capacity_} * shape.record_bytes(), base::kLineBytes);
  if (auto opened = made->locks_memory_.open(count * sizeof(sys::Mutex), "the locks of regions"); !opened)
    return std::unexpected(opened.error());
  made->locks_ = made->locks_memory_.at<sys::Mutex>(0);  // of zeros: free
  return made;
}

Partitioned::~Partitioned() {
  for (uint32_t i = 0; i < lane_count_.load(std::memory_order_relaxed); ++i) delete lanes_[i];
}

uint64_t Partitioned::memory_bytes() const {
  uint64_t bytes = locks_memory_.bytes();
  const uint32_t count = lane_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) bytes += lanes_[i]->memory.bytes();
  return bytes;
}

base::Expected<StagingLane*> Partitioned::open_lane() {
  sys::LockGuard scope(lanes_lock_);
  const uint32_t count = lane_count_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    if (!lanes_[i]->is_free) continue;
    lanes_[i]->is_free = false;
    return lanes_[i];
  }
  if (count == kLanesMax)
    return base::failure(ENOMEM, "at most ", uint64_t{kLanesMax}, " sessions stage at a time");
  std::unique_ptr<Lane> lane(new (std::nothrow) Lane);
  if (lane == nullptr) return base::failure(ENOMEM, "no memory for what is staged");
  const uint64_t regions = regions_.bucket_count();
  const uint64_t buffers_at = 0, stamps_at = buffers_at + regions * buffer_bytes_;
  const uint64_t lines_at =
      base::round_up(stamps_at + regions * capacity_ * sizeof(uint32_t), base::kLineBytes);
  const uint64_t regions_at = lines_at + regions * base::kLineBytes;
  const uint64_t codes_at = regions_at + regions * sizeof(Region);
  if (auto opened = lane->memory.open(codes_at + regions * capacity_, "what a session stages"); !opened)
    return std::unexpected(opened.error());
  lane->buffers = lane->memory.at<std::byte>(buffers_at);
  lane->stamps = lane->memory.at<uint32_t>(stamps_at);
  lane->lines = lane->memory.at<std::byte>(lines_at);
  lane->regions = lane->memory.at<Region>(regions_at);  // of zeros: empty
  lane->codes = lane->memory.at<uint8_t>(codes_at);
  lanes_[count] = lane.release();
  // Pairs with the acquire of who looks at all lanes.
  lane_count_.store(count + 1, std::memory_order_release);
  return lanes_[count];
}

// What it has staged stays, for who comes next.
void Partitioned::close_lane(StagingLane* lane) {
  sys::LockGuard scope(lanes_lock_);
  static_cast<Lane*>(lane)->is_free = true;
}

bool Partitioned::put(Session& session, Job& job) {
  Lane& lane = *static_cast<Lane*>(session.lane());
  const uint32_t key_bytes = shape_.key_bytes, record_bytes = shape_.record_bytes();
  const uint64_t stamp = sys::cycle_clock();
  // Relaxed: the counts that follow publish it.
  lane.call_stamp.store(stamp, std::memory_order_relaxed);
  bool has_room = true;
  for (; job.done_count < job.count; ++job.done_count) {
    const std::byte* const key = job.keys + job.done_count * job.key_stride;
    const uint64_t number = regions_.home(load_key(key, key_bytes));
    Region& region = lane.regions[number];
    uint32_t count = region.count.load(std::memory_order_relaxed);
    if (count == capacity_ || (count != 0 && stamp - region.begin_stamp > kDeltaMax)) [[unlikely]] {
      has_room = make_region(session, number);
      if (!has_room) break;
      count = region.count.load(std::memory_order_relaxed);
    }
    const uint32_t code = job.code.byte();
    uint8_t* const codes = lane.codes + number * capacity_;
    if (count == 0) {
      region.begin_stamp = stamp;
      region.code.store(code, std::memory_order_relaxed);
    } else if (const uint32_t known = region.code.load(std::memory_order_relaxed); known != code) {
      if (known != kMixed) memset(codes, static_cast<int>(known), count);
      codes[count] = static_cast<uint8_t>(code);
      // Pairs with the acquire in look(): whoever sees it sees the codes.
      if (known != kMixed) region.code.store(kMixed, std::memory_order_release);
    }
    lane.stamps[number * capacity_ + count] = static_cast<uint32_t>(stamp - region.begin_stamp);
    std::byte record[kRecordBytesMax];
    memcpy(record, key, key_bytes);
    if (job.given != nullptr)
      memcpy(record + key_bytes, job.given + job.done_count * job.given_stride, shape_.value_bytes);
    const uint64_t at = uint64_t{count} * record_bytes, in_line = at % base::kLineBytes;
    std::byte* const line = lane.lines + number * base::kLineBytes;
    const uint64_t first = std::min<uint64_t>(record_bytes, base::kLineBytes - in_line);
    copy_open(line + in_line, record, first);
    if (in_line + first == base::kLineBytes) {
      std::byte* const to = lane.buffers + number * buffer_bytes_ + (at - in_line);
      streams_ ? sys::stream_line(to, line) : static_cast<void>(memcpy(to, line, base::kLineBytes));
      copy_open(line, record + first, record_bytes - first);
    }
    // Pairs with the acquire in look().
    region.count.store(count + 1, std::memory_order_release);
  }
  sys::drain_streams();
  // Pairs with the acquire in look(): who sees that it has ended sees all of it.
  lane.call_stamp.store(0, std::memory_order_release);
  return has_room;
}

// False: there is nothing. REQUIRES: the region's lock.
bool Partitioned::look(Lane& lane, uint64_t number, const Lane* own, Part& part) const {
  Region& region = lane.regions[number];
  uint32_t count = region.count.load(std::memory_order_acquire);
  if (count == region.made) return false;
  part.region = &region;
  part.buffer = lane.buffers + number * buffer_bytes_;
  part.stamps = lane.stamps + number * capacity_;
  part.at = region.made;
  const std::byte* const line = lane.lines + number * base::kLineBytes;
  for (bool has_changed = false;;) {
    const uint64_t call_stamp = &lane == own ? 0 : lane.call_stamp.load(std::memory_order_acquire);
    part.end = count;
    while (call_stamp != 0 && part.end > part.at &&
           region.begin_stamp + part.stamps[part.end - 1] >= call_stamp)
      --part.end;
    part.line_begin = base::round_down(uint64_t{count} * shape_.record_bytes(), base::kLineBytes);
    if (streams_ && (part.end < count || has_changed)) sys::process_barrier();  // step 3
    copy_open(part.line, line, base::kLineBytes);
    std::atomic_thread_fence(std::memory_order_acquire);
    const uint32_t now = region.count.load(std::memory_order_acquire);
    if (now == count) break;
    count = now;
    has_changed = true;
  }
  // Of entries behind the count they may be mixed, too.
  const uint32_t code = region.code.load(std::memory_order_acquire);
  part.codes = code == kMixed ? lane.codes + number * capacity_ : nullptr;
  part.code = static_cast<uint8_t>(code);
  return part.at < part.end;
}

// Those of all lanes that have some. REQUIRES: the region's lock.
uint32_t Partitioned::look_at_all(uint64_t number, const Lane* own, Part* parts) const {
  uint32_t found = 0;
  // Pairs with the release in open_lane().
  const uint32_t count = lane_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) found += look(*lanes_[i], number, own, parts[found]);
  return found;
}

// Those of the caller's own lane alone, where they are.
bool Partitioned::make_own(Session& session, Lane& own, uint64_t number, Part& part) const {
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

// By their stamps.
bool Partitioned::make_merged(Session& session, std::span<Part> parts) const {
  const uint32_t record_bytes = shape_.record_bytes();
  std::byte records[kChunk * kRecordBytesMax];
  uint8_t codes[kChunk];
  Region* from[kChunk];
  for (;;) {
    uint32_t count = 0;
    for (; count < kChunk; ++count) {
      Part* oldest = nullptr;
      for (Part& part : parts)
        if (part.at < part.end && (oldest == nullptr || part.stamp() < oldest->stamp())) oldest = &part;
      if (oldest == nullptr) break;
      oldest->copy(oldest->at, record_bytes, records + count * record_bytes, record_bytes);
      codes[count] = oldest->codes == nullptr ? oldest->code : oldest->codes[oldest->at];
      from[count] = oldest->region;
      ++oldest->at;
    }
    if (count == 0) return true;
    Job job{.count = count,
            .keys = records,
            .given = records + shape_.key_bytes,
            .key_stride = record_bytes,
            .given_stride = record_bytes,
            .codes = codes};
    session.apply_staged(job);
    for (size_t i = 0; i < job.done_count; ++i) ++from[i]->made;
    if (job.done_count < count) return false;
  }
}

bool Partitioned::make_region(Session& session, uint64_t number) {
  Lane* const own = static_cast<Lane*>(session.lane());
  sys::LockGuard scope(locks_[number]);
  Part parts[kLanesMax];
  const uint32_t count = look_at_all(number, own, parts);
  const bool is_own = count == 1 && own != nullptr && parts[0].region == &own->regions[number];
  if (!(is_own ? make_own(session, *own, number, parts[0]) : make_merged(session, {parts, count})))
    return false;
  // Step 4.
  if (own == nullptr ||
      own->regions[number].made != own->regions[number].count.load(std::memory_order_relaxed))
    return true;
  own->regions[number].made = 0;
  own->regions[number].count.store(0, std::memory_order_relaxed);
  return true;
}

// May a change of the key be staged? Where there are many the answer is yes.
bool Partitioned::may_have(uint64_t number, const Key& key, const Lane* own) {
  sys::LockGuard scope(locks_[number]);
  Part parts[kLanesMax];
  const uint32_t count = look_at_all(number, own, parts);
  for (const Part& part : std::span(parts, count)) {
    if (part.end - part.at > kScannedMost) return true;
    for (uint32_t i = part.at; i < part.end; ++i) {
      std::byte there[kKeyBytesMax];
      part.copy(i, shape_.record_bytes(), there, shape_.key_bytes);
      if (load_key(there, shape_.key_bytes) == key) return true;
    }
  }
  return false;
}

bool Partitioned::settle(Session& session, const Job& job) {
  for (size_t i = 0; i < job.count; ++i) {
    const Key key = load_key(job.keys + i * job.key_stride, shape_.key_bytes);
    const uint64_t number = regions_.home(key);
    if (may_have(number, key, static_cast<Lane*>(session.lane())) && !make_region(session, number))
      return false;
  }
  return true;
}

bool Partitioned::flush(Session& session) {
  for (uint64_t number = 0; number < regions_.bucket_count(); ++number)
    if (!make_region(session, number)) return false;
  return true;
}

}  // namespace batch
