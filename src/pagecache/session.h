// Session: how one thread, or the tasks of one worker, read and write through a page cache.
//
// Calls block until their I/O has ended: a thread blocks; while a task blocks, other tasks of its worker run. Within one page, a read or view
// sees all of a write or nothing of it; a call over several pages is like as many calls over one page each.
//
// Written data stays in memory until its page has to leave, servers flush it, or the file is synced. Errors are one line of text that says
// what could not be done, and where. A page that cannot be written back stays in memory, and dirty: the call that needs its frame fails, and
// so does each sync().
//
// Thread contract: used by the thread that opens it, or by the tasks of its worker. Files and caches are for all threads.
#pragma once
#include <cstring>
#include <span>

#include "base/single_writer.h"
#include "pagecache/page_cache.h"
#include "storage/buffer_pool.h"
#include "task/channel.h"
#include "task/scheduler.h"

namespace pagecache {

// What sessions have done. Hits and misses count each page that a call uses.
struct SessionCounts {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t evictions = 0;
  uint64_t reads = 0;       // pages read from devices
  uint64_t writebacks = 0;  // pages written to devices
  uint64_t damaged = 0;     // pages that were read, and whose checksum was wrong
  uint64_t waits = 0;       // how often a call waited for another one

  SessionCounts& operator+=(const SessionCounts& other) {
    hits += other.hits;
    misses += other.misses;
    evictions += other.evictions;
    reads += other.reads;
    writebacks += other.writebacks;
    damaged += other.damaged;
    waits += other.waits;
    return *this;
  }
};

// Pages that were written back, and how many writes these took.
struct WriteCounts {
  uint64_t pages = 0;
  uint64_t writes = 0;
};

class Session;

// A range of a file that is to be read, and the memory to read it into.
struct Piece {
  uint64_t offset = 0;
  std::span<std::byte> to;
};

// Bytes of a page, which stays in its frame until the view ends. Nobody writes to the page meanwhile.
class View {
 public:
  View() = default;
  ~View() { reset(); }
  View(View&& from) noexcept { *this = std::move(from); }
  View& operator=(View&& from) noexcept {
    std::swap(session_, from.session_);
    std::swap(set_, from.set_);
    std::swap(way_, from.way_);
    std::swap(bytes_, from.bytes_);
    return *this;
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  void reset();

 private:
  friend class Session;
  Session* session_ = nullptr;
  PageSet* set_ = nullptr;
  Way* way_ = nullptr;
  std::span<const std::byte> bytes_;
};

class Session {
 public:
  Session() = default;
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void open(PageCache& cache) { cache_ = &cache; }
  // Does nothing if the session is not open. REQUIRES: its views have ended.
  void close();

  // Reads all of the range, or fails. Pages that are not in memory are read together. Errors: EINVAL: the range is not within the file;
  // those of I/O; EIO: the device has become shorter; EBADMSG: a page's checksum is wrong; EBUSY: held pages were in the way for longer than
  // wait_ns_max (CacheOptions).
  base::Expected<void> read(File& file, uint64_t offset, std::span<std::byte> to);
  // The same for several ranges: all their pages that are not in memory are read together, neighbours in one Io.
  base::Expected<void> read(File& file, std::span<const Piece> pieces);
  // Errors: as read(); some pages of the range may have been written then. A page that is written as a whole is not read.
  base::Expected<void> write(File& file, uint64_t offset, std::span<const std::byte> from);
  // Read, modify, write: for each page calls change(bytes, their offset in the file) with the part of the range in it, which nobody else sees
  // meanwhile. `change` must not call this session. Errors: as write().
  template <class Change>
  base::Expected<void> update(File& file, uint64_t offset, uint64_t bytes, const Change& change);
  // A view of the range. It holds a frame, so anybody's calls that need a frame of that set may have to wait for it. Errors: as read().
  // REQUIRES: the range is within one page.
  base::Expected<View> view(File& file, uint64_t offset, uint64_t bytes);

