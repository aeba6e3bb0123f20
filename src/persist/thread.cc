#include "persist/thread.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "base/single_writer.h"
#include "persist/runtime.h"
#include "sys/memory.h"
#include "sys/streaming.h"
#include "sys/threads.h"

namespace persist {

namespace {

// The number of lines that [begin, end) lies in.
uint64_t lines_of(uintptr_t begin, uintptr_t end) {
  return (base::round_up(end, base::kLineBytes) - base::round_down(begin, base::kLineBytes)) /
         base::kLineBytes;
}

}  // namespace

void Counts::add(const Counts& other) {
  asked_lines += other.asked_lines;
  executed_lines += other.executed_lines;
  pushed_lines += other.pushed_lines;
  fence_lines += other.fence_lines;
  noted_lines += other.noted_lines;
  outside_lines += other.outside_lines;
  fences += other.fences;
  copied_lines += other.copied_lines;
  sampled_stores += other.sampled_stores;
}

Thread::Thread(Runtime& runtime, Direct* direct)
    : instruction_(runtime.settings().instruction),
      domains_(runtime.domains()),
      id_(sys::thread_id()),
      direct_(direct != nullptr ? *direct : own_direct_),
      pending_(&direct_.pending),
      runtime_(runtime),
      policy_(Way::kInline),
      ranges_(runtime.file_failures()),
      gate_(runtime.has_barrier()) {}

void Thread::execute(LineDevice* device, uintptr_t line) const {
  if (device != nullptr)
    device->flush(&line, 1);
  else
    sys::flush_line(line, instruction_);
}

void Thread::flush_to_device(LineDevice* device, uintptr_t line) {
  execute(device, line);
  base::increase<uint64_t>(counts_.now_lines, 1);
  note_device(device);
}

void Thread::put_to_device(LineDevice* device, uintptr_t line) {
  switch (set_.add(line)) {
    case LineSet::Flush::kNow: return flush_to_device(device, line);
    case LineSet::Flush::kPutOff: return base::increase<uint64_t>(counts_.away_lines, 1);
    case LineSet::Flush::kPutIn: return put_in(line);
  }
}

void Thread::put_in(uintptr_t line) {
  base::increase<uint64_t>(counts_.away_lines, 1);
  Inside inside(*this);
  *pending_ = 1;
  if (set_.is_full()) execute_put_off();
  set_.put_in(line);
  look_again(line);
}

// After a line was put off or pushed: if its domain was removed in between, maybe nobody has executed it, and the fence will not. So it is executed here.
void Thread::look_again(uintptr_t line) {
  if (is_place_true() || find_place(line).action != Action::kOutside) return;
  execute_now(line);
}

void Thread::flush_otherwise(uintptr_t line) { flush_slowly(line, line + base::kLineBytes); }

void Thread::flush(uintptr_t address, size_t bytes) {
  if (bytes == 0) return;
  const uintptr_t end = address + bytes;
  uintptr_t line = base::round_down(address, base::kLineBytes);
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
  if ((way == Way::kDecoupled && runtime_.flushers().are_running()) || is_together(domain))
    return Action::kPush;
  const bool is_device = domain.kind == DomainKind::kDevice;
  if (way == Way::kInline) return is_device ? Action::kDevice : Action::kExecute;
  return is_device ? Action::kDeviceSet : Action::kSet;
}

bool Thread::is_together(const Domain& domain) const {
  return domain.kind == DomainKind::kDevice && policy_.is_auto() && offer_ == Offer::kMade &&
         runtime_.flushers().are_together();
}

Thread::Place Thread::find_place(uintptr_t line) const {
  const Domains::Found found = domains_.find(line);
  return {.begin = found.domain.begin,
          .bytes = found.domain.end - found.domain.begin,
          .version = found.version,
          .action = found.is_inside ? action_of(found.domain) : Action::kOutside,
          .domain = found.domain};
}

void Thread::take_place(uintptr_t line) {
  const uint32_t changes = ++place_changes_;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  Place place = find_place(line);
  const FindDomain find_domain = runtime_.settings().find_domain;
  if (place.action == Action::kOutside && place.domain.kind != DomainKind::kNone && find_domain != nullptr &&
      find_domain(line))
    place = find_place(line);
  // Lines that were put off may have been in a domain that is gone: the table must not mistake lines that are there now for them.
  if (std::exchange(set_version_, place.version) != place.version) set_.begin_epoch();
  is_together_ = is_together(place.domain);
  // The CPU's own instruction is done before another thread could learn of the line, so that handing over pays only for devices.
  if (place.domain.kind == DomainKind::kDevice && offer_ == Offer::kNone) offer_ = Offer::kWanted;
  place_ = place;
  open_direct();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // A handler has changed the way, or has forked: what was found is from before that.
  if (place_changes_ != changes) forget_place();
}

// The place of a line; again if a handler has come in between that may have changed it.
Thread::Place Thread::known_place(uintptr_t line) {
  for (;;) {
    if (!is_known(line)) take_place(line);
    const uint32_t changes = place_changes_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const Place place = place_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (place_changes_ == changes && line - place.begin < place.bytes) return place;
  }
}

void Thread::forget_place() {
  ++place_changes_;
  place_ = {};
  close_direct();
}

bool Thread::counts_all() const { return runtime_.settings().counts_all || policy_.is_measuring(); }

void Thread::close_direct() {
  take_fences();
  direct_.close();
}

// Without the kernel's barrier nobody could close what is open.
bool Thread::may_open() const { return !counts_all() && runtime_.has_barrier(); }

// To be called after the thread has stored something that whoever changes the domains looks at.
bool Thread::is_place_true() const {
  sys::pass_often(runtime_.has_barrier());  // pairs with the barriers of Runtime::close_all()
  return place_.version == domains_.version();
}

// Opens what may be done in place_ without a call.
void Thread::open_direct() {
  direct_.close();
  const auto looks = [this] { return is_place_true(); };
  if (may_open() && place_.action != Action::kOutside && place_.domain.kind == DomainKind::kMemory) {
    const uint64_t range = Direct::range_of(place_.begin, place_.bytes);
    direct_.open_range(static_cast<size_t>(sys::LineFlush::kClflush), range, looks);
    if (place_.action == Action::kExecute && instruction_ != sys::LineFlush::kClflush)
      direct_.open_range(static_cast<size_t>(instruction_), range, looks);
  }
  open_put_off();
}

void Thread::open_put_off() {
  if (may_open() && (place_.action == Action::kSet || place_.action == Action::kDeviceSet))
    direct_.open_put_off(set_.put_off(), [this] { return is_place_true(); });
}

// Flushes a line so that it is durable at once: for a handler that has come while its thread is inside, so that no fence has to know of it; and for
// ordered flushes.
void Thread::flush_alone(const Place& place, uintptr_t line) {
  switch (place.action) {
    case Action::kNothing: return base::increase<uint64_t>(counts_.away_lines, 1);
    case Action::kNote:
      base::increase<uint64_t>(counts_.away_lines, 1);
      if (write_range(runtime_.file_failures(), place.domain, line, line + base::kLineBytes)) return;
      return fail_next_fence(EIO);
    default:
      execute(place.domain.device, line);
      base::increase<uint64_t>(counts_.now_lines, 1);
      if (place.domain.device != nullptr) place.domain.device->fence();
  }
}

void Thread::fail_next_fence(int error) {
  untold_error_.store(error, std::memory_order_relaxed);
  *pending_ = 1;  // so that the next fence looks
}

// Flushes one line, or as many of [line, end) as one range notes. Returns where those end.
uintptr_t Thread::flush_slowly(uintptr_t line, uintptr_t end) {
  uintptr_t next = line + base::kLineBytes;
  if (is_inside_.load(std::memory_order_relaxed) != 0) {
    flush_alone(find_place(line), line);
    return next;
  }
  Inside inside(*this);
  const Place place = known_place(line);
  LineDevice* const device = place.domain.device;
  switch (place.action) {
    case Action::kOutside: base::increase<uint64_t>(counts_.outside_lines, 1); [[fallthrough]];
    case Action::kExecute: execute_now(line); break;
    case Action::kSet: put(line); break;
    case Action::kDevice: flush_to_device(device, line); break;
    case Action::kDeviceSet: put_to_device(device, line); break;
    case Action::kPush: push(device, line); break;
    case Action::kNote:
      next = std::min(base::round_up(end, base::kLineBytes), place.domain.end);
      note(place.domain, line, next);
      break;
    case Action::kNothing: base::increase<uint64_t>(counts_.away_lines, 1); break;
  }
  return next;
}

void Thread::push(LineDevice* device, uintptr_t line) {
  *pending_ = 1;
  if (fifo()->push(line)) {
    base::increase<uint64_t>(counts_.pushed_lines, 1);
    look_again(line);
    if (runtime_.flushers().may_take(*fifo())) runtime_.flushers().wake();
    return;
  }
  // The FIFO is full, since flushers do not keep up: the thread flushes this line by itself.
  runtime_.flushers().wake_surely();
  if (device != nullptr)
    flush_to_device(device, line);
  else
    execute_now(line);
}

// For a file's domain.
void Thread::note(const Domain& domain, uintptr_t begin, uintptr_t end) {
  *pending_ = 1;
  if (!ranges_.has_room(domain)) {
    gate_.enter();
    ranges_.write_early(domains_);
    gate_.leave();
  }
  ranges_.add(domain, begin, end);
  base::increase<uint64_t>(counts_.noted_lines, lines_of(begin, end));
}

void Thread::note_device(LineDevice* device) {
  for (size_t i = 0; i < device_count_; ++i)
    if (devices_[i] == device) return;
  Inside inside(*this);
  *pending_ = 1;
  if (device_count_ == kMaxDevices) {
    // Lines that are put off for one of these note it again when they are executed.
    for (LineDevice* const other : devices_) other->fence();
    device_count_ = 0;
  }
  devices_[device_count_++] = device;
}

void Thread::flush_ordered(uintptr_t address) {
  const uintptr_t line = base::round_down(address, base::kLineBytes);
  Place place;
  if (is_inside_.load(std::memory_order_relaxed) != 0) {
    place = find_place(line);
  } else {
    Inside inside(*this);
    place = known_place(line);
  }
  if (place.action == Action::kOutside || place.domain.kind == DomainKind::kMemory) {
    sys::flush_line(line, sys::LineFlush::kClflush);
    base::increase<uint64_t>(counts_.now_lines, 1);
  } else {
    flush_alone(place, line);
  }
}

void Thread::sample_store(uintptr_t address) {
  base::increase<uint64_t>(counts_.sampled_stores, 1);
  if (policy_.chosen() != Way::kProactive || is_inside_.load(std::memory_order_relaxed) != 0) return;
  Inside inside(*this);
  if (recent()->push(base::round_down(address, base::kLineBytes))) runtime_.flushers().wake_ahead();
}

void Thread::end_window() {
  const bool was_measuring = policy_.is_measuring();
  if (offer_ == Offer::kWanted) offer_flushers();
  if (is_together_) return policy_.interrupt();
  const bool is_other = policy_.end_window(sys::cycle_clock(), counts_.asked_lines());
  if (is_other || policy_.is_measuring() != was_measuring) forget_place();
}

void Thread::offer_flushers() {
  // Without memory or threads the policy keeps to the ways that need none. A signal handler may come here, so no thread is started.
  offer_ = Offer::kRefused;
  if (!runtime_.flushers().are_running() || !take_queue(fifo_) || !take_queue(recent_)) return;
  offer_ = Offer::kMade;
  policy_.add_candidate(Way::kDecoupled);
  policy_.add_candidate(Way::kProactive);
  runtime_.flushers().try_together();
}

base::Expected<void> Thread::take_queue(std::atomic<Fifo*>& queue) {
  if (queue.load(std::memory_order_relaxed) != nullptr) return {};
  const auto memory = sys::map_anonymous(sizeof(Fifo), "a queue of lines to flush");
  if (!memory) return std::unexpected(memory.error());
  // Pairs with the acquire in fifo() and recent().
  queue.store(new (*memory) Fifo, std::memory_order_release);
  if (&queue == &fifo_) runtime_.flushers().count_pusher(1);
  return {};
}

base::Expected<void> Thread::set_way(Way way) {
  if (way == Way::kDecoupled || way == Way::kProactive) {
    if (auto taken = take_queue(way == Way::kDecoupled ? fifo_ : recent_); !taken) return taken;
    if (auto started = runtime_.flushers().start(runtime_, runtime_.settings().flushers); !started)
      return started;
  }
  Inside inside(*this);
  policy_.ask(way);
  forget_place();
  return {};
}

void Thread::enter_child() {
  Inside inside(*this);
  id_ = sys::thread_id();
  for (Fifo* const queue : {fifo(), recent()})
    if (queue != nullptr) queue->forget();
  forget_place();
}

Counts Thread::counts() const {
  const auto get = [](const std::atomic<uint64_t>& count) { return count.load(std::memory_order_relaxed); };
  return {.asked_lines = counts_.asked_lines(),
          .executed_lines = get(counts_.now_lines) + get(counts_.late_lines),
          .pushed_lines = get(counts_.pushed_lines),
          .fence_lines = get(counts_.fence_lines),
          .noted_lines = get(counts_.noted_lines),
          .outside_lines = get(counts_.outside_lines),
          .fences = get(counts_.fences),
          .copied_lines = get(counts_.copied_lines),
          .sampled_stores = get(counts_.sampled_stores)};
}

}  // namespace persist
