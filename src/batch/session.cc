// Sessions: they do jobs, and make the table grow if a job finds no room.
#include <cstring>

#include "base/single_writer.h"
#include "batch/table.h"
#include "sys/streaming.h"

namespace batch {

Session::Session(Table& table, Whose whose) : table_(table), gate_(table.has_barrier_), whose_(whose) {
  sys::LockGuard scope(table_.growth_lock_);
  table_.shut_gates();
  next_ = table_.sessions_;
  table_.sessions_ = this;
  if (whose_ == Whose::kCallers) ++table_.callers_sessions_;
  table_.note_session_count();
  table_.choose_run();
  table_.open_gates();
}

Session::~Session() {
  sys::LockGuard scope(table_.growth_lock_);
  table_.shut_gates();
  if (area_ != nullptr) table_.staging_->close_area(area_);
  Session** at = &table_.sessions_;
  while (*at != this) at = &(*at)->next_;
  *at = next_;
  if (whose_ == Whose::kCallers) --table_.callers_sessions_;
  table_.gone_ += counts();
  table_.note_session_count();
  table_.choose_run();
  table_.open_gates();
}

Table::Counts Session::counts() const {
  return {.records = records_.load(std::memory_order_relaxed),
          .missed = missed_.load(std::memory_order_relaxed),
          .dropped = dropped_.load(std::memory_order_relaxed),
          .keys = keys_.load(std::memory_order_relaxed),
          .answers = answers_.load(std::memory_order_relaxed)};
}

// Calls what() -> Did inside the gate, again and again, until all is done, or until there is no room and the table cannot grow.
template <class Do>
Session::Ran Session::run_with_room(Do what) {
  bool has_dropped = false;
  Ran ran = Ran::kAll;
  for (bool is_done = false; !is_done;) {
    gate_.enter();
    const uint64_t growths = table_.growths_.load(std::memory_order_relaxed);
    const Did did = what();
    gate_.leave();
    is_done = did == Did::kAll || did == Did::kNoMemory;
    if (did == Did::kNoMemory) ran = Ran::kNoMemory;
    if (is_done || did == Did::kWait) continue;
    const Table::Grown grown = table_.grow(growths);
    drops_ = false;
    if (grown == Table::Grown::kYes) continue;
    // The next try drops staged changes that have no room.
    drops_ = grown == Table::Grown::kNo && did == Did::kNoStagedRoom;
    has_dropped |= drops_;
    is_done = !drops_;
    if (is_done) ran = grown == Table::Grown::kNo ? Ran::kFull : Ran::kNoMemory;
  }
  drops_ = false;
  return ran == Ran::kAll && has_dropped ? Ran::kFull : ran;
}

void Session::apply(Job& job) {
  job.functions = job.own_function != nullptr ? job.own_function : table_.functions_;
  const size_t inserted = job.inserted_count, removed = job.removed_count;
  job.done_count = table_.run_(table_.buckets_, job, job.done_count);
  base::increase(records_, static_cast<int64_t>(job.inserted_count - inserted) -
                               static_cast<int64_t>(job.removed_count - removed));
}

void Session::apply_staged(Job& job) {
  bool has_dropped = false;
  for (apply(job); job.done_count < job.count && drops_; apply(job)) {
    ++job.done_count;
    base::increase(dropped_, uint64_t{1});
    has_dropped = true;
  }
  // For the changes that follow, the table may grow again.
  if (has_dropped && table_.options_.grows) drops_ = false;
  base::increase(missed_, uint64_t{job.absent_count});
}

Session::Ran Session::run(Job& job) {
  if (!job.begin(table_.options_.shape, table_.options_.key_space)) return Ran::kOutside;
  const bool wants_answers = job.wants_answers();
  bool is_staged = false, is_tried = false;
  const Ran ran = run_with_room([&] {
    is_tried = table_.choice_.is_trying();
    const uint64_t begin = is_tried ? sys::cycle_clock() : 0;
    Staging* const staging = table_.staging_.get();
    is_staged = staging != nullptr && !wants_answers;
    const Did did = is_staged ? stage(*staging, job) : settle_and_apply(staging, job);
    if (is_tried) {
      base::increase(tried_cycles_, sys::cycle_clock() - begin);
      base::increase(tried_keys_, uint64_t{job.done_count});
      if (wants_answers) base::increase(tried_answers_, uint64_t{job.done_count});
    }
    return did;
  });
  note_keys(job.count, wants_answers);
  if (is_tried) table_.go_on_with_choice(*this);
  // If the call itself staged nothing, and all of its keys are done, it does not report that staged changes of others were dropped.
  if (!is_staged && job.done_count == job.count && ran == Ran::kFull) return Ran::kAll;
  if (!is_staged || ran != Ran::kAll || table_.options_.stale_changes_max == 0) return ran;
  stale_changes_ += job.count;
  return stale_changes_ < table_.options_.stale_changes_max ? ran : flush();
}

Session::Did Session::did_of(Staged staged) {
  switch (staged) {
    case Staged::kDone: return Did::kAll;
    case Staged::kNoRoom: return Did::kNoStagedRoom;
    case Staged::kWait: return Did::kWait;
  }
  return Did::kAll;
}

Session::Did Session::stage(Staging& staging, Job& job) {
  if (area_ == nullptr) {
    auto area = staging.open_area();
    // If staging is the table's own choice, the lack of an area is no error: the session does without staging.
    if (!area && table_.chooses_.load(std::memory_order_relaxed)) return settle_and_apply(&staging, job);
    if (!area) return Did::kNoMemory;
    area_ = *area;
  }
  return did_of(staging.put(*this, job));
}

Session::Did Session::settle_and_apply(Staging* staging, Job& job) {
  if (staging != nullptr)
    if (const Staged settled = staging->settle(*this, job); settled != Staged::kDone) return did_of(settled);
  apply(job);
  return job.done_count == job.count ? Did::kAll : Did::kNoRoom;
}

// Counts keys. Now and then it lets the table check whether the share of keys that want answers has changed since the table chose its engine.
void Session::note_keys(uint64_t keys, bool want_answers) {
  base::increase(keys_, keys);
  if (want_answers) base::increase(answers_, keys);
  if (!table_.chooses_.load(std::memory_order_relaxed)) return;
  recent_keys_ += keys;
  if (recent_keys_ < kRecentKeys) return;
  recent_keys_ = 0;
  table_.look_at_answers();
}

Session::Ran Session::flush() {
  stale_changes_ = 0;
  return run_with_room([&] {
    Staging* const staging = table_.staging_.get();
    return staging == nullptr ? Did::kAll : did_of(staging->flush(*this));
  });
}

uint32_t Session::copy_bucket(uint64_t index, std::byte* copy) const {
  const Head head = table_.buckets_.lock(index);
  memcpy(copy, table_.buckets_.bucket(index), head.count * table_.options_.shape.record_bytes());
  table_.buckets_.unlock(index, head);
  return head.count;
}

}  // namespace batch
