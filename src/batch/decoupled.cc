#include "batch/decoupled.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>

#include "batch/table.h"
#include "sys/spin.h"
#include "sys/threads.h"

namespace batch {

struct alignas(base::kLineBytes) Decoupled::Flusher {
  bool has_work() const {
    return done.load(std::memory_order_relaxed) < asked.load(std::memory_order_acquire) &&
           !is_stuck.load(std::memory_order_acquire);
  }
  // False: the flusher has to end.
  bool await_work() {
    for (int looks = 0;; ++looks) {
      if (ends.load(std::memory_order_acquire)) return false;
      if (has_work()) return true;
      if (looks < kLooks) {
        _mm_pause();
        continue;
      }
      const uint32_t key = event.prepare();
      if (has_work() || ends.load(std::memory_order_acquire))
        event.cancel();
      else
        event.wait(key);
    }
  }
  void send_on(bool drops_now) {
    if (!is_stuck.load(std::memory_order_relaxed)) return;
    if (drops_now) drops.store(true, std::memory_order_relaxed);
    // Pairs with the acquire in has_work().
    is_stuck.store(false, std::memory_order_release);
    event.notify_all();
  }

  static constexpr int kLooks = 2000;  // for work, before it sleeps

  Decoupled* decoupled = nullptr;
  std::unique_ptr<uint64_t[]> fifo;  // has room for all halves
  uint64_t fifo_size = 0;
  uint32_t done_of_next = 0;  // how many of the next half's changes are made already
  sys::Thread thread;
  alignas(base::kLineBytes) std::atomic<uint64_t> asked{0};  // by the foreground; publishes the FIFO
  alignas(base::kLineBytes) std::atomic<uint64_t> done{0};   // publishes that halves are empty
  std::atomic<bool> is_stuck{false};
  std::atomic<bool> drops{false};  // drop those changes of the next half that have no room
  std::atomic<bool> ends{false};
  sys::EventCount event;
};

base::Expected<std::unique_ptr<Staging>> Decoupled::make(Table& table, const Shape& shape, uint64_t bytes,
                                                         uint64_t key_space, uint64_t home_count,
                                                         uint32_t flusher_count) {
  const uint64_t each = 2 * StagedCells(shape, kHalfBytes).bytes_each() + sizeof(Head);
  const uint64_t count = std::min(bytes / each, home_count);
  if (count == 0)
    return base::failure(EINVAL, "cache-buckets take ", each, " bytes each, and there are only ", bytes);
  std::unique_ptr<Decoupled> made(new (std::nothrow) Decoupled(table, shape, Spread::of(key_space, count)));
  if (made == nullptr) return base::failure(ENOMEM, "no memory for cache-buckets");
  if (auto opened = made->cells_.open(2 * count, count * sizeof(Head)); !opened)
    return std::unexpected(opened.error());
  made->heads_ = made->cells_.beside<Head>();  // zeros, that is empty
  if (auto started = made->start_flushers(static_cast<uint32_t>(std::min<uint64_t>(flusher_count, count)));
      !started)
    return std::unexpected(started.error());
  return made;
}

Decoupled::Decoupled(Table& table, const Shape& shape, const Spread& regions)
    : table_(table), shape_(shape), regions_(regions), cells_(shape, kHalfBytes) {}

base::Expected<void> Decoupled::start_flushers(uint32_t count) {
  flushers_.reset(new (std::nothrow) Flusher[count]);
  if (flushers_ == nullptr) return base::failure(ENOMEM, "no memory for ", count, " flushers");
  regions_each_ = (regions_.bucket_count() - 1) / count + 1;
  for (; flusher_count_ < count; ++flusher_count_) {
    Flusher& flusher = flushers_[flusher_count_];
    flusher.decoupled = this;
    flusher.fifo_size = 2 * regions_each_;
    flusher.fifo.reset(new (std::nothrow) uint64_t[flusher.fifo_size]);
    if (flusher.fifo == nullptr) return base::failure(ENOMEM, "no memory for a flusher's FIFO");
    auto started = sys::start_thread(&Decoupled::run_flusher, &flusher, "batch-flusher");
    if (!started) return std::unexpected(started.error());
    flusher.thread = *started;
  }
  return {};
}

Decoupled::~Decoupled() {
  for (uint32_t i = 0; i < flusher_count_; ++i) {
    flushers_[i].ends.store(true, std::memory_order_release);
    flushers_[i].event.notify_all();
  }
  for (uint32_t i = 0; i < flusher_count_; ++i) sys::join_thread(flushers_[i].thread);
}

Decoupled::Flusher& Decoupled::flusher_of(uint64_t region) const { return flushers_[region / regions_each_]; }

void Decoupled::run_flusher(void* argument) {
  Flusher& flusher = *static_cast<Flusher*>(argument);
  // Opened with the first request, not before: the thread that starts the flushers may hold the gates shut.
  std::optional<Session> session;
  while (flusher.await_work()) {
    if (!session) session.emplace(flusher.decoupled->table_, Session::Whose::kTables);
    session->inside([&] {
      while (flusher.has_work() && !session->must_leave()) {
        session->set_drops(flusher.drops.exchange(false, std::memory_order_relaxed));
        if (!flusher.decoupled->empty_next(*session, flusher))
          flusher.is_stuck.store(true, std::memory_order_release);
      }
    });
  }
}

// Empties the flusher's next half. False: a change has no room. REQUIRES: the caller is the flusher's thread, in its gate; or nobody else is in a gate.
bool Decoupled::empty_next(Session& session, Flusher& flusher) const {
  const uint64_t done = flusher.done.load(std::memory_order_relaxed);
  const uint64_t half = flusher.fifo[done % flusher.fifo_size];
  const uint32_t count = heads_[half / 2].counts[half % 2];
  Job job = cells_.job_of(half, count);
  job.done_count = flusher.done_of_next;
  session.apply_staged(job);
  const bool is_empty = job.done_count == count;
  flusher.done_of_next = is_empty ? 0 : static_cast<uint32_t>(job.done_count);
  // Pairs with the acquires in wait() and in has().
  if (is_empty) flusher.done.store(done + 1, std::memory_order_release);
  return is_empty;
}

// Asks to empty the region's active half, and returns its ticket. The other half becomes active. REQUIRES: the half is not asked for yet; the caller is
// the foreground.
uint64_t Decoupled::ask(uint64_t region) {
  Head& head = heads_[region];
  Flusher& flusher = flusher_of(region);
  const uint64_t asked = flusher.asked.load(std::memory_order_relaxed);
  flusher.fifo[asked % flusher.fifo_size] = 2 * region + head.active;
  head.tickets[head.active] = asked + 1;
  head.active = 1 - head.active;
  flusher.asked.store(asked + 1, std::memory_order_release);
  flusher.event.notify_all();
  return asked + 1;
}

Staged Decoupled::wait(const Session& session, Flusher& flusher, uint64_t ticket) {
  flusher.send_on(session.drops());
  for (int spins = 0; flusher.done.load(std::memory_order_acquire) < ticket; ++spins) {
    if (session.must_leave()) return Staged::kWait;
    if (flusher.is_stuck.load(std::memory_order_acquire)) return Staged::kNoRoom;
    sys::spin(spins);
  }
  return Staged::kDone;
}

Staged Decoupled::put(Session& session, Job& job) {
  sys::LockGuard scope(foreground_);
  for (; job.done_count < job.count; ++job.done_count) {
    const std::byte* const key = job.keys + job.done_count * job.key_stride;
    const uint64_t region = regions_.home(load_key(key, shape_.key_bytes));
    Head& head = heads_[region];
    const uint32_t active = head.active;
    if (head.tickets[active] != 0) {
      if (const Staged waited = wait(session, flusher_of(region), head.tickets[active]);
          waited != Staged::kDone)
        return waited;
      head.tickets[active] = 0;
      head.counts[active] = 0;
    }
    const uint32_t at = head.counts[active]++;
    cells_.put(2 * region + active, at, job);
    if (at + 1 == cells_.capacity()) ask(region);
  }
  return Staged::kDone;
}

bool Decoupled::has(uint64_t region, uint32_t half, const Key& key) const {
  const Head& head = heads_[region];
  // A half that has been emptied has no changes; and only the foreground may fill it again, which is the caller.
  if (head.tickets[half] != 0 &&
      flusher_of(region).done.load(std::memory_order_acquire) >= head.tickets[half])
    return false;
  return cells_.has(2 * region + half, head.counts[half], key);
}

// Waits for each flusher until it has done the half with this ticket; 0: does not wait for the flusher.
Staged Decoupled::wait_for(const Session& session, const Tickets& tickets) const {
  for (uint32_t i = 0; i < flusher_count_; ++i) {
    if (tickets[i] == 0) continue;
    if (const Staged waited = wait(session, flushers_[i], tickets[i]); waited != Staged::kDone) return waited;
  }
  return Staged::kDone;
}

// Asks to empty all halves that have changes. REQUIRES: the caller is the foreground, or nobody else is in a gate.
void Decoupled::ask_all() {
  for (uint64_t region = 0; region < regions_.bucket_count(); ++region) {
    const Head& head = heads_[region];
    if (head.tickets[head.active] == 0 && head.counts[head.active] != 0) ask(region);
  }
}

Staged Decoupled::settle(Session& session, const Job& job) {
  Tickets tickets = {};
  {
    sys::LockGuard scope(foreground_);
    for (size_t i = 0; i < job.count; ++i) {
      const Key key = load_key(job.keys + i * job.key_stride, shape_.key_bytes);
      const uint64_t region = regions_.home(key);
      for (uint32_t half = 0; half < 2; ++half) {
        if (!has(region, half, key)) continue;
        const uint64_t asked = heads_[region].tickets[half];
        uint64_t& ticket = tickets[region / regions_each_];
        ticket = std::max(ticket, asked != 0 ? asked : ask(region));
      }
    }
  }
  return wait_for(session, tickets);
}

Staged Decoupled::flush(Session& session) {
  Tickets tickets = {};
  {
    sys::LockGuard scope(foreground_);
    ask_all();
    for (uint32_t i = 0; i < flusher_count_; ++i)
      tickets[i] = flushers_[i].asked.load(std::memory_order_relaxed);
  }
  return wait_for(session, tickets);
}

bool Decoupled::flush_alone(Session& session) {
  ask_all();
  for (uint32_t i = 0; i < flusher_count_; ++i) {
    Flusher& flusher = flushers_[i];
    while (flusher.done.load(std::memory_order_relaxed) < flusher.asked.load(std::memory_order_relaxed))
      if (!empty_next(session, flusher)) return false;
    flusher.is_stuck.store(false, std::memory_order_relaxed);
  }
  return true;
}

uint64_t Decoupled::staged_count() const {
  uint64_t count = 0;
  for (uint64_t region = 0; region < regions_.bucket_count(); ++region) {
    const Head& head = heads_[region];
    const uint64_t done = flusher_of(region).done.load(std::memory_order_relaxed);
    for (uint32_t half = 0; half < 2; ++half)
      if (head.tickets[half] == 0 || head.tickets[half] > done) count += head.counts[half];
  }
  return count;
}

}  // namespace batch
