#include "persist/thread.h"

#include <new>

#include "base/single_writer.h"
#include "persist/runtime.h"
#include "sys/memory.h"
#include "sys/persistent.h"
#include "sys/streaming.h"

namespace persist {

namespace {

// Lines that [begin, end) lies in.
uint64_t lines_of(uintptr_t begin, uintptr_t end) {
  return (base::round_up(end, base::kLineBytes) - base::round_down(begin, base::kLineBytes)) /
         base::kLineBytes;
}

}  // namespace

void Counts::add(const Counts& other) {
  asked_lines += other.asked_lines;
  executed_lines += other.executed_lines;
  pushed_lines += other.pushed_lines;
  noted_lines += other.noted_lines;
  outside_lines += other.outside_lines;
  fences += other.fences;
  copied_lines += other.copied_lines;
  sampled_stores += other.sampled_stores;
}

// While one lives, handlers of signals leave alone where the thread flushes to and what it has put off. One may live inside of another's life.
struct Thread::Inside {
  explicit Inside(Thread& thread)
      : thread_(thread), before_(thread.is_inside_.load(std::memory_order_relaxed)) {
    thread.is_inside_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Inside() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_.is_inside_.store(before_, std::memory_order_relaxed);
  }
  Thread& thread_;
  const uint32_t before_;
};

Thread::Thread(Runtime& runtime, uint32_t* pending)
    : pending_(pending != nullptr ? pending : &own_pending_),
      runtime_(runtime),
      policy_(Way::kInline),
      gate_(runtime.has_barrier()) {}

bool Thread::is_known(uintptr_t line) const {
  return line - place_.begin < place_.bytes && place_.version == runtime_.domains().version();
}

void Thread::put_in(uintptr_t line) {
  Inside inside(*this);
  *pending_ = 1;
  if (set_.is_full()) execute_put_off();
  set_.put_in(line);
}

[[gnu::always_inline]] inline void Thread::execute(LineDevice* device, uintptr_t line) {
  if (device != nullptr)
    device->flush(&line, 1);
  else
    sys::flush_line(line, runtime_.settings().instruction);
  base::increase<uint64_t>(counts_.executed_lines, 1);
}

[[gnu::always_inline]] inline void Thread::execute_now(LineDevice* device, uintptr_t line) {
  execute(device, line);
  if (device != nullptr) note_device(device);
}

[[gnu::always_inline]] inline void Thread::put(LineDevice* device, uintptr_t line) {
  switch (set_.add(line)) {
    case LineSet::Flush::kPutOff: return;
    case LineSet::Flush::kNow: return execute_now(device, line);
    case LineSet::Flush::kPutIn: put_in(line);
  }
}

// Of a line in the place of the line before. Returns false if it is none. A handler that comes in between may leave another place behind: then place_changes_ says so.
[[gnu::always_inline]] inline bool Thread::flush_quickly(uintptr_t line) {
  const uint32_t changes = place_changes_;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const Action action = place_.action;
  LineDevice* const device = place_.domain.device;
  if (!is_known(line) || is_inside_.load(std::memory_order_relaxed) != 0) return false;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (place_changes_ != changes) return false;
  switch (action) {
    case Action::kSet: put(device, line); return true;
    case Action::kExecute: execute_now(device, line); return true;
    case Action::kPush: push(device, line); return true;
    case Action::kNothing: return true;
    case Action::kOutside:
    case Action::kNote: return false;
  }
  return false;
}

void Thread::flush(uintptr_t address) {
  const uintptr_t line = base::round_down(address, base::kLineBytes);
  base::increase<uint64_t>(counts_.asked_lines, 1);
  if (!flush_quickly(line)) [[unlikely]]
    flush_slowly(line, line + base::kLineBytes);
}

void Thread::flush(uintptr_t address, size_t bytes) {
  if (bytes == 0) return;
  const uintptr_t end = address + bytes;
  uintptr_t line = base::round_down(address, base::kLineBytes);
  base::increase<uint64_t>(counts_.asked_lines, lines_of(line, end));
  while (line < end) line = flush_quickly(line) ? line + base::kLineBytes : flush_slowly(line, end);
}

Thread::Action Thread::action_of(const Domain& domain) const {
  const Way way = policy_.chosen();
  switch (domain.kind) {
    case DomainKind::kFile: return Action::kNote;
    case DomainKind::kFlushOnFail: return Action::kNothing;
    case DomainKind::kNone: return Action::kOutside;
    case DomainKind::kMemory:
    case DomainKind::kDevice: break;
  }
  if (way == Way::kDecoupled && runtime_.flushers().are_running()) return Action::kPush;
  return way == Way::kInline ? Action::kExecute : Action::kSet;
}

Thread::Place Thread::find_place(uintptr_t line) const {
  const Domains::Found found = runtime_.domains().find(line);
  return {.begin = found.domain.begin,
          .bytes = found.domain.end - found.domain.begin,
          .version = found.version,
          .action = found.is_inside ? action_of(found.domain) : Action::kOutside,
          .domain = found.domain};
}

void Thread::take_place(uintptr_t line) {
  ++place_changes_;
  place_ = find_place(line);
  const FindDomain find_domain = runtime_.settings().find_domain;
  if (place_.action == Action::kOutside && find_domain != nullptr &&
      !runtime_.domains().find(line).is_inside && find_domain(line))
    place_ = find_place(line);
}

void Thread::forget_place() {
  ++place_changes_;
  place_ = {};
}

// What a handler flushes while its thread is inside is durable at once, so that no fence has to know of it.
void Thread::flush_in_handler(uintptr_t line) {
  const Place place = find_place(line);
  switch (place.action) {
    case Action::kNothing: return;
    case Action::kNote:
      if (write_range(line, line + base::kLineBytes)) return;
      handler_failed_.store(1, std::memory_order_relaxed);
      *pending_ = 1;  // so that the next fence looks
      return;
    default:
      execute(place.domain.device, line);
      if (place.domain.device != nullptr) place.domain.device->fence();
  }
}

// One line, or as many of [line, end) as one note takes. Returns where those end.
uintptr_t Thread::flush_slowly(uintptr_t line, uintptr_t end) {
  uintptr_t next = line + base::kLineBytes;
  if (is_inside_.load(std::memory_order_relaxed) != 0) {
    flush_in_handler(line);
    return next;
  }
  Inside inside(*this);
  if (!is_known(line)) take_place(line);
  LineDevice* const device = place_.domain.device;
  switch (place_.action) {
    case Action::kOutside: base::increase<uint64_t>(counts_.outside_lines, 1); [[fallthrough]];
    case Action::kExecute: execute_now(device, line); break;
    case Action::kSet: put(device, line); break;
    case Action::kPush: push(device, line); break;
    case Action::kNote:
      next = std::min(base::round_up(end, base::kLineBytes), place_.domain.end);
      note(line, next);
      break;
    case Action::kNothing: break;
  }
  return next;
}

void Thread::push(LineDevice* device, uintptr_t line) {
  bool is_pushed;
  {
    Inside inside(*this);
    *pending_ = 1;
    is_pushed = fifo()->push(line);
  }
  if (is_pushed) {
    base::increase<uint64_t>(counts_.pushed_lines, 1);
    runtime_.flushers().wake();
    return;
  }
  // Flushers cannot keep up: the line is one more that this thread flushes, as if nobody else did.
  runtime_.flushers().wake_surely();
  execute_now(device, line);
}

// Of place_, which is a file's.
void Thread::note(uintptr_t begin, uintptr_t end) {
  *pending_ = 1;
  if (!ranges_.has_room(place_.domain)) {
    gate_.enter();
    ranges_.write_early(runtime_.domains());
    gate_.leave();
  }
  ranges_.add(place_.domain, begin, end);
  base::increase<uint64_t>(counts_.noted_lines, lines_of(begin, end));
}

void Thread::note_device(LineDevice* device) {
  for (size_t i = 0; i < device_count_; ++i)
    if (devices_[i] == device) return;
  Inside inside(*this);
  *pending_ = 1;
  if (device_count_ == kDevicesMax) {
    for (LineDevice* const other : devices_) other->fence();
    device_count_ = 0;
  }
  devices_[device_count_++] = device;
}

// What is put off was put off in memory or a device; if its place is another thing by now, its domain was removed, and the line executed then.
bool Thread::execute_again(Place& place, uintptr_t line) {
  if (line - place.begin >= place.bytes || place.version != runtime_.domains().version())
    place = find_place(line);
  if (place.action == Action::kOutside || place.action == Action::kNote || place.action == Action::kNothing)
    return false;
  execute(place.domain.device, line);
  return true;
}

void Thread::execute_put_off() {
  gate_.enter();
  Place place;
  set_.visit([&](uintptr_t line) {
    if (execute_again(place, line) && place.domain.device != nullptr) note_device(place.domain.device);
  });
  gate_.leave();
  set_.clear();
  set_.begin_epoch();
}

void Thread::execute_for(const Domain& removed) const {
  set_.visit([&](uintptr_t line) {
    if (!removed.holds(line)) return;
    if (removed.kind == DomainKind::kDevice)
      removed.device->flush(&line, 1);
    else
      sys::flush_line(line, runtime_.settings().instruction);
  });
}

base::Expected<void> Thread::fence() {
  base::increase<uint64_t>(counts_.fences, 1);
  if (is_inside_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return fence_in_handler();
  Inside inside(*this);
  base::Expected<void> result;
  if (*pending_ != 0) {
    result = fence_slowly();
  } else {
    sys::fence_stores();
    set_.begin_epoch();
  }
  if (policy_.on_fence(&sys::cycle_clock, counts_.asked_lines.load(std::memory_order_relaxed)))
    forget_place();
  return result;
}

base::Expected<void> Thread::fence_slowly() {
  Fifo* const pushed = fifo();
  const bool waits = pushed != nullptr && !pushed->is_done();
  if (waits) runtime_.flushers().wake_surely();
  execute_put_off();
  if (waits) pushed->wait();
  base::Expected<void> result;
  if (!ranges_.is_empty()) {
    gate_.enter();
    result = ranges_.write(runtime_.domains(), runtime_.shared_syncs());
    gate_.leave();
  }
  for (size_t i = 0; i < device_count_; ++i) devices_[i]->fence();
  device_count_ = 0;
  sys::fence_stores();
  *pending_ = 0;
  if (handler_failed_.exchange(0, std::memory_order_relaxed) != 0 && result)
    return base::failure(EIO, "what a signal handler flushed of a file's mapping cannot be written");
  return result;
}

// What the thread was doing is not known: all that it may have put off is executed, and stays put off.
base::Expected<void> Thread::fence_in_handler() {
  if (*pending_ == 0) {
    sys::fence_stores();
    return {};
  }
  Place place;
  set_.visit([&](uintptr_t line) { execute_again(place, line); });
  if (Fifo* const pushed = fifo(); pushed != nullptr && !pushed->is_done()) {
    runtime_.flushers().wake_surely();
    pushed->wait();
  }
  auto result = runtime_.write_files();
  runtime_.fence_devices();
  sys::fence_stores();
  return result;
}

void Thread::flush_ordered(uintptr_t address) {
  const uintptr_t line = base::round_down(address, base::kLineBytes);
  base::increase<uint64_t>(counts_.asked_lines, 1);
  const Place place = find_place(line);
  if (place.action == Action::kOutside || place.domain.kind == DomainKind::kMemory) {
    sys::flush_line(line, sys::LineFlush::kClflush);
    base::increase<uint64_t>(counts_.executed_lines, 1);
  } else {
    flush_in_handler(line);
  }
}

void Thread::sample_store(uintptr_t address) {
  base::increase<uint64_t>(counts_.sampled_stores, 1);
  if (policy_.chosen() != Way::kProactive) return;
  if (recent()->push(base::round_down(address, base::kLineBytes))) runtime_.flushers().wake();
}

base::Expected<void> Thread::take_queues() {
  for (std::atomic<Fifo*>* const queue : {&fifo_, &recent_}) {
    if (queue->load(std::memory_order_relaxed) != nullptr) continue;
    const auto memory = sys::map_anonymous(sizeof(Fifo), "a queue of lines to flush");
    if (!memory) return std::unexpected(memory.error());
    queue->store(new (*memory) Fifo,
                 std::memory_order_release);  // pairs with the acquire in fifo() and recent()
  }
  return {};
}

base::Expected<void> Thread::set_way(Way way) {
  if (way == Way::kDecoupled || way == Way::kProactive)
    if (auto taken = use_flushers(); !taken) return taken;
  Inside inside(*this);
  policy_.ask(way);
  forget_place();
  return {};
}

base::Expected<void> Thread::use_flushers() {
  if (auto taken = take_queues(); !taken) return taken;
  return runtime_.flushers().start(runtime_, runtime_.settings().flushers);
}

void Thread::enter_child() {
  Inside inside(*this);
  for (Fifo* const queue : {fifo(), recent()})
    if (queue != nullptr) queue->forget();
  forget_place();
}

Counts Thread::counts() const {
  const auto get = [](const std::atomic<uint64_t>& count) { return count.load(std::memory_order_relaxed); };
  return {.asked_lines = get(counts_.asked_lines),
          .executed_lines = get(counts_.executed_lines),
          .pushed_lines = get(counts_.pushed_lines),
          .noted_lines = get(counts_.noted_lines),
          .outside_lines = get(counts_.outside_lines),
          .fences = get(counts_.fences),
          .copied_lines = get(counts_.copied_lines),
          .sampled_stores = get(counts_.sampled_stores)};
}

}  // namespace persist
