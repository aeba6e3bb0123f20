#include "storage/decorators/stripe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>

#include <bit>

#include "base/check.h"
#include "base/ids.h"
#include "storage/decorators/stripe_map.h"
#include "storage/objects.h"
#include "sys/events.h"
#include "sys/kernel.h"
#include "sys/nap.h"

namespace storage {
namespace {

class StripeDevice final : public Device {
 public:
  StripeDevice(std::span<Device* const> members, uint64_t unit_bytes) : map_{unit_bytes, members.size()} {
    uint64_t least_bytes = ~uint64_t{0};
    base::TextRef name(name_, sizeof name_);
    name << "stripe:[";
    for (size_t i = 0; i < members.size(); ++i) {
      members_[i] = members[i];
      const Device& member = *members[i];
      if (member.end_bytes() < least_bytes) least_bytes = member.end_bytes();
      if (member.block_bytes() > block_bytes_) block_bytes_ = member.block_bytes();
      discards_ = discards_ || member.discards();
      opens_descriptors_ = opens_descriptors_ || member.opens_descriptors();
      name << (i > 0 ? "," : "") << member.name();
    }
    name << "]?unit=" << base::Bytes{unit_bytes};
    capacity_bytes_ = base::round_down(least_bytes, unit_bytes) * members.size();
    copied_by_fork_ = members[0]->is_copied_by_fork();
    layout_ = {.member_count = members.size(), .unit_bytes = unit_bytes};
    counted_ = false;
  }

  const StripeMap& map() const { return map_; }

 private:
  bool do_has_room_at(uint64_t offset_bytes, uint64_t length_bytes) const override {
    for (size_t i = 0; i < map_.member_count; ++i) {
      const StripeMap::Range range = map_.range_on(i, offset_bytes, length_bytes);
      const uint64_t bytes = range.end_bytes - range.begin_bytes;
      if (bytes != 0 && !members_[i]->has_room_at(range.begin_bytes, bytes)) return false;
    }
    return true;
  }
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  void do_close() override {
    for (size_t i = 0; i < map_.member_count; ++i) members_[i]->close();
    free_object(this, 0);
  }

  StripeMap map_;
  Device* members_[kMaxStripeMembers] = {};
};

class StripeQueue;

// A request under way. `Whole`s wait in the queue until all their parts have been made.
struct Whole {
  Io* outer = nullptr;
  Whole* next = nullptr;  // of the free ones
  size_t parts_under_way = 0;
  // The next part to be made is on this member, counted from that of the request's first byte on, and begins at this offset of it.
  size_t member_index = 0;
  uint64_t done_to_bytes = 0;  // 0: where the request begins there
  // The results of the parts that have ended. Positions are offsets in the stripe; for a flush, member numbers.
  uint64_t missing_from_bytes = ~uint64_t{0};  // the first byte that was not transferred
  uint64_t error_at_bytes = ~uint64_t{0};      // of the first part with an error
  int error = 0;                               // of that part
};

// A request to one member.
struct Part {
  Io io;
  StripeQueue* queue = nullptr;
  Whole* whole = nullptr;
  Part* next = nullptr;  // of the free ones
  size_t member = 0;
  iovec segments[kMaxSegments];
};

// Walks forward through the memory of a request.
class Memory {
 public:
  explicit Memory(const Io& io) : io_(io) {}

  // Appends the memory of the request's bytes [at_bytes, at_bytes + length_bytes) to `to`, which has `count` of kMaxSegments segments;
  // returns how many bytes fitted. REQUIRES: at_bytes is not before that of the last call.
  uint64_t append(uint64_t at_bytes, uint64_t length_bytes, iovec* to, uint32_t& count) {
    uint64_t appended_bytes = 0;
    while (appended_bytes < length_bytes) {
      while (begin_bytes_ + io_.segments[index_].iov_len <= at_bytes + appended_bytes)
        begin_bytes_ += io_.segments[index_++].iov_len;
      const iovec& segment = io_.segments[index_];
      const uint64_t inside = at_bytes + appended_bytes - begin_bytes_;
      const uint64_t left = length_bytes - appended_bytes;
      const uint64_t here = segment.iov_len - inside < left ? segment.iov_len - inside : left;
      char* address = static_cast<char*>(segment.iov_base) + inside;
      if (count > 0 && static_cast<char*>(to[count - 1].iov_base) + to[count - 1].iov_len == address) {
        to[count - 1].iov_len += here;
      } else {
        if (count == kMaxSegments) break;
        to[count++] = {address, here};
      }
      appended_bytes += here;
    }
    return appended_bytes;
  }

