// A session's reads and writes: of pages in memory, and of pages that have to be loaded. What leaves is in session_sync.cc.
#include "pagecache/session.h"

#include <algorithm>

#include "storage/piece_io.h"
#include "sys/kernel.h"

namespace pagecache {
namespace {

constexpr size_t kDepth = 64;
constexpr int kSpins = 128;  // a page is copied in less

}  // namespace

void View::reset() {
  if (session_ != nullptr) session_->unshare(*set_, *way_);
  session_ = nullptr;
  bytes_ = {};
}

void Session::close() {
  if (cache_ == nullptr) return;
  for (const auto& channel : channels_)
    if (channel != nullptr) leave(*channel->file);
  channels_.clear();
  cache_ = nullptr;
}

SessionCounts Session::counts() const {
  const auto get = [](const std::atomic<uint64_t>& count) { return count.load(std::memory_order_relaxed); };
  return {.hits = get(hits_),
          .misses = get(misses_),
          .evictions = get(evictions_),
          .reads = get(reads_),
          .writebacks = get(writebacks_),
          .damaged = get(damaged_),
          .waits = get(waits_)};
}

base::Expected<task::Channel*> Session::channel_of(const File& file) {
  const size_t index = file.number() - 1;
  if (index >= channels_.size()) channels_.resize(index + 1);
  if (channels_[index] == nullptr) {
    auto own = std::make_unique<Channel>(&file);
    if (auto opened = own->channel.open(file.device(), kDepth); !opened)
      return std::unexpected(opened.error());
    file.session_count_.fetch_add(1, std::memory_order_relaxed);
    channels_[index] = std::move(own);
  }
  CHECK(channels_[index]->file == &file);
  return &channels_[index]->channel;
}

void Session::leave(const File& file) {
  const size_t index = file.number() - 1;
  if (index >= channels_.size() || channels_[index] == nullptr) return;
  channels_[index]->channel.close();
  channels_[index] = nullptr;
  file.session_count_.fetch_sub(1, std::memory_order_relaxed);
}

std::unexpected<base::Error> Session::range_error(const File& file, const char* what, uint64_t offset,
                                                  uint64_t bytes) {
  return base::failure(EINVAL, "page cache: cannot ", what, " ", bytes, " bytes at offset ", offset, ": ",
                       file.device().name(), " has ", file.bytes(), " bytes");
}

base::Error Session::io_error(const File& file, const char* what, uint64_t offset, const storage::Io& io) {
  if (io.error != 0)
    return base::Error::of(io.error, "page cache: cannot ", what, " ", file.device().name(), " at offset ",
                           offset, ": ", base::error_name(io.error));
  return base::Error::of(EIO, "page cache: cannot ", what, " ", file.device().name(), " at offset ", offset,
                         ": it ends at ", offset + io.transferred_bytes, ", and had ",
                         file.device().end_bytes(), " bytes when it was opened");
}

base::Error Session::busy_error(const File& file, uint64_t page) const {
  return base::Error::of(EBUSY, "page cache: page ", page, " of ", file.device().name(),
                         " has to wait for pages that others, or views, hold for more than ",
                         cache_->options_.wait_ns_max / 1'000'000, " ms");
}

// --- a page that is there ---

// Prefetches the bytes that are needed, from `begin` on, since the atomic operation would delay their load.
bool Session::take(const Partition::Home& home, Use use, uint64_t begin, Held& held) {
  PageSet& set = home.set;
  return set.any_of_tag(home.tag, [&](uint32_t index) {
    Way& way = partition().way(set, index);
    if (way.key() != home.key) return false;
    const std::byte* const bytes = partition().frame(way) + begin;
    __builtin_prefetch(bytes);
    __builtin_prefetch(bytes + base::kLineBytes);
    if (!(use == Use::kShare ? way.try_share(home.key) : way.try_exclude(home.key))) {
      set.changed(partition().layout());  // the way may have looked held for a moment
      return false;
    }
    set.on_hit(partition().layout(), index);
    base::increase(hits_, uint64_t{1});
    held = {.set = &set, .way = &way, .bytes = partition().frame(way)};
    return true;
  });
}

// Is the last reader of a page that is exclusive for the caller gone, now or after a moment?
bool Session::is_drained_soon(const Held& held) {
  for (int i = 0; i < kSpins; ++i) {
    if (!held.way->has_readers()) return true;
    __builtin_ia32_pause();
  }
  return false;
}

// Waits until it is gone. After an error the page is not exclusive any more.
base::Expected<void> Session::drain(const File& file, const Held& held, uint64_t page) {
  if (is_drained_soon(held)) return {};
  const uint64_t deadline = sys::monotonic_ns() + cache_->options_.wait_ns_max;
  while (held.way->has_readers()) {
    base::increase(waits_, uint64_t{1});
    held.set->lock().lock();
    if (held.set->wait(partition().layout(), "readers of a page", deadline,
                       [&] { return held.way->has_readers(); }))
      continue;
    held.way->unexclude();
    held.set->changed(partition().layout());
    return std::unexpected(busy_error(file, page));
  }
  return {};
}

// --- one that has to come ---

base::Expected<Session::Held> Session::get(File& file, uint64_t page, Use use, bool is_missing) {
  const PageKey key = file.key(page);
  uint64_t deadline = 0;
  for (;; is_missing = false) {
    Held held;
    if (!is_missing && take(home_of(key), use, 0, held)) {
      if (use != Use::kShare)
        if (auto drained = drain(file, held, page); !drained) return std::unexpected(drained.error());
      return held;
    }
    Place place;
    const Partition::Claim claimed = claim(key, place);
    if (claimed == Partition::Claim::kClaimed) return load(file, place, use);
    if (claimed == Partition::Claim::kCleanable) {
      if (auto cleaned = clean(*place.set, place.index); !cleaned) return std::unexpected(cleaned.error());
      continue;
    }
    if (deadline == 0) deadline = sys::monotonic_ns() + cache_->options_.wait_ns_max;
    if (auto waited = wait_for_page(file, page, deadline); !waited) return std::unexpected(waited.error());
  }
}

Partition::Claim Session::claim(PageKey key, Place& place) {
  uint64_t evictions = 0;
  const Partition::Home home = lock_home(key);
  place = {.set = &home.set, .index = 0, .page = File::page_of(key)};
  const Partition::Claim claimed = partition().claim(home, place.index, evictions);
  const bool is_to_flush = claimed != Partition::Claim::kThere && cache_->flushes_.is_open_for(home.set) &&
                           partition().is_to_flush(home.set);
  home.set.lock().unlock();
  if (is_to_flush) cache_->flushes_.put(home.set);
  base::increase(evictions_, evictions);
  if (claimed == Partition::Claim::kClaimed) {
    base::increase(misses_, uint64_t{1});
    if (cache_->node_count() > 1) cache_->balancer_.count_miss(cache_->node_of(key));
  }
  return claimed;
}

// Waits for whoever loads the page or writes to it; if the page is not there, until another page of the set can leave.
base::Expected<void> Session::wait_for_page(const File& file, uint64_t page, uint64_t deadline) {
  base::increase(waits_, uint64_t{1});
  const Partition::Home home = lock_home(file.key(page));
  const auto is_to_wait = [&] {
    const uint32_t index = partition().find(home);
    if (index == cache::kNoWay) return !partition().has_room(home.set);
    const Way& way = partition().way(home.set, index);
    return way.is_loading() || way.is_exclusive();
  };
  if (!home.set.wait(partition().layout(), "a page", deadline, is_to_wait))
    return std::unexpected(busy_error(file, page));
  return {};
}

base::Expected<Session::Held> Session::load(File& file, const Place& place, Use use) {
  if (use == Use::kOverwrite) return end_load(place, use);
  storage::PieceIo io(storage::Operation::kRead, file.device_offset_of(place.page),
                      partition().frame(partition().way(*place.set, place.index)),
                      file.device_bytes_of(place.page));
  auto channel = channel_of(file);
  if (!channel) {
    end_failed_load(place);
    return std::unexpected(channel.error());
  }
  (*channel)->run(io);
  if (auto read = end_read(file, place, io); !read) return std::unexpected(read.error());
  return end_load(place, use);
}

// The result for a page that this Io, perhaps with others, was to load. After an error the page is not loading any more; else the caller
// must end the load.
base::Expected<void> Session::end_read(const File& file, const Place& place, const storage::Io& io) {
  const uint64_t end = file.device_offset_of(place.page) + file.device_bytes_there(place.page);
  const bool is_read = io.error == 0 && io.offset_bytes + io.transferred_bytes >= end;
  if (is_read) base::increase(reads_, uint64_t{1});
  const auto* const bytes = partition().frame(partition().way(*place.set, place.index));
  const bool is_damaged = is_read && file.has_checksums() && !file.is_intact(place.page, bytes);
  if (is_read && !is_damaged) return {};
  end_failed_load(place);
  if (!is_damaged) return std::unexpected(io_error(file, "read", io.offset_bytes, io));
  base::increase(damaged_, uint64_t{1});
  return base::failure(
      EBADMSG, "page cache: page ", place.page, " of ", file.device().name(), ", at offset ",
      file.device_offset_of(place.page),
      ", has not its checksum: it is damaged, or the file was not made with checksums of pages of ",
      cache_->page_bytes(), " bytes; write the whole page anew, or restore the file");
}

Session::Held Session::end_load(const Place& place, Use use) {
  Way& way = partition().way(*place.set, place.index);
  if (use == Use::kShare)
    way.loaded();
  else
    way.loaded_for_write();
  place.set->changed(partition().layout());
  return {.set = place.set, .way = &way, .bytes = partition().frame(way)};
}

void Session::end_failed_load(const Place& place) {
  {
    sys::LockGuard scope(place.set->lock());
    partition().way(*place.set, place.index).load_failed();
    partition().forget(*place.set, place.index);
  }
  place.set->changed(partition().layout());
}

// --- calls ---

// Most calls are for a range within one page that is in memory.
base::Expected<void> Session::read(File& file, uint64_t offset, std::span<std::byte> to) {
  if (try_read(file, offset, to)) return {};
  if (!is_within(file, offset, to.size())) return range_error(file, "read", offset, to.size());
  if (is_in_page(file, offset, to.size())) return read_part(file, part_of(file, offset, to.size()), to, true);
  const Piece piece = {.offset = offset, .to = to};
  return read(file, std::span(&piece, 1));
}

bool Session::try_read(File& file, uint64_t offset, std::span<std::byte> to) {
  if (!is_in_page(file, offset, to.size())) return false;
  const Part part = part_of(file, offset, to.size());
  return read_if_there(home_of(file.key(part.page)), part, to);
}

bool Session::try_write(File& file, uint64_t offset, std::span<const std::byte> from) {
  if (!is_in_page(file, offset, from.size())) return false;
  const Part part = part_of(file, offset, from.size());
  Held held;
  if (!take(home_of(file.key(part.page)), Use::kExclude, part.begin, held)) return false;
  const bool would_have_to_clean = !held.way->is_dirty() && cache_->has_too_many_dirty();
  if (would_have_to_clean || !is_drained_soon(held)) {
    held.way->unexclude();
    held.set->changed(partition().layout());
    return false;
  }
  memcpy(held.bytes + part.begin, from.data(), part.bytes);
  static_cast<void>(written(held));  // the next call cleans
  return true;
}

bool Session::read_if_there(const Partition::Home& home, const Part& part, std::span<std::byte> to) {
  Held held;
  if (!take(home, Use::kShare, part.begin, held)) return false;
  copy_out(held, part, to);
  return true;
}

base::Expected<void> Session::read_part(File& file, const Part& part, std::span<std::byte> to,
                                        bool is_missing) {
  auto held = get(file, part.page, Use::kShare, is_missing);
  if (!held) return std::unexpected(held.error());
  copy_out(*held, part, to);
  return {};
}

void Session::copy_out(const Held& held, const Part& part, std::span<std::byte> to) {
  memcpy(to.data() + part.done, held.bytes + part.begin, part.bytes);
  unshare(*held.set, *held.way);
}

// For a number of pages at a time
//  1 pages that are in memory are copied; others are claimed if there is a frame for them
//  2 the claimed pages are read together, neighbours in one Io, and copied
//  3 all other pages are read one after the other; so are neighbours whose Io has failed, since only one of them may be at fault
// Nothing is held while this waits for others: step 2 ends whatever step 1 has claimed.
struct Session::ReadBatch {
  struct Wanted {
    Part part;
    std::span<std::byte> to;  // of the range
    Place place;              // once it is claimed
    uint32_t io = 0;          // the one that reads it
  };
  Wanted claimed[kBatchPages];
  Wanted later[2 * kBatchPages];
  uint32_t claimed_count = 0;
  uint32_t later_count = 0;
  storage::Io ios[kBatchPages];
  storage::Io* all_ios[kBatchPages];
  iovec segments[kBatchPages];  // of claimed pages
};

base::Expected<void> Session::read(File& file, std::span<const Piece> pieces) {
  const storage::Buffer memory(pool_, sizeof(ReadBatch));
  if (memory.bytes().empty()) return base::failure(ENOMEM, "page cache: no memory to read many pages");
  ReadBatch& batch = *new (memory.bytes().data()) ReadBatch;
  for (const Piece& piece : pieces) {
    if (!is_within(file, piece.offset, piece.to.size()))
      return range_error(file, "read", piece.offset, piece.to.size());
  }
  for (const Piece& piece : pieces) {
    auto begun =
        for_parts(file, piece.offset, piece.to.size(), [&](const Part& part) -> base::Expected<void> {
          begin_read(file, part, batch, piece.to);
          const bool is_full = batch.claimed_count == kBatchPages || batch.later_count == kBatchPages;
          return is_full ? end_reads(file, batch) : base::Expected<void>();
        });
    if (!begun) return begun;
  }
  return end_reads(file, batch);
}

// Step 1.
void Session::begin_read(const File& file, const Part& part, ReadBatch& batch, std::span<std::byte> to) {
  const PageKey key = file.key(part.page);
  if (read_if_there(home_of(key), part, to)) return;
  ReadBatch::Wanted wanted = {.part = part, .to = to, .place = {}};
  if (claim(key, wanted.place) == Partition::Claim::kClaimed)
    batch.claimed[batch.claimed_count++] = wanted;
  else
    batch.later[batch.later_count++] = wanted;
}

// Steps 2 and 3. The batch is empty afterwards.
base::Expected<void> Session::end_reads(File& file, ReadBatch& batch) {
  const std::span claimed = std::span(batch.claimed).first(batch.claimed_count);
  batch.claimed_count = 0;
  base::Expected<void> result;
  if (!claimed.empty()) {
    auto channel = channel_of(file);
    if (!channel) {
      for (const auto& wanted : claimed) end_failed_load(wanted.place);
      batch.later_count = 0;
      return std::unexpected(channel.error());
    }
    uint32_t io_count = 0;
    for (size_t i = 0; i < claimed.size(); ++i) {
      const uint64_t page = claimed[i].part.page, bytes = file.device_bytes_of(page);
      Way& way = partition().way(*claimed[i].place.set, claimed[i].place.index);
      batch.segments[i] = {partition().frame(way), bytes};
      if (i == 0 || page != claimed[i - 1].part.page + 1) {
        storage::Io& io = *new (&batch.ios[io_count]) storage::Io;
        io.offset_bytes = file.device_offset_of(page);
        io.segments = &batch.segments[i];
        batch.all_ios[io_count++] = &io;
      }
      storage::Io& io = batch.ios[io_count - 1];
      ++io.segment_count;
      io.length_bytes += bytes;
      claimed[i].io = io_count - 1;
    }
    (*channel)->run(std::span(batch.all_ios).first(io_count));
    for (const auto& wanted : claimed) {
      const storage::Io& io = batch.ios[wanted.io];
      if (io.error != 0 && io.segment_count > 1) {
        end_failed_load(wanted.place);
        batch.later[batch.later_count++] = wanted;
        continue;
      }
      auto read = end_read(file, wanted.place, io);
      if (read)
        copy_out(end_load(wanted.place, Use::kShare), wanted.part, wanted.to);
      else if (result)
        result = read;
    }
  }
  const std::span later = std::span(batch.later).first(batch.later_count);
  batch.later_count = 0;
  for (size_t i = 0; result && i < later.size(); ++i)
    result = read_part(file, later[i].part, later[i].to, false);
  return result;
}

base::Expected<void> Session::write(File& file, uint64_t offset, std::span<const std::byte> from) {
  if (!is_within(file, offset, from.size())) return range_error(file, "write", offset, from.size());
  return for_parts(file, offset, from.size(), [&](const Part& part) -> base::Expected<void> {
    const bool is_whole = part.bytes == file.data_bytes_of(part.page);
    auto held = get(file, part.page, is_whole ? Use::kOverwrite : Use::kExclude);
    if (!held) return std::unexpected(held.error());
    memcpy(held->bytes + part.begin, from.data() + part.done, part.bytes);
    if (!written(*held)) clean_first(*held->set);
    return {};
  });
}

base::Expected<View> Session::view(File& file, uint64_t offset, uint64_t bytes) {
  if (!is_within(file, offset, bytes)) return range_error(file, "view", offset, bytes);
  if (bytes == 0) return View();
  const Part part = part_of(file, offset, bytes);
  CHECK_LE(part.begin + bytes, file.page_data_bytes());
  auto held = get(file, part.page, Use::kShare);
  if (!held) return std::unexpected(held.error());
  View view;
  view.session_ = this;
  view.set_ = held->set;
  view.way_ = held->way;
  view.bytes_ = {held->bytes + part.begin, bytes};
  return view;
}

}  // namespace pagecache