  // Reads or writes a range within one page, if that needs neither I/O nor a wait. False: nothing has been done.
  bool try_read(File& file, uint64_t offset, std::span<std::byte> to);
  bool try_write(File& file, uint64_t offset, std::span<const std::byte> from);

  // When this returns without an error, everything that was written to the file before the call is durable on its device. Errors: those of
  // I/O; EBUSY. After a flush of the file has failed, all later syncs fail. Cost: a look at each set, writes of the dirty pages, and a flush,
  // which concurrent syncs of the file share.
  base::Expected<void> sync(File& file);
  // Closes what this session has open for the file; the next use opens it again. REQUIRES: no call of the session for the file is under
  // way.
  void leave(const File& file);
  // Syncs the file and removes it from the cache; after an error it stays. Errors: those of sync(); EBUSY: another session has used the
  // file, and has neither left it nor been closed. REQUIRES: there are no views of the file, and nobody uses it from now on.
  base::Expected<void> remove(File& file);

  // Gives the cache frames and sets for `memory_bytes`. Other calls continue meanwhile, and find the pages that are there. Pages that have to
  // leave are chosen as on a miss. Errors: EINVAL: more than CacheOptions::memory_bytes_max, or less than one set takes; nothing has changed
  // then. EBUSY: another call is resizing the cache, or pages are held, perhaps by the caller's own views (CacheOptions::wait_ns_max for each
  // set); those of I/O, for any file whose pages have to leave: then the cache has a size between the two.
  base::Expected<void> resize(uint64_t memory_bytes);

  // Any thread.
  SessionCounts counts() const;

 private:
  friend class Servers;
  friend class View;
  static constexpr uint32_t kBatchPages = 64;
  static constexpr uint32_t kRunPages = 16;          // neighbours that are written back along with a page
  static constexpr uint64_t kCopyBytes = 256 << 10;  // for copies of pages that are written back at once
  static constexpr uint64_t kRunBytes = 64 << 10;  // for copies of one run, or of one page if that is larger

  // What a page is needed for: to be read; to be changed; to be overwritten as a whole, so that it need not be read first.
  enum class Use : uint8_t { kShare, kExclude, kOverwrite };
  // A page that the caller holds, as a reader or excluding others.
  struct Held {
    PageSet* set = nullptr;
    Way* way = nullptr;
    std::byte* bytes = nullptr;
  };
  // A page that the caller has claimed, or is cleaning.
  struct Place {
    PageSet* set = nullptr;
    uint32_t index = 0;  // of the way
    uint64_t page = 0;
  };
  // The part of a range that is in one page.
  struct Part {
    uint64_t page = 0;
    uint64_t begin = 0;  // in the page
    uint64_t bytes = 0;
    uint64_t done = 0;  // how many bytes of the range come before it
  };

  // Ranges, pages and loads (session.cc).

  // Calls each(Part) for each page of a range, until one fails.
  template <class Each>
  base::Expected<void> for_parts(const File& file, uint64_t offset, uint64_t bytes, const Each& each);
  static bool is_within(const File& file, uint64_t offset, uint64_t bytes) {
    return offset <= file.bytes() && bytes <= file.bytes() - offset;
  }
  // Is the range within one page, and not empty?
  static bool is_in_page(const File& file, uint64_t offset, uint64_t bytes) {
    return is_within(file, offset, bytes) && bytes != 0 &&
           file.position_of(offset).begin + bytes <= file.page_data_bytes();
  }
  static Part part_of(const File& file, uint64_t offset, uint64_t bytes) {
    const File::Position at = file.position_of(offset);
    return {.page = at.page, .begin = at.begin, .bytes = bytes, .done = 0};
  }
  static std::unexpected<base::Error> range_error(const File& file, const char* what, uint64_t offset,
                                                  uint64_t bytes);
  base::Expected<task::Channel*> channel_of(const File& file);