 private:
  const Io& io_;
  uint32_t index_ = 0;
  uint64_t begin_bytes_ = 0;  // of segments[index_]
};

class StripeQueue final : public Queue {
 public:
  StripeQueue(StripeDevice& device, std::span<Queue* const> queues, size_t depth)
      : Queue(device, depth), map_(device.map()), part_count_(part_count(depth, queues.size())) {
    for (size_t i = 0; i < queues.size(); ++i) queues_[i] = queues[i];
    wholes_ = static_cast<Whole*>(extra_of(this));
    parts_ = reinterpret_cast<Part*>(wholes_ + depth);
  }
  static uint64_t extra_bytes(size_t depth, size_t member_count) {
    return depth * sizeof(Whole) + part_count(depth, member_count) * sizeof(Part);
  }

  // The caller must close the queue even on an error.
  base::Expected<void> open(const QueueUse& use) {
    if (!use.sleeps) return {};
    auto opened = members_told_.open();
    // Without a descriptor it is polled while something is in flight.
    if (!opened && opened.error().number == EMFILE) return {};
    for (size_t member = 0; opened && member < map_.member_count; ++member)
      if (const int descriptor = queues_[member]->quiet().descriptor; descriptor >= 0)
        opened = members_told_.add(descriptor);
    return opened;
  }
  void do_close() override {
    members_told_.close();
    for (size_t member = 0; member < map_.member_count; ++member)
      queues_[member]->device().close_queue(queues_[member]);
    free_object(this, extra_bytes(depth(), map_.member_count));
  }

 private:
  // Enough for requests of one part each, and some of several.
  static size_t part_count(size_t depth, size_t member_count) { return depth + 4 * member_count; }
  static constexpr size_t kMaxBatch = 32;

  void do_start(Io& io) override {
    Whole& whole = take_free(free_wholes_, wholes_, wholes_used_, depth());
    whole = Whole();
    whole.outer = &io;
    append_waiting(whole);
    make_parts();
  }

  // A request that is one part takes the member's shortest way.
  void do_start_alone(Io& io) override {
    do_start(io);
    if (gathered_count_ != 1 || waiting_first_ != nullptr) return;
    for (size_t member = 0; member < map_.member_count; ++member) {
      if (gathered_[member].empty()) continue;
      gathered_count_ = 0;
      queues_[member]->run(gathered_[member].take_first());
    }
  }

  void do_flush_submissions() override {
    for (size_t member = 0; member < map_.member_count; ++member) {
      IoList& gathered = gathered_[member];
      while (!gathered.empty()) {
        Io* batch[kMaxBatch];
        size_t count = 0;
        while (count < kMaxBatch && !gathered.empty()) batch[count++] = &gathered.take_first();
        gathered_count_ -= count;
        CHECK_EQ(queues_[member]->submit({batch, count}), count);  // has_room() ensured it
      }
    }
  }

  void do_poll(bool block) override {
    for (size_t rounds = 0;; ++rounds) {
      make_parts();
      do_flush_submissions();
      size_t busy_count = 0;
      Queue* busy = nullptr;
      for (size_t member = 0; member < map_.member_count; ++member) {
        queues_[member]->poll();
        if (queues_[member]->in_flight_count() == 0) continue;
        ++busy_count;
        busy = queues_[member];
      }
      if (!block || has_completed()) break;
      make_parts();
      if (gathered_count_ > 0) continue;  // there was room
      if (busy_count == 1)
        busy->wait();
      else if (busy_count > 1)
        rest(rounds);
    }
    // Requests that wait take the room that has become free.
    make_parts();
    do_flush_submissions();
  }

  // Quiet until a member has something to complete. Requests that wait for room cannot proceed before that.
  base::Quiet do_quiet() override {
    if (members_told_.descriptor() < 0) return {};
    base::Quiet quiet = {.until_ns = gathered_count_ > 0 ? 0 : base::Quiet::kForever,
                         .descriptor = members_told_.descriptor()};
    for (size_t member = 0; member < map_.member_count; ++member)
      quiet.no_longer_than(queues_[member]->quiet().until_ns);
    return quiet;
  }

  bool do_fix_memory(void* address, uint64_t bytes) override {
    bool fixed = false;
    for (size_t member = 0; member < map_.member_count; ++member)
      fixed = queues_[member]->fix_memory(address, bytes) || fixed;
    return fixed;
  }

