#include "persist/model/device_model.h"

#include <algorithm>

#include "base/check.h"

namespace persist {

DeviceModel::DeviceModel(const DeviceParameters& parameters) : parameters_(parameters) {
  CHECK(parameters.queue_lines >= 1 && parameters.queue_lines <= DeviceParameters::kMaxQueueLines);
  CHECK(parameters.block_count >= 1 && parameters.block_count <= DeviceParameters::kMaxBlocks);
  CHECK(parameters.issue_dirty_ns >= 0 && parameters.issue_clean_ns >= 0 && parameters.fence_ns >= 0);
  CHECK(parameters.drain_ns >= 0 && parameters.media_write_ns >= 0 && parameters.partial_factor >= 1);
  CHECK(parameters.crowd_factor >= 0 && parameters.active_ns >= 0 && parameters.late_most_ns >= 0);
}

uint32_t DeviceModel::open_writer() {
  for (uint32_t i = 0; i < kMaxWriters; ++i) {
    if (writers_[i].is_open) continue;
    writers_[i] = {.is_open = true};
    writers_end_ = std::max(writers_end_, i + 1);
    return i;
  }
  return kMaxWriters;
}

void DeviceModel::close_writer(uint32_t writer) {
  CHECK(writer < kMaxWriters && writers_[writer].is_open);
  writers_[writer].is_open = false;
}

uint32_t DeviceModel::active_writers(double now_ns) const {
  uint32_t count = 0;
  for (const Writer& writer : writers_) {
    if (&writer == writers_ + writers_end_) break;
    count += writer.is_open && writer.has_flushed &&
             (writer.taken_ns > now_ns || writer.last_ns + parameters_.active_ns >= now_ns);
  }
  return count;
}

uint32_t DeviceModel::queued_lines(double now_ns) const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < parameters_.queue_lines; ++i) count += left_ns_[i] > now_ns;
  return count;
}

double DeviceModel::flush(uint32_t writer, uint64_t line, bool is_dirty, double now_ns, uint32_t active) {
  DCHECK(writer < kMaxWriters && writers_[writer].is_open);
  if (!is_dirty) {
    ++statistics_.clean_lines;
    return now_ns + parameters_.issue_clean_ns;
  }
  Writer& own = writers_[writer];
  now_ns += parameters_.issue_dirty_ns;
  own.has_flushed = true;
  own.last_ns = now_ns;
  if (active == 0) active = active_writers(now_ns);
  const double crowd = active > parameters_.crowd_writers
                           ? 1 + parameters_.crowd_factor * (active - parameters_.crowd_writers)
                           : 1;
  const double taken_ns = take(parameters_.drain_ns + combine(line, crowd), now_ns);
  ++statistics_.lines;
  own.taken_ns = std::max(own.taken_ns, taken_ns);
  statistics_.taken_until_ns = std::max(statistics_.taken_until_ns, taken_ns);
  return now_ns;
}

double DeviceModel::fence(uint32_t writer, double now_ns) {
  DCHECK(writer < kMaxWriters && writers_[writer].is_open);
  ++statistics_.fences;
  return std::max(now_ns, writers_[writer].taken_ns) + parameters_.fence_ns;
}

// Puts the line into the buffer. Returns the time of media writes that this takes.
double DeviceModel::combine(uint64_t line, double crowd) {
  const uint64_t number = line / kBlockLines;
  const uint32_t bit = 1u << line % kBlockLines;
  ++came_;
  Block* oldest = blocks_;
  Block* found = nullptr;
  for (uint32_t i = 0; i < parameters_.block_count; ++i) {
    Block& block = blocks_[i];
    if (block.lines != 0 && block.number == number) {
      found = &block;
      break;
    }
    if (block.used < oldest->used) oldest = &block;
  }
  double media_ns = 0;
  if (found == nullptr) {
    found = oldest;
    if (found->lines != 0) media_ns = write_media(*found, crowd);
    *found = {.number = number, .used = 0, .lines = 0};
  }
  found->used = came_;
  found->lines |= bit;
  if (found->lines == (1u << kBlockLines) - 1) media_ns += write_media(*found, crowd);
  return media_ns;
}

double DeviceModel::write_media(Block& block, double crowd) {
  const bool is_full = block.lines == (1u << kBlockLines) - 1;
  block = {};
  ++statistics_.media_writes;
  statistics_.partial_writes += !is_full;
  return parameters_.media_write_ns * crowd * (is_full ? 1 : parameters_.partial_factor);
}

// A line comes for which the drain takes this long. Returns when the queue has taken it.
double DeviceModel::take(double service_ns, double now_ns) {
  statistics_.busy_ns += service_ns;
  if (now_ns < latest_ns_ && free_ns_ > now_ns) {
    // It is late. It may have used the idle time between now_ns and latest_ns_.
    if (service_ns <= std::min(idle_ns_, latest_ns_ - now_ns)) {
      idle_ns_ -= service_ns;
      ++statistics_.late_lines;
      return now_ns;
    }
  }
  if (now_ns > latest_ns_) {
    const double idle_from_ns = std::max(free_ns_, latest_ns_);
    if (now_ns > idle_from_ns)
      idle_ns_ = std::min(idle_ns_ + now_ns - idle_from_ns, parameters_.late_most_ns);
    latest_ns_ = now_ns;
  }
  double& oldest_left_ns = left_ns_[next_];
  next_ = next_ + 1 == parameters_.queue_lines ? 0 : next_ + 1;
  const double taken_ns = std::max(now_ns, oldest_left_ns);
  statistics_.full_waits += taken_ns > now_ns;
  free_ns_ = std::max(free_ns_, taken_ns) + service_ns;
  oldest_left_ns = free_ns_;
  return taken_ns;
}

}  // namespace persist
