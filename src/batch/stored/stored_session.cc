// Sessions of a stored table: they stage changes, and answer reads.
#include <algorithm>

#include "batch/stored/stored_table.h"

namespace batch {

base::Expected<void> StoredSession::open(StoredTable& table) {
  if (auto started = table.start(); !started) return started;
  auto access = table.store_->open_access();
  if (!access) return std::unexpected(access.error());
  maker_.access = std::move(*access);
  table_ = &table;
  return {};
}

base::Expected<void> StoredSession::run(Job& job) {
  if (!job.begin(table_->shape_, table_->options_.key_space))
    return base::failure(EINVAL, "table: a key is not below the key space, ", table_->options_.key_space);
  return job.wants_answers() ? answer(job) : stage(job);
}

base::Expected<void> StoredSession::stage(Job& job) {
  StoredTable& table = *table_;
  const Shape& shape = table.shape_;
  while (job.done_count < job.count) {
    // The lock is released after each stretch, so that other threads get their turn.
    sys::LockGuard scope(table.lock_);
    ChangeLog* const log = table.log_.get();
    const size_t begin = job.done_count;
    uint64_t most = std::min<uint64_t>(job.count - begin, kStretch);
    if (log != nullptr) most = std::min(most, log->room());
    uint32_t staged = 0;
    const auto given_at = [&](size_t i) {
      return job.given == nullptr ? nullptr : job.given + i * job.given_stride;
    };
    const auto key_at = [&](uint64_t i) { return job.keys + (begin + i) * job.key_stride; };
    uint64_t positions[kRing];
    const auto list_of = [&](uint64_t i) -> const StagedChanges::List& {
      return table.regions_[table.find(positions[i % kRing])].staged;
    };
    const auto fetch_directory = [&](uint64_t i) {
      positions[i % kRing] = table.positions_.of(load_key(key_at(i), shape.key_bytes));
      __builtin_prefetch(table.directory_at(positions[i % kRing]));
    };
    for (uint64_t i = 0; i < std::min(most, 3 * kAhead); ++i) fetch_directory(i);
    for (; staged < most && table.has_room(); ++staged) {
      if (staged + 3 * kAhead < most) fetch_directory(staged + 3 * kAhead);
      if (staged + 2 * kAhead < most) __builtin_prefetch(&list_of(staged + 2 * kAhead), 1);
      if (staged + kAhead < most) table.staged_.fetch_head(list_of(staged + kAhead));
      if (staged + kAhead / 2 < most) table.staged_.fetch_end(list_of(staged + kAhead / 2));
      const std::byte* const at = key_at(staged);
      table.stage(table.find(positions[staged % kRing]), job.code, load_key(at, shape.key_bytes), at,
                  given_at(begin + staged));
    }
    if (staged > 0) {
      table.append(staged, [&](uint32_t i, std::byte* to) {
        ChangeLog::fill_entry(shape, job.code, key_at(i), given_at(begin + i), to);
      });
      job.done_count += staged;
      table.counts_.keys += staged;
      if (table.wants_making()) table.event_.notify_all();
      continue;
    }
    auto has_room = most > 0 ? table.wait_for_room() : table.make_log_room(maker_);
    if (!has_room) return has_room;
  }
  return {};
}

base::Expected<void> StoredSession::flush() {
  sys::LockGuard scope(table_->lock_);
  if (auto made = table_->make_all(maker_); !made) return made;
  return table_->tell_dropped();
}

base::Expected<void> StoredSession::sync() {
  sys::LockGuard scope(table_->lock_);
  if (table_->log_ != nullptr) return table_->sync_log();
  if (auto made = table_->make_all(maker_); !made) return made;
  if (auto done = table_->checkpoint(*maker_.access); !done) return done;
  return table_->tell_dropped();
}

// ---- Answers
//
// Keys are answered in groups:
//  1 with the lock: look_for() says which pages may have them
//  2 without it: the pages are read together, and the records are searched in them
//  3 with the lock, one key after the other: unless the region has been made meanwhile, the waiting changes are made in a copy of the value, and then the
//    job's action. The resulting record is staged: an upsert of its value, or a remove
// If the region has been made meanwhile, this key and those after it begin again with step 1.
base::Expected<void> StoredSession::answer(Job& job) {
  StoredTable& table = *table_;
  const uint32_t entry_bytes = 1 + table.shape_.record_bytes();
  if (!pages_.reserve(kWindow * kPageBytes)) return base::failure(ENOMEM, "table: no memory to read pages");
  entries_.reserve(size_t{kWindow} * entry_bytes);
  while (job.done_count < job.count) {
    const size_t begin = job.done_count;
    const uint32_t count = look_for(job, static_cast<uint32_t>(std::min<size_t>(kWindow, job.count - begin)));
    BucketStore::Piece pieces[kWindow];
    uint32_t piece_count = 0;
    for (uint32_t i = 0; i < count; ++i)
      if (wanted_[i].page_count > 0)
        pieces[piece_count++] = {
            .offset = wanted_[i].offset,
            .to = pages_.first(kWindow * kPageBytes)
                      .subspan(wanted_[i].first_page * kPageBytes, wanted_[i].page_count * kPageBytes)};
    // By now a page may belong to another region, or somebody may be writing it: step 3 finds that out.
    base::Expected<void> read;
    if (piece_count > 0) read = maker_.access->read(std::span(pieces).first(piece_count));
    if (!read) return read;
    for (uint32_t i = 0; i < count; ++i) find_in_pages(job.keys + (begin + i) * job.key_stride, wanted_[i]);

    sys::LockGuard scope(table.lock_);
    if (job.code.action != Action::kRead) {
      const bool has_log_room = table.log_ == nullptr || table.log_->room() > 0;
      if (auto made = has_log_room ? table.wait_for_room() : table.make_log_room(maker_); !made) return made;
    }
    base::Expected<void> answered = answer_window(job, count);
    table.counts_.keys += job.done_count - begin;
    table.counts_.answers += job.done_count - begin;
    if (!answered) return answered;
  }
  return {};
}

// Step 3. Answers the keys from the first on, until one has to begin again, has no room for its change, or lies in a damaged page.
base::Expected<void> StoredSession::answer_window(Job& job, uint32_t count) {
  StoredTable& table = *table_;
  const uint32_t entry_bytes = 1 + table.shape_.record_bytes();
  entries_.clear();
  const auto has_room = [&] {
    const size_t changes = entries_.size() / entry_bytes;
    return table.has_room() && (table.log_ == nullptr || changes < table.log_->room());
  };
  base::Expected<void> answered;
  for (uint32_t i = 0; i < count; ++i) {
    if (job.code.action != Action::kRead && !has_room()) break;
    const Wanted& wanted = wanted_[i];
    if (table.regions_[wanted.region].version != wanted.version) break;
    if (wanted.damaged_at != 0) {
      answered = std::unexpected(table.damaged(wanted.damaged_at));
      break;
    }
    answer_one(job, wanted);
    ++job.done_count;
  }
  if (const auto changes = static_cast<uint32_t>(entries_.size() / entry_bytes); changes > 0) {
    table.append(changes, [&](uint32_t i, std::byte* to) {
      memcpy(to, entries_.data() + size_t{i} * entry_bytes, entry_bytes);
    });
    if (table.wants_making()) table.event_.notify_all();
  }
  return answered;
}

// Step 1, for as many keys as have room for their pages. Returns how many.
uint32_t StoredSession::look_for(const Job& job, uint32_t most) {
  StoredTable& table = *table_;
  sys::LockGuard scope(table.lock_);
  uint32_t pages = 0;
  for (uint32_t i = 0; i < most; ++i) {
    const Key key = load_key(job.keys + (job.done_count + i) * job.key_stride, table.shape_.key_bytes);
    Wanted& wanted = wanted_[i];
    wanted = {.position = table.positions_.of(key)};
    wanted.region = table.find(wanted.position);
    const StoredTable::Region& region = table.regions_[wanted.region];
    wanted.version = region.version;
    wanted.made = region.entry.made;
    // After a change that does not depend on the old record, no page is needed.
    bool is_known = false;
    const auto look = [&](Code code, const std::byte*) {
      is_known |= code.action == Action::kUpsert || code.action == Action::kRemove;
    };
    table.staged_.for_each_of(region.making, key, look);
    table.staged_.for_each_of(region.staged, key, look);
    if (is_known || region.entry.page_count == 0) continue;
    // The record lies in the last page that begins at or before its position. Fences have only 32 bits: pages with the same fence as the key may begin
    // before or after it, so all of these are read, and the page before them.
    const uint32_t fence = StoredTable::fence_of(wanted.position, region.entry.depth);
    const uint32_t* const begin = region.fences;
    const uint32_t* const end = begin + region.entry.page_count;
    const uint32_t* const last = std::upper_bound(begin, end, fence);
    if (last == begin) continue;  // the key lies before the first record
    const uint32_t* first = std::lower_bound(begin, end, fence);
    if (first != begin) --first;
    const auto page_count = static_cast<uint32_t>(last - first);
    if (pages + page_count > kWindow) return i;
    wanted.first_page = pages;
    wanted.page_count = page_count;
    wanted.offset = table.slot_offset(region.entry.slot) + static_cast<uint64_t>(first - begin) * kPageBytes;
    pages += page_count;
  }
  return most;
}

// Step 2.
void StoredSession::find_in_pages(const std::byte* key_bytes, Wanted& wanted) const {
  const Shape& shape = table_->shape_;
  const Key key = load_key(key_bytes, shape.key_bytes);
  for (uint32_t i = 0; i < wanted.page_count; ++i) {
    const std::span<const std::byte> page =
        pages_.first(kWindow * kPageBytes).subspan((wanted.first_page + i) * kPageBytes, kPageBytes);
    uint32_t count = 0;
    if (!read_page(shape, page, wanted.made, count)) {
      wanted.damaged_at = wanted.offset + i * kPageBytes;
      return;
    }
    const std::byte* const records = page_records(page);
    const auto position_at = [&](uint32_t at) {
      return table_->positions_.of(load_key(records + size_t{at} * shape.record_bytes(), shape.key_bytes));
    };
    uint32_t low = 0, high = count;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (position_at(middle) < wanted.position)
        low = middle + 1;
      else
        high = middle;
    }
    for (; low < count && position_at(low) == wanted.position; ++low) {
      const std::byte* const record = records + size_t{low} * shape.record_bytes();
      if (load_key(record, shape.key_bytes) == key) wanted.record = record;
    }
  }
}