  // Spins or naps, since no call waits for several queues at once. (Yielding the CPU would cost a time slice on a busy machine.)
  static void rest(size_t rounds) {
    constexpr size_t kSpins = 64;
    constexpr uint64_t kNapNs = 20'000;
    if (rounds < kSpins)
      __builtin_ia32_pause();
    else
      sys::nap(kNapNs);
  }

  bool has_room(size_t member) const {
    return gathered_[member].count() + queues_[member]->in_flight_count() < queues_[member]->depth();
  }

  // Turns requests that wait into parts, as long as there is room.
  void make_parts() {
    while (waiting_first_ != nullptr && make_parts_of(*waiting_first_)) waiting_first_ = waiting_first_->next;
  }

  // Returns whether all parts have been made.
  bool make_parts_of(Whole& whole) {
    const Io& outer = *whole.outer;
    const bool flush = outer.operation == Operation::kFlush;
    const size_t first = flush ? 0 : map_.member_of(outer.offset_bytes);
    for (; whole.member_index < map_.member_count; ++whole.member_index, whole.done_to_bytes = 0) {
      const size_t member = (first + whole.member_index) % map_.member_count;
      auto [at, end] =
          flush ? StripeMap::Range{0, 1} : map_.range_on(member, outer.offset_bytes, outer.length_bytes);
      if (whole.done_to_bytes > at) at = whole.done_to_bytes;
      Memory memory(outer);
      while (at < end) {
        if (!has_room(member) || (free_parts_ == nullptr && parts_used_ == part_count_)) return false;
        Part& part = take_free(free_parts_, parts_, parts_used_, part_count_);
        part.queue = this;
        part.whole = &whole;
        part.member = member;
        part.io = Io();
        part.io.operation = outer.operation;
        part.io.owner = &part;
        part.io.done = [](Io& io) {
          static_cast<Part*>(io.owner)->queue->end_part(*static_cast<Part*>(io.owner));
        };
        if (flush) {
          ++at;
        } else {
          part.io.offset_bytes = at;
          at = fill(part, memory, at, end);
          part.io.length_bytes = at - part.io.offset_bytes;
        }
        whole.done_to_bytes = at;
        ++whole.parts_under_way;
        gathered_[member].append(part.io);
        ++gathered_count_;
      }
    }
    return true;
  }

  // Gives the part as much of the member's [at, end) as its segments have room for; returns where that ends.
  uint64_t fill(Part& part, Memory& memory, uint64_t at, uint64_t end) const {
    const Io& outer = *part.whole->outer;
    if (outer.operation == Operation::kDiscard) return end;
    part.io.segments = part.segments;
    while (at < end) {
      const uint64_t unit_end = base::round_down(at, map_.unit_bytes) + map_.unit_bytes;
      const uint64_t piece_bytes = (unit_end < end ? unit_end : end) - at;
      const uint64_t taken_bytes = memory.append(map_.offset_of(part.member, at) - outer.offset_bytes,
                                                 piece_bytes, part.segments, part.io.segment_count);
      at += taken_bytes;
      if (taken_bytes < piece_bytes) break;
    }
    return at;
  }

  // Called when a part has completed.
  void end_part(Part& part) {
    Whole& whole = *part.whole;
    const Io& io = part.io;
    if (!io.whole()) {
      const bool flush = io.operation == Operation::kFlush;
      const uint64_t from =
          flush ? part.member : map_.offset_of(part.member, io.offset_bytes + io.transferred_bytes);
      if (from < whole.missing_from_bytes) whole.missing_from_bytes = from;
      if (io.error != 0 && from < whole.error_at_bytes) {
        whole.error_at_bytes = from;
        whole.error = io.error;
      }
    }
    part.next = free_parts_;
    free_parts_ = &part;
    --whole.parts_under_way;
    if (whole.parts_under_way > 0 || whole.member_index < map_.member_count) return;

    Io& outer = *whole.outer;
    outer.error = whole.error;
    if (whole.missing_from_bytes == ~uint64_t{0})
      outer.transferred_bytes = outer.length_bytes;
    else
      outer.transferred_bytes =
          outer.operation == Operation::kFlush ? 0 : whole.missing_from_bytes - outer.offset_bytes;
    whole.next = free_wholes_;
    free_wholes_ = &whole;
    complete_as_is(outer);
  }

  void append_waiting(Whole& whole) {
    (waiting_first_ == nullptr ? waiting_first_ : waiting_last_->next) = &whole;
    waiting_last_ = &whole;
  }

