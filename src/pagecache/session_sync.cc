// What leaves a cache: dirty pages that are written back (to make room, before room is needed, or all of a file), and files that are
// removed.
//
// Whoever writes a page back to get its frame also writes the adjacent pages of the file as far as they are dirty, which still is only one
// write.
//
// A page is written from a copy, which is made while the page has a reader: a call that wants to write to it waits for the copy, not for
// the device. If the write fails, the page becomes dirty again.
#include <algorithm>

#include "base/check.h"
#include "pagecache/session.h"
#include "storage/piece_io.h"
#include "sys/kernel.h"

namespace pagecache {

// Pages whose cleaning has begun, copied in the order of their places.
struct Session::WriteBatch {
  Place places[kBatchPages];
  uint32_t count = 0;
  uint32_t first[kBatchPages];  // for each Io: its first place
  storage::PieceIos<kBatchPages> ios;
  std::span<std::byte> copies;
  uint32_t most = 0;    // for how many pages there is room
  WriteCounts written;  // since the batch was made
};

base::Expected<Session::WriteBatch*> Session::new_batch(const storage::Buffer& memory,
                                                        const storage::Buffer& copies) {
  if (memory.bytes().empty() || copies.bytes().empty())
    return base::failure(ENOMEM, "page cache: no memory to write pages back");
  WriteBatch* const batch = new (memory.bytes().data()) WriteBatch;
  batch->copies = copies.bytes();
  batch->most =
      static_cast<uint32_t>(std::min<size_t>(kBatchPages, copies.bytes().size() / cache_->page_bytes()));
  return batch;
}

// Writes back the way's page if it is dirty and nobody holds it.
base::Expected<void> Session::clean(PageSet& set, uint32_t index) {
  PageKey key;
  {
    sys::LockGuard scope(set.lock());
    const Way& way = partition().way(set, index);
    if (!way.is_cleanable()) return {};
    key = way.key();
  }
  return clean(key);
}

// Writes back the page with its run. If that fails, another page of the run may be at fault, so this one is then written alone.
base::Expected<void> Session::clean(PageKey key) {
  const storage::Buffer memory(pool_, sizeof(WriteBatch)),
      copies(pool_, std::max(kRunBytes, cache_->page_bytes()));
  auto made = new_batch(memory, copies);
  if (!made) return std::unexpected(made.error());
  WriteBatch& batch = **made;
  begin_run(key, batch);
  const uint32_t count = batch.count;
  if (count == 0) return {};
  auto done = write_back(cache_->file_of(key), batch);
  const bool is_alone = count == 1 && batch.places[0].page == File::page_of(key);
  if (done || is_alone) return done;
  if (begin_clean(key, batch) != Clean::kBegun) return {};
  return write_back(cache_->file_of(key), batch);
}

// Writes back that dirty page of the set which would leave first. Errors are ignored: the page becomes dirty again, and whoever needs its frame,
// and each sync, will get the error.
void Session::clean_first(PageSet& set) {
  PageKey key;
  {
    sys::LockGuard scope(set.lock());
    const cache::WayMask first = partition().dirty_victims(set, 1);
    if (first == 0) return;
    key = partition().way(set, static_cast<uint32_t>(std::countr_zero(first))).key();
  }
  static_cast<void>(clean(key));
}

// Copies a page whose cleaning has begun. REQUIRES: begin_clean() has made the caller a reader, which this ends.
void Session::add_copy(WriteBatch& batch, const Place& place) {
  const uint64_t page_bytes = cache_->page_bytes();
  Way& way = partition().way(*place.set, place.index);
  memcpy(batch.copies.data() + batch.count * page_bytes, partition().frame(way), page_bytes);
  unshare(*place.set, way);
  batch.places[batch.count++] = place;
}

// Writes what has been copied, consecutive pages by one Io, and ends the pages' cleaning. The batch is empty afterwards.
base::Expected<void> Session::write_back(File& file, WriteBatch& batch) {
  const uint64_t page_bytes = cache_->page_bytes();
  const std::span places = std::span(batch.places).first(batch.count);
  batch.count = 0;
  if (file.has_checksums())
    for (size_t i = 0; i < places.size(); ++i)
      file.seal(places[i].page, batch.copies.data() + i * page_bytes);
  batch.ios.clear();
  for (uint32_t begin = 0, end = 0; begin < places.size(); begin = end) {
    uint64_t bytes = 0;
    do bytes += file.device_bytes_of(places[end].page);
    while (++end < places.size() && places[end].page == places[end - 1].page + 1);
    batch.first[batch.ios.size()] = begin;
    batch.ios.add(storage::Operation::kWrite, file.device_offset_of(places[begin].page),
                  batch.copies.data() + begin * page_bytes, bytes);
  }
  auto channel = channel_of(file);
  if (channel && batch.ios.size() != 0) (*channel)->run(batch.ios.all());
  base::Expected<void> result;
  if (!channel) result = std::unexpected(channel.error());
  for (size_t i = 0; i < batch.ios.size(); ++i) {
    const storage::Io& io = batch.ios[i];
    if (channel && !io.whole() && result)
      result = std::unexpected(io_error(file, "write", io.offset_bytes, io));
    const size_t end = i + 1 < batch.ios.size() ? batch.first[i + 1] : places.size();
    const bool is_clean = channel && io.whole();
    for (size_t at = batch.first[i]; at < end; ++at) end_clean(places[at], is_clean);
    if (!is_clean) continue;
    batch.written.pages += end - batch.first[i];
    ++batch.written.writes;
  }
  return result;
}

void Session::end_clean(const Place& place, bool is_clean) {
  Way& way = partition().way(*place.set, place.index);
  if (is_clean)
    way.cleaned();
  else if (way.clean_failed())
    cache_->dirty_count_.fetch_add(1, std::memory_order_relaxed);
  if (is_clean) base::increase(writebacks_, uint64_t{1});
  place.set->changed(partition().layout());
}

// Begins to clean a page, and copies it, unless it is clean by now, or somebody is writing to it or cleaning it.
Session::Clean Session::begin_clean(PageKey key, WriteBatch& batch) {
  const Partition::Home home = lock_home(key);
  const uint32_t index = partition().find(home);
  Clean begun = Clean::kIsClean;
  if (index != cache::kNoWay) {
    Way& way = partition().way(home.set, index);
    if (way.begin_clean())
      begun = Clean::kBegun;
    else if (way.is_unsaved())
      begun = Clean::kBusy;
  }
  // With the lock, so that a call that finds nothing more to clean in the set also finds the count lowered.
  if (begun == Clean::kBegun) cache_->dirty_count_.fetch_sub(1, std::memory_order_relaxed);
  home.set.lock().unlock();
  if (begun == Clean::kBegun) add_copy(batch, {.set = &home.set, .index = index, .page = File::page_of(key)});
  return begun;
}

// Is the page dirty and not held, as far as can be seen without the lock?
bool Session::looks_cleanable(PageKey key) {
  const Partition::Home home = home_of(key);
  return home.set.any_of_tag(home.tag, [&](uint32_t index) {
    const Way& way = partition().way(home.set, index);
    return way.key() == key && way.is_cleanable();
  });
}

// Begins to clean a page and its dirty neighbours in the file. REQUIRES: the batch has room for a run.
void Session::begin_run(PageKey key, WriteBatch& batch) {
  if (!looks_cleanable(key)) return;
  const auto next_to = [](PageKey page, int64_t by) {
    return static_cast<PageKey>(static_cast<uint64_t>(page) + static_cast<uint64_t>(by));
  };
  const uint32_t most = std::min(kRunPages, batch.most);
  uint32_t count = 1;
  PageKey first = key, end = next_to(key, 1);
  for (; count < most && looks_cleanable(next_to(first, -1)); ++count) first = next_to(first, -1);
  for (; count < most && looks_cleanable(end); ++count) end = next_to(end, 1);
  for (; first != end; first = next_to(first, 1)) static_cast<void>(begin_clean(first, batch));
}

// For a number of sets at a time
//  1 with the lock of each set, finds its dirty pages that would leave soon
//  2 in the order of files and places, begins to clean a run for each of them, and copies it; takes one lock at a time, and waits for
//    nothing
//  3 writes the pages of one file together
// Once the cleaning of a page has begun, its file stays: a call that removes the file waits for the page.
WriteCounts Session::flush(std::span<PageSet* const> sets) { return flush(pages_to_flush(sets)); }

// Steps 2 and 3.
WriteCounts Session::flush(std::vector<PageKey> keys) {
  cache_->keep_flushed(keys);
  std::ranges::sort(keys);
  const storage::Buffer memory(pool_, sizeof(WriteBatch)), copies(pool_, kCopyBytes);
  auto made = new_batch(memory, copies);
  if (!made) return {};
  WriteBatch& batch = **made;
  PageKey last = PageKey::kNone;
  const auto end_batch = [&] {
    if (batch.count != 0) static_cast<void>(write_back(cache_->file_of(last), batch));
  };
  for (const PageKey key : keys) {
    if (File::number_of(key) != File::number_of(last) ||
        batch.count + std::min(kRunPages, batch.most) > batch.most)
      end_batch();
    begin_run(key, batch);
    last = key;
  }
  end_batch();
  return batch.written;
}

// Step 1. If the cache has many dirty pages, takes more of each set than become dirty while it waits in the queue.
std::vector<PageKey> Session::pages_to_flush(std::span<PageSet* const> sets) {
  std::vector<PageKey> keys;
  for (PageSet* const set : sets) {
    sys::LockGuard scope(set->lock());
    cache::WayMask ways = partition().dirty_victims(*set);
    if (cache_->has_many_dirty()) ways |= partition().dirty_victims(*set, kMaxWays / 4);
    for (; ways != 0; ways &= ways - 1)
      keys.push_back(partition().way(*set, static_cast<uint32_t>(std::countr_zero(ways))).key());
  }
  return keys;
}

// Waits for whoever is writing to the page or cleaning it.
base::Expected<void> Session::wait_until_cleanable(const File& file, PageKey key, uint64_t deadline) {
  base::increase(waits_, uint64_t{1});
  const Partition::Home home = lock_home(key);
  const auto is_busy = [&] {
    const uint32_t index = partition().find(home);
    if (index == cache::kNoWay) return false;
    const Way& way = partition().way(home.set, index);
    return way.is_io() || (way.is_dirty() && way.is_exclusive());
  };
  if (!home.set.wait(partition().layout(), "a page that is being written", deadline, is_busy))
    return std::unexpected(busy_error(file, File::page_of(key)));
  return {};
}

// Pages of the file that were dirty, or being cleaned, when this was called, in the order of their places.
std::vector<PageKey> Session::dirty_pages(const File& file) {
  std::vector<PageKey> keys;
  cache_->for_all_sets([&](PageSet& set) {
    for (uint32_t w = 0; w < kMaxWays; ++w)
      if (const Way& way = partition().way(set, w); file.has(way.key()) && way.is_unsaved())
        keys.push_back(way.key());
  });
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

base::Expected<void> Session::write_back_all(File& file) {
  const storage::Buffer memory(pool_, sizeof(WriteBatch)), copies(pool_, kCopyBytes);
  auto made = new_batch(memory, copies);
  if (!made) return std::unexpected(made.error());
  WriteBatch& batch = **made;
  base::Expected<void> result;
  const auto end_batch = [&] {
    if (auto done = write_back(file, batch); !done && result) result = done;
  };
  for (const PageKey key : dirty_pages(file)) {
    uint64_t deadline = 0;
    while (begin_clean(key, batch) == Clean::kBusy) {
      end_batch();  // so that nothing is held for which others wait while this waits
      if (deadline == 0) deadline = sys::monotonic_ns() + cache_->options_.wait_ns_max;
      if (auto waited = wait_until_cleanable(file, key, deadline); !waited) return waited;
    }
    if (batch.count == batch.most) end_batch();
  }
  end_batch();
  return result;
}

base::Expected<void> Session::sync(File& file) {
  if (auto written = write_back_all(file); !written) return written;
  if (const int error = file.flushes_.error(); error != 0)
    return base::failure(error, "page cache: a flush of ", file.device().name(),
                         " has failed before: what it has kept of what was written is not known");
  auto channel = channel_of(file);
  if (!channel) return std::unexpected(channel.error());
  const int error = file.flushes_.run([&] {
    storage::Io io;
    io.operation = storage::Operation::kFlush;
    (*channel)->run(io);
    return io.error;
  });
  if (error == 0) return {};
  return base::failure(error, "page cache: cannot flush ", file.device().name(), ": ",
                       base::error_name(error));
}

base::Expected<void> Session::remove(File& file) {
  if (auto synced = sync(file); !synced) return synced;
  leave(file);
  if (const uint32_t others = file.session_count_.load(std::memory_order_relaxed); others != 0)
    return base::failure(EBUSY, "page cache: ", file.device().name(), " is in use by ", others,
                         " other sessions");
  cache_->for_all_sets([&](PageSet& set) {
    for (uint32_t w = 0; w < kMaxWays; ++w) {
      Way& way = partition().way(set, w);
      if (!file.has(way.key())) continue;
      // Calls that look for another page may be readers of this way, or exclude others, for a moment.
      while (!way.evict()) {
        CHECK(!way.is_dirty() && !way.is_loading());
        __builtin_ia32_pause();
      }
      partition().forget(set, w);
    }
  });
  cache_->drop(file);
  return {};
}

}  // namespace pagecache
