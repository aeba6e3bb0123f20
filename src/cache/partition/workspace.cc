#include "cache/partition/workspace.h"

#include <new>

#include "base/probe.h"
#include "cache/servers/delegation.h"
#include "sys/memory.h"

namespace cache {

base::Expected<Workspace*> Workspace::create(storage::Device& device, size_t page_bytes,
                                             const storage::QueueUse& use) {
  const uint64_t workspace_bytes = base::round_up(sizeof(Workspace), base::kOsPageBytes);
  auto memory = sys::map_anonymous(workspace_bytes + page_bytes, "a thread's working memory");
  if (!memory) return std::unexpected(memory.error());
  // Zeroed memory is a valid Workspace except for the defaults of Io's members, which are set where Ios are used.
  Workspace* workspace = reinterpret_cast<Workspace*>(*memory);
  workspace->bytes_ = workspace_bytes + page_bytes;
  workspace->page_copy = *memory + workspace_bytes;
  auto queue = device.open_queue(Batch::kMaxIos, use);
  if (!queue) {
    sys::unmap(workspace, workspace->bytes_);
    return std::unexpected(queue.error());
  }
  workspace->queue_ = *queue;
  return workspace;
}

void Workspace::destroy() {
  if (client != nullptr) client->give_back();
  queue_->device().close_queue(queue_);
  sys::unmap(this, bytes_);
}

void Workspace::run_ios() {
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