  // For operations that any partition can do (partition.h).
  Partition& partition() const { return cache_->partition_; }
  // Those of the page's partition.
  Partition::Home home_of(PageKey key) const { return cache_->partition_of(key).home_of(key); }
  Partition::Home lock_home(PageKey key) const { return cache_->partition_of(key).lock_home(key); }
  // Holds the page if it is there, and nobody is in the way. With kExclude and kOverwrite the caller still has to wait for the last reader.
  bool take(const Partition::Home& home, Use use, uint64_t begin, Held& held);
  // Holds the page, loading it if necessary. `is_missing`: the caller has just found that it is not there.
  base::Expected<Held> get(File& file, uint64_t page, Use use, bool is_missing = false);
  bool is_drained_soon(const Held& held);
  base::Expected<void> drain(const File& file, const Held& held, uint64_t page);
  base::Expected<Held> load(File& file, const Place& place, Use use);
  Partition::Claim claim(PageKey key, Place& place);
  base::Expected<void> wait_for_page(const File& file, uint64_t page, uint64_t deadline);
  struct ReadBatch;
  // These end what claim() began.
  Held end_load(const Place& place, Use use);
  void end_failed_load(const Place& place);
  void unshare(PageSet& set, Way& way) {
    way.unshare();
    set.changed(partition().layout());
  }
  // Ends the hold of a page that has been changed. False: the cache has too many dirty pages now, and the caller, which holds nothing any
  // more, must clean some.
  [[nodiscard]] bool written(const Held& held) {
    const bool was_clean = held.way->written();
    held.set->changed(partition().layout());
    if (!was_clean) return true;
    cache_->dirty_count_.fetch_add(1, std::memory_order_relaxed);
    if (cache_->has_many_dirty()) cache_->flushes_.put(*held.set);
    return !cache_->has_too_many_dirty();
  }

  bool read_if_there(const Partition::Home& home, const Part& part, std::span<std::byte> to);
  base::Expected<void> read_part(File& file, const Part& part, std::span<std::byte> to, bool is_missing);
  void copy_out(const Held& held, const Part& part, std::span<std::byte> to);
  void begin_read(const File& file, const Part& part, ReadBatch& batch, std::span<std::byte> to);
  base::Expected<void> end_reads(File& file, ReadBatch& batch);
  base::Expected<void> end_read(const File& file, const Place& place, const storage::Io& io);
  static base::Error io_error(const File& file, const char* what, uint64_t offset, const storage::Io& io);
  base::Error busy_error(const File& file, uint64_t page) const;

  // Writing back (session_sync.cc).
  struct WriteBatch;
  base::Expected<void> clean(PageSet& set, uint32_t index);
  base::Expected<void> clean(PageKey key);
  void clean_first(PageSet& set);
  enum class Clean : uint8_t { kBegun, kIsClean, kBusy };
  base::Expected<WriteBatch*> new_batch(const storage::Buffer& memory, const storage::Buffer& copies);
  void add_copy(WriteBatch& batch, const Place& place);
  void end_clean(const Place& place, bool is_clean);
  Clean begin_clean(PageKey key, WriteBatch& batch);
  bool looks_cleanable(PageKey key);
  void begin_run(PageKey key, WriteBatch& batch);
  // Writes back those dirty pages of these sets that would leave soon, or these pages, each with its dirty neighbours in its file. A page
  // that cannot be written becomes dirty again.
  WriteCounts flush(std::span<PageSet* const> sets);
  WriteCounts flush(std::vector<PageKey> keys);
  // Calls act(keys), without a lock, for pages that have been dirty since the last call of this, some at a time, until act returns false.
  // Lets other tasks run meanwhile. REQUIRES: the caller is a task.
  template <class Act>
  void for_aged_pages(const Act& act);
  std::vector<PageKey> pages_to_flush(std::span<PageSet* const> sets);
  base::Expected<void> wait_until_cleanable(const File& file, PageKey key, uint64_t deadline);
  std::vector<PageKey> dirty_pages(const File& file);
  base::Expected<void> write_back_all(File& file);
  base::Expected<void> write_back(File& file, WriteBatch& batch);

