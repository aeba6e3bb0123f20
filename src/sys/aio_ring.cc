#include "sys/aio_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/ids.h"
#include "sys/barrier.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace sys {
namespace {

constexpr uint32_t kMagic = 0xa10a10a1;

// As in io_ring.cc; these take the kernel longer to prepare.
constexpr uint32_t kMaxHandedAtOnce = 2;

base::Error set_up_error(long result) {
  const int number = static_cast<int>(-result);
  if (number == EAGAIN)
    return base::Error::of(number, "Linux AIO: the system has no more requests (raise fs.aio-max-nr)");
  return base::Error::of(number, "Linux AIO: ", base::error_name(number));
}

uint64_t entries_bytes(uint32_t entry_count) { return entry_count * (sizeof(iocb) + sizeof(iocb*)); }

}  // namespace

base::Expected<void> AioRing::probe() {
  aio_context_t context = 0;
  const long result = syscall(SYS_io_setup, 0, &context);
  if (result == -EINVAL) return {};  // refused for its count, after all other checks
  return std::unexpected(set_up_error(result));
}

base::Expected<void> AioRing::open(uint32_t entry_count) {
  CHECK_GE(entry_count, 1u);
  CHECK_EQ(context_, 0u);
  auto memory = map_anonymous(entries_bytes(entry_count), "a queue of Linux AIO");
  if (!memory) return std::unexpected(memory.error());
  if (long result = syscall(SYS_io_setup, entry_count, &context_); failed(result)) {
    unmap(*memory, entries_bytes(entry_count));
    context_ = 0;
    return std::unexpected(set_up_error(result));
  }
  note_map();
  process_ = syscall(SYS_getpid);
  entry_count_ = entry_count;
  entries_ = reinterpret_cast<iocb*>(*memory);
  pointers_ = reinterpret_cast<iocb**>(entries_ + entry_count);
  for (uint32_t i = 0; i < entry_count; ++i) pointers_[i] = &entries_[i];
  map_ring();
  return {};
}

void AioRing::map_ring() {
  Ring* ring = reinterpret_cast<Ring*>(context_);
  const bool is_known = ring->magic == kMagic && ring->incompatible_features == 0 &&
                        ring->header_bytes == sizeof(Ring) && ring->event_count > entry_count_;
  if (!is_known) return;
  ring_ = ring;
  const uint64_t bytes = sizeof(Ring) + uint64_t{ring->event_count} * sizeof(io_event);
  syscall(SYS_madvise, ring, base::round_up(bytes, base::kOsPageBytes), MADV_DONTFORK);
}

void AioRing::close() {
  if (context_ == 0) return;
  // In a child of fork this context does not exist, and one of the child's own may have got the same address.
  if (process_ == syscall(SYS_getpid)) syscall(SYS_io_destroy, context_);
  unmap(entries_, entries_bytes(entry_count_));
  *this = AioRing();
}

iocb* AioRing::next_submission() {
  if (pending_count_ == entry_count_) return nullptr;
  iocb* entry = &entries_[(first_ + pending_count_++) % entry_count_];
  *entry = {};
  return entry;
}

long AioRing::submit() {
  long taken_count = 0;
  while (pending_count_ > 0) {
    const uint32_t to_end = entry_count_ - first_;
    const uint32_t count = std::min({pending_count_, to_end, kMaxHandedAtOnce});
    const long result = syscall(SYS_io_submit, context_, count, &pointers_[first_]);
    if (failed(result)) return taken_count > 0 ? taken_count : result;
    if (result == 0) return taken_count > 0 ? taken_count : -EAGAIN;
    const uint32_t taken = static_cast<uint32_t>(result);
    first_ = (first_ + taken) % entry_count_;
    pending_count_ -= taken;
    in_kernel_count_ += taken;
    taken_count += result;
  }
  return taken_count;
}

uint64_t AioRing::take_first() {
  CHECK_GT(pending_count_, 0u);
  const uint64_t user_data = entries_[first_].aio_data;
  first_ = (first_ + 1) % entry_count_;
  --pending_count_;
  return user_data;
}

bool AioRing::next_completion(uint64_t& user_data, int64_t& result) {
  if (in_kernel_count_ == 0) return false;
  if (fetched_count_ == 0 && !is_readable()) {
    const timespec now = {};
    fetch(0, &now);
  }
  io_event event;
  if (fetched_count_ > 0) {
    event = fetched_[fetched_first_++];
    --fetched_count_;
  } else {
    if (!is_readable()) return false;
    std::atomic_ref<uint32_t> head(ring_->head), tail(ring_->tail);
    const uint32_t at = head.load(std::memory_order_relaxed);  // only we store to it
    // Acquire: pairs with the kernel's barrier between the event and the tail.
    if (at == tail.load(std::memory_order_acquire)) return false;
    event = ring_->events[at];
    // Release: once the kernel sees this, it may reuse the event's place.
    head.store((at + 1) % ring_->event_count, std::memory_order_release);
  }
  CHECK_GT(in_kernel_count_, 0u);
  --in_kernel_count_;
  user_data = event.data;
  result = event.res;
  return true;
}

long AioRing::wait() { return fetch(1, nullptr); }

long AioRing::fetch(long least_count, const void* timeout) {
  CHECK_EQ(fetched_count_, 0u);
  const long result = syscall(SYS_io_getevents, context_, least_count, kMaxFetched, fetched_, timeout);
  fetched_first_ = 0;
  if (!failed(result)) fetched_count_ = static_cast<uint32_t>(result);
  return result;
}

}  // namespace sys