  // Takes the first free element, or else one that was never used: so no more memory is touched than the most elements in use at once need.
  template <class T>
  static T& take_free(T*& free, T* all, size_t& used_count, size_t count) {
    if (free != nullptr) {
      T& taken = *free;
      free = taken.next;
      return taken;
    }
    CHECK_LT(used_count, count);
    return *new (&all[used_count++]) T;
  }

  const StripeMap& map_;
  sys::EventSet members_told_;  // the members' descriptors; open only if the queue's user sleeps
  Queue* queues_[kMaxStripeMembers] = {};
  IoList gathered_[kMaxStripeMembers];  // parts to be submitted
  size_t gathered_count_ = 0;           // of all members
  Whole* waiting_first_ = nullptr;
  Whole* waiting_last_ = nullptr;
  Whole* wholes_;
  Whole* free_wholes_ = nullptr;
  size_t wholes_used_ = 0;
  Part* parts_;
  Part* free_parts_ = nullptr;
  size_t parts_used_ = 0;
  const size_t part_count_;
};

base::Expected<Queue*> StripeDevice::do_open_queue(size_t depth, const QueueUse& use) {
  Queue* queues[kMaxStripeMembers];
  const size_t count = map_.member_count;
  size_t open_count = 0;
  auto close_all = [&] {
    while (open_count > 0) {
      --open_count;
      members_[open_count]->close_queue(queues[open_count]);
    }
  };
  while (open_count < count) {
    auto queue = members_[open_count]->open_queue(depth, use);
    if (!queue) {
      close_all();
      return queue;
    }
    queues[open_count++] = *queue;
  }
  auto queue = make_object<StripeQueue>(StripeQueue::extra_bytes(depth, count), "a storage queue", *this,
                                        std::span<Queue* const>(queues, count), depth);
  if (!queue) {
    close_all();
    return std::unexpected(queue.error());
  }
  auto opened = (*queue)->open(use);
  if (opened) return *queue;
  (*queue)->do_close();
  return std::unexpected(opened.error());
}

// Two paths to the same file or device: members would overwrite each other's data.
bool are_one_medium(const Device& one, const Device& other) {
  struct statx facts[2] = {};
  const int descriptors[2] = {one.whereabouts().descriptor, other.whereabouts().descriptor};
  for (int i : {0, 1}) {
    if (descriptors[i] < 0) return false;
    if (sys::failed(sys::syscall(SYS_statx, descriptors[i], "", AT_EMPTY_PATH, STATX_BASIC_STATS, &facts[i])))
      return false;
  }
  if ((facts[0].stx_mode & S_IFMT) == S_IFBLK && (facts[1].stx_mode & S_IFMT) == S_IFBLK)
    return facts[0].stx_rdev_major == facts[1].stx_rdev_major &&
           facts[0].stx_rdev_minor == facts[1].stx_rdev_minor;
  return facts[0].stx_ino == facts[1].stx_ino && facts[0].stx_dev_major == facts[1].stx_dev_major &&
         facts[0].stx_dev_minor == facts[1].stx_dev_minor;
}

base::Expected<void> check_members(std::span<Device* const> members, uint64_t unit_bytes) {
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i]->capacity_bytes() < unit_bytes)
      return base::failure(EINVAL, "storage: stripe: device ", i + 1, " is smaller than a unit of ",
                           base::Bytes{unit_bytes}, "; give a smaller unit");
    if (members[i]->is_copied_by_fork() != members[0]->is_copied_by_fork())
      return base::failure(EINVAL, "storage: stripe: device ", i + 1,
                           " and device 1: one is memory, one is not; give all of one kind");
    for (size_t j = 0; j < i; ++j)
      if (are_one_medium(*members[i], *members[j]))
        return base::failure(EINVAL, "storage: stripe: devices ", j + 1, " and ", i + 1,
                             " are the same; name each once");
  }
  return {};
}

}  // namespace

base::Expected<Device*> make_stripe_device(std::span<Device* const> members, uint64_t unit_bytes) {
  CHECK_GE(members.size(), kMinStripeMembers);
  CHECK_LE(members.size(), kMaxStripeMembers);
  CHECK(unit_bytes >= kMinStripeUnitBytes && unit_bytes <= kMaxStripeUnitBytes);
  CHECK(std::has_single_bit(unit_bytes));
  base::Error error;
  if (auto checked = check_members(members, unit_bytes); !checked) {
    error = checked.error();
  } else {
    auto device = make_object<StripeDevice>(0, "a stripe device", members, unit_bytes);
    if (device) return *device;
    error = device.error();
  }
  for (Device* member : members) member->close();
  return std::unexpected(error);
}

}  // namespace storage
