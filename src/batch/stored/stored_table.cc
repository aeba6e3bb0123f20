// What sessions and makers of a stored table share: waiting, staging, and the log.
#include "batch/stored/stored_table.h"

namespace batch {

void StoredTable::wait(uint64_t timeout_ns) {
  // A thread that changes something does so with the lock, and notifies afterwards: nothing is missed between this and the wait.
  const uint32_t key = event_.prepare();
  const Unlocked scope(*this);
  event_.wait(key, timeout_ns);
}

// Waits until a change may be staged. Fails with the makers' error if they have met one meanwhile and have made nothing.
base::Expected<void> StoredTable::wait_for_room() {
  if (!has_room()) event_.notify_all();
  uint64_t errors = error_count_, made = counts_.regions_made;
  while (!has_room()) {
    if (error_count_ != errors && counts_.regions_made == made) return std::unexpected(error_);
    errors = error_count_;
    made = counts_.regions_made;
    wait();
  }
  return {};
}

void StoredTable::stage(uint32_t index, Code code, const Key& key, const std::byte* key_bytes,
                        const std::byte* given) {
  Region& region = regions_[index];
  if (region.staged.is_empty()) region.staged_from = record_begin_;
  staged_.append(region.staged, code, key, key_bytes, given);
  if (region.staged.count == kLongList && !region.is_making) long_list_ = index;
}

// Makes room for a record: writes the buffer; or, if the ring is full, makes all changes and takes a checkpoint.
base::Expected<void> StoredTable::make_log_room(Maker& maker) {
  if (!log_->is_full()) return write_log(false);
  if (auto made = make_all(maker); !made) return made;
  // Another thread may have taken a checkpoint meanwhile.
  return log_->is_full() ? checkpoint(*maker.access) : base::Expected<void>();
}

base::Expected<void> StoredTable::write_log(bool to_flush) {
  if (!log_->begin_write()) {
    wait();
    return {};
  }
  record_begin_ = log_->end();  // which may have moved to the next block
  base::Expected<void> written;
  {
    const Unlocked scope(*this);
    written = log_->write(to_flush);
  }
  log_->end_write(written.has_value(), to_flush);
  event_.notify_all();
  return written;
}

base::Expected<void> StoredTable::sync_log() {
  const uint64_t end = log_->end();
  while (!log_->is_durable(end))
    if (auto written = write_log(true); !written) return written;
  return {};
}

}  // namespace batch