  // Resizing (session_resize.cc).

  // How a change of size is carried out.
  struct Resizing {
    uint64_t wait_ns_max = 0;
    // Set if servers balance nodes, null if a caller has asked for another size. If set, other tasks of the worker run between sets, the
    // balancer may stop it, and it writes no pages of files that servers have left.
    const Balancer* balancer = nullptr;
    // Lets other tasks run. False: the change is to stop.
    bool goes_on() const;
  };
  // Moves some frames from one node to another if their misses call for it. Errors, which may be ignored, since the next call continues from
  // there: those of resize(); ECANCELED: it was stopped. REQUIRES: the caller is a task.
  base::Expected<void> balance(std::span<const uint64_t> misses);
  base::Expected<void> move_part(const Balancer::Move& move, const Resizing& how);
  base::Expected<void> settle(const Resizing& how);
  base::Expected<void> resize_to(Partition& partition, const Partition::Size& size, const Resizing& how);
  template <class Step>
  base::Expected<void> move_pages(const Resizing& how, const Step& step);
  base::Expected<void> take_frames(Partition& partition, PageSet& set, uint32_t most, const Resizing& how);
  bool may_clean(PageSet& set, uint32_t index, const Resizing& how);
  template <class Still>
  base::Expected<void> wait_to_resize(PageSet& set, const Resizing& how, uint64_t& deadline,
                                      const Still& still);

  PageCache* cache_ = nullptr;
  struct Channel {
    const File* file = nullptr;
    task::Channel channel;
  };
  std::vector<std::unique_ptr<Channel>> channels_;  // by the file's number - 1; opened at the first use
  storage::BufferPool pool_;
  std::atomic<uint64_t> hits_{0}, misses_{0}, evictions_{0}, reads_{0}, writebacks_{0}, damaged_{0},
      waits_{0};
};

template <class Each>
base::Expected<void> Session::for_parts(const File& file, uint64_t offset, uint64_t bytes, const Each& each) {
  for (Part part = part_of(file, offset, 0); part.done < bytes; ++part.page) {
    part.bytes = std::min(file.page_data_bytes() - part.begin, bytes - part.done);
    if (auto each_done = each(part); !each_done) return each_done;
    part.done += part.bytes;
    part.begin = 0;
  }
  return {};
}

template <class Act>
void Session::for_aged_pages(const Act& act) {
  constexpr uint32_t kTurnSets = 256;  // some 20 us
  constexpr size_t kMaxKeys = 1024;
  std::vector<PageKey> keys;
  uint32_t count = 0;
  bool goes_on = true;
  const auto end_keys = [&] {
    if (goes_on && !keys.empty()) goes_on = act(std::span<const PageKey>(keys));
    keys.clear();
  };
  cache_->for_all_sets(
      [&](PageSet& set) {
        for (uint32_t w = 0; goes_on && w < kMaxWays; ++w)
          if (Way& way = partition().way(set, w); way.age()) keys.push_back(way.key());
      },
      [&] {
        if (keys.size() >= kMaxKeys) end_keys();
        // Not yield(), so that messages and completions of devices get their turn, too.
        if (++count % kTurnSets == 0) static_cast<void>(task::sleep_until(1));
      });
  end_keys();
}

template <class Change>
base::Expected<void> Session::update(File& file, uint64_t offset, uint64_t bytes, const Change& change) {
  if (!is_within(file, offset, bytes)) return range_error(file, "update", offset, bytes);
  return for_parts(file, offset, bytes, [&](const Part& part) -> base::Expected<void> {
    auto held = get(file, part.page, Use::kExclude);
    if (!held) return std::unexpected(held.error());
    change(std::span(held->bytes + part.begin, part.bytes), offset + part.done);
    if (!written(*held)) clean_first(*held->set);
    return {};
  });
}

}  // namespace pagecache