void StoredSession::answer_one(Job& job, const Wanted& wanted) {
  StoredTable& table = *table_;
  const Shape& shape = table.shape_;
  const size_t i = job.done_count;
  const std::byte* const key_bytes = job.keys + i * job.key_stride;
  const Key key = load_key(key_bytes, shape.key_bytes);
  const StoredTable::Region& region = table.regions_[wanted.region];
  std::byte value[kMaxRecordBytes];
  bool is_there = wanted.record != nullptr;
  if (is_there) memcpy(value, wanted.record + shape.key_bytes, shape.value_bytes);
  MergeCounts counts;
  const auto make = [&](Code code, const std::byte* record) {
    apply_change(shape, table.functions_, code, record + shape.key_bytes, value, is_there, counts);
  };
  table.staged_.for_each_of(region.making, key, make);
  table.staged_.for_each_of(region.staged, key, make);

  const bool was_there = is_there;
  if (job.code.action == Action::kRead) {
    if (is_there) memcpy(job.read + i * shape.value_bytes, value, shape.value_bytes);
  } else {
    const Change* const functions = job.own_function != nullptr ? job.own_function : table.functions_;
    const std::byte* const given = job.given == nullptr ? nullptr : job.given + i * job.given_stride;
    apply_change(shape, functions, job.code, given, value, is_there, counts);
    if (was_there || is_there) {
      const Code code = {.action = is_there ? Action::kUpsert : Action::kRemove};
      table.stage(wanted.region, code, key, key_bytes, is_there ? value : nullptr);
      const size_t at = entries_.size();
      entries_.resize(at + 1 + shape.record_bytes());
      ChangeLog::fill_entry(shape, code, key_bytes, is_there ? value : nullptr, entries_.data() + at);
    }
  }
  Outcome outcome = Outcome::kDone;
  if (!was_there) outcome = is_there ? Outcome::kInserted : Outcome::kAbsent;
  if (job.outcomes != nullptr) job.outcomes[i] = outcome;
  job.absent_count += outcome == Outcome::kAbsent;
  job.inserted_count += outcome == Outcome::kInserted;
  job.removed_count += was_there && !is_there;
}

