// Fences of a thread, and whatever else executes what a thread has put off or handed over. (thread.h)
#include <algorithm>
#include <limits>

#include "base/single_writer.h"
#include "persist/runtime.h"
#include "persist/thread.h"
#include "sys/streaming.h"

namespace persist {

void Thread::grant_fences() {
  granted_fences_ = 0;
  if (policy_.chosen() == Way::kInline && !counts_all())
    granted_fences_ =
        policy_.is_auto() ? static_cast<int32_t>(Policy::kHeldFences) : std::numeric_limits<int32_t>::max();
  direct_.fences.store(granted_fences_, std::memory_order_relaxed);
}

// A handler's fence may come between compiled code's load of `fences` and its subtraction: then a few too many or too few are counted.
uint64_t Thread::take_fences() {
  const int32_t left = direct_.fences.exchange(0, std::memory_order_relaxed);
  const int32_t taken = std::max(granted_fences_ - std::max(left, 0), 0);
  granted_fences_ = 0;
  base::increase(counts_.fences, static_cast<uint64_t>(taken));
  return static_cast<uint64_t>(taken);
}

// Lines are put off only in memory and devices. If something else is there now, the domain was removed, and the line was executed then.
bool Thread::execute_again(Place& place, uintptr_t line) {
  if (line - place.begin >= place.bytes || place.version != domains_.version()) place = find_place(line);
  if (place.action == Action::kOutside || place.action == Action::kNote || place.action == Action::kNothing)
    return false;
  execute(place.domain.device, line);
  base::increase<uint64_t>(counts_.late_lines, 1);
  return true;
}

void Thread::execute_put_off() {
  // From now on a handler's flush of such a line may come after the line was executed: its compiled code has to call.
  direct_.put_off.store(&kNonePutOff, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  gate_.enter();
  Place place;
  set_.visit([&](uintptr_t line) {
    if (execute_again(place, line) && place.domain.device != nullptr) note_device(place.domain.device);
  });
  gate_.leave();
  set_.clear();
  set_.begin_epoch();
  std::atomic_signal_fence(std::memory_order_release);
  open_put_off();
}

void Thread::execute_for(const Domain& removed) const {
  const auto flush = [&](uintptr_t line) {
    if (removed.holds(line)) execute(removed.device, line);
  };
  set_.visit(flush);
  if (const Fifo* const pushed = fifo(); pushed != nullptr) pushed->visit(flush);
}

base::Expected<void> Thread::fence() {
  base::increase<uint64_t>(counts_.fences, 1);
  if (is_inside_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return fence_in_handler();
  Inside inside(*this);
  const uint64_t direct_fences = granted_fences_ != 0 ? take_fences() : 0;
  base::Expected<void> result;
  if (*pending_ != 0) {
    result = fence_slowly();
  } else {
    // Before sfence, which waits for lines that are being written back: what is done meanwhile costs nothing.
    set_.begin_epoch();
    sys::fence_stores();
  }
  if (policy_.count_fences(1 + direct_fences)) [[unlikely]]
    end_window();
  grant_fences();
  return result;
}

void Thread::take_or_ask(Fifo& pushed) {
  Flushers& flushers = runtime_.flushers();
  if (flushers.do_fences_execute()) {
    gate_.enter();
    base::increase<uint64_t>(counts_.fence_lines, flushers.execute_waiting(pushed));
    gate_.leave();
  } else {
    pushed.ask();
    flushers.wake_surely();
  }
}

base::Expected<void> Thread::fence_slowly() {
  Fifo* const pushed = fifo();
  const bool waits = pushed != nullptr && !pushed->is_done();
  if (waits) take_or_ask(*pushed);
  execute_put_off();
  if (waits) pushed->wait();
  base::Expected<void> result;
  if (!ranges_.is_empty()) {
    gate_.enter();
    result = ranges_.write(domains_, runtime_.shared_syncs());
    gate_.leave();
  }
  for (size_t i = 0; i < device_count_; ++i) devices_[i]->fence();
  device_count_ = 0;
  sys::fence_stores();
  *pending_ = 0;
  const int untold = untold_error_.exchange(0, std::memory_order_relaxed);
  if (untold != 0 && result)
    return base::failure(
        untold, "what was flushed of a file's mapping cannot be written: ", base::error_name(untold));
  return result;
}

// What the thread was doing is not known: whatever it may have put off is executed, and stays put off.
base::Expected<void> Thread::fence_in_handler() {
  if (*pending_ == 0) {
    sys::fence_stores();
    return {};
  }
  Place place;
  set_.visit([&](uintptr_t line) { execute_again(place, line); });
  if (Fifo* const pushed = fifo(); pushed != nullptr) {
    for (uint32_t i = 0; i < pushed->held_count(); ++i) execute_again(place, pushed->held()[i]);
    if (!pushed->is_done()) {
      pushed->ask();
      runtime_.flushers().wake_surely();
      pushed->wait();
    }
  }
  auto result = runtime_.write_files();
  runtime_.fence_devices();
  sys::fence_stores();
  return result;
}

}  // namespace persist
