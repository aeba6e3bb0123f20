#include "cache/partition/lane.h"

#include <new>

#include "base/probe.h"
#include "cache/servers/delegation.h"
#include "sys/memory.h"

namespace cache {

base::Expected<Lane*> Lane::create(storage::Device& device, size_t page_bytes, const storage::QueueUse& use) {
  const uint64_t lane_bytes = base::round_up(sizeof(Lane), base::kOsPageBytes);
  auto memory = sys::map_anonymous(lane_bytes + page_bytes, "a thread's working memory");
  if (!memory) return std::unexpected(memory.error());
  // Zeroed memory is a valid Lane except for the defaults of Io's members, which are set where Ios are used.
  Lane* lane = reinterpret_cast<Lane*>(*memory);
  lane->bytes_ = lane_bytes + page_bytes;
  lane->page_copy = *memory + lane_bytes;
  auto queue = device.open_queue(Batch::kMaxIos, use);
  if (!queue) {
    sys::unmap(lane, lane->bytes_);
    return std::unexpected(queue.error());
  }
  lane->queue_ = *queue;
  return lane;
}

void Lane::destroy() {
  if (client != nullptr) client->give_back();
  queue_->device().close_queue(queue_);
  sys::unmap(this, bytes_);
}

void Lane::run_ios() {
  const uint32_t count = batch.io_count;
  if (count == 0) return;
  base::probes::write_back_begin(count);
  if (count == 1) {
    queue_->run(batch.ios[0]);
  } else {
    for (uint32_t i = 0; i < count; ++i) ios_[i] = &batch.ios[i];
    queue_->run({ios_, count});
  }
  base::probes::write_back_done(count);
}

}  // namespace cache