// ---- All records

base::Expected<uint64_t> StoredSession::read_region(uint64_t& position) {
  StoredTable& table = *table_;
  const uint32_t record_bytes = table.shape_.record_bytes();
  sys::LockGuard scope(table.lock_);
  for (;;) {
    const uint32_t index = table.find(position);
    const StoredTable::Region& region = table.regions_[index];
    const uint32_t version = region.version;
    const MapEntry entry = region.entry;
    const uint64_t end = region.end();
    // The changes are copied, since they may be made, and freed, while the lock is released.
    const uint64_t count = uint64_t{region.making.count} + region.staged.count;
    if (!maker_.copies.reserve(count * record_bytes) || !table.gather(region.making, region.staged, maker_))
      return base::failure(ENOMEM, "table: no memory to read");
    const uint64_t prefix = region.prefix;
    for (size_t i = 0; i < maker_.changes.size(); ++i) {
      std::byte* const copy = maker_.copies.data() + i * record_bytes;
      memcpy(copy, maker_.changes[i].record, record_bytes);
      maker_.changes[i].record = copy;
    }
    base::Expected<Merge::Result> made;
    {
      const StoredTable::Unlocked unlocked(table);
      made = table.make_records(prefix, entry, maker_);
    }
    if (table.regions_[index].version != version) continue;
    if (!made) return std::unexpected(made.error());
    position = end;
    return made->count;
  }
}

}  // namespace batch
