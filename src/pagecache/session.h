// Session: how one thread, or the tasks of one worker, read and write through a page cache.
//
// Calls look as if I/O blocked: a thread's does, a task's lets others of its worker run meanwhile. Of the bytes of one page a read or view
// sees all of a write, or nothing; a call over several pages is as many such.
//
// What is written stays in memory until its page has to go, servers flush it, or sync(). Errors are one line of text with what could not be
// done where. A page that cannot be written back stays, and is dirty: whoever needs its frame is told, and so is each sync().
//
// Thread contract: of the thread that opens it, or of the tasks of its worker. Files and cache are shared by all.
#pragma once
#include <cstring>
#include <span>

#include "base/single_writer.h"
#include "pagecache/page_cache.h"
#include "storage/buffer_pool.h"
#include "task/channel.h"
#include "task/scheduler.h"

namespace pagecache {

// What sessions have been asked for. Pages, each time one is used.
struct SessionCounts {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t evictions = 0;
  uint64_t reads = 0;       // pages read from devices
  uint64_t writebacks = 0;  // pages written to devices
  uint64_t damaged = 0;     // pages that were read, and have not their checksum
  uint64_t waits = 0;       // for other calls

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

// Pages that were written back, and how many writes that took.
struct WriteCounts {
  uint64_t pages = 0;
  uint64_t writes = 0;
};

class Session;

// A range of a file that is to be read, and where to.
struct Piece {
  uint64_t offset = 0;
  std::span<std::byte> to;
};

// Some bytes of a page, which stays where it is until the view ends. Nobody writes to the page meanwhile.
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
  // Of one that is not open: nothing. REQUIRES: its views have ended.
  void close();

  // All of the range, or an error. Pages that are not there are read together. Errors: EINVAL: the range is not within the file; those of
  // I/O; EIO: the device has become shorter; EBADMSG: a page has not its checksum; EBUSY (CacheOptions::wait_ns_max).
  base::Expected<void> read(File& file, uint64_t offset, std::span<std::byte> to);
  // The same of several ranges: what is not there is read together, neighbours in one Io.
  base::Expected<void> read(File& file, std::span<const Piece> pieces);
  // As read(). Of a page that is written as a whole nothing is read. After an error some pages of the range may be written.
  base::Expected<void> write(File& file, uint64_t offset, std::span<const std::byte> from);
  // Read, modify, write: change(bytes of a page, their offset in the file) for each page of the range, which nobody else sees meanwhile.
  // It must not call this session. As write().
  template <class Change>
  base::Expected<void> update(File& file, uint64_t offset, uint64_t bytes, const Change& change);
  // REQUIRES: the range is within one page. As read(). A view holds a frame: calls of anybody that need all frames of the set wait for it.
  base::Expected<View> view(File& file, uint64_t offset, uint64_t bytes);

  // The same of a range within one page, if that needs neither I/O nor a wait. False: nothing is done.
  bool try_read(File& file, uint64_t offset, std::span<std::byte> to);
  bool try_write(File& file, uint64_t offset, std::span<const std::byte> from);

  // What was written to the file before the call is on its device for good when this returns without an error. Errors: those of I/O. After a
  // flush has failed each later one of the file fails, too. Cost: syncs of a file that come together share a flush.
  base::Expected<void> sync(File& file);
  // This session gives up what it needs to use the file, until it uses it again. REQUIRES: no call of it is under way.
  void leave(const File& file);
  // Syncs it, and takes it out of the cache; with an error it stays. REQUIRES: no views of it, and nobody uses it from now on. Errors: those
  // of sync(); EBUSY: other sessions have used it, and neither left it nor been closed.
  base::Expected<void> remove(File& file);

  // The cache has frames and sets for so many bytes from now on; what others do goes on meanwhile, and finds what is there. Pages that have to
  // leave do so as if others came. Errors, after which it has a size between the two: EINVAL, and nothing is changed: more than
  // CacheOptions::memory_bytes_max, or less than one set takes; EBUSY: another call is resizing it, or pages are held
  // (CacheOptions::wait_ns_max for each set), views of the caller's among them; those of I/O, of any file whose pages have to leave.
  base::Expected<void> resize(uint64_t memory_bytes);

  // Any thread.
  SessionCounts counts() const;

 private:
  friend class Servers;
  friend class View;
  static constexpr uint32_t kBatchPages = 64;
  static constexpr uint32_t kRunPages = 16;          // that are written back for the sake of one
  static constexpr uint64_t kCopyBytes = 256 << 10;  // of pages that are written back together
  static constexpr uint64_t kRunBytes = 64 << 10;    // of one run, but for larger pages

  enum class Use : uint8_t { kShare, kExclude, kOverwrite };
  // A page that the caller holds, as it asked for.
  struct Held {
    PageSet* set = nullptr;
    Way* way = nullptr;
    std::byte* bytes = nullptr;
  };
  // One that it has claimed, or is cleaning.
  struct Place {
    PageSet* set = nullptr;
    uint32_t index = 0;
    uint64_t page = 0;
  };
  struct Part {
    uint64_t page = 0;
    uint64_t begin = 0;  // in the page
    uint64_t bytes = 0;
    uint64_t done = 0;  // of the range, before it
  };
  // Calls each(Part) for each page of a range, until one is not done.
  template <class Each>
  base::Expected<void> for_parts(const File& file, uint64_t offset, uint64_t bytes, const Each& each);
  static bool is_within(const File& file, uint64_t offset, uint64_t bytes) {
    return offset <= file.bytes() && bytes <= file.bytes() - offset;
  }
  // Is it one part?
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

  // For what any of them can do.
  Partition& partition() const { return cache_->partition_; }
  // As Partition's.
  Partition::Home home_of(PageKey key) const { return cache_->partition_of(key).home_of(key); }
  Partition::Home lock_home(PageKey key) const { return cache_->partition_of(key).lock_home(key); }
  bool take(const Partition::Home& home, Use use, uint64_t begin, Held& held);
  // `is_missing`: it was not there just now.
  base::Expected<Held> get(File& file, uint64_t page, Use use, bool is_missing = false);
  bool is_drained_soon(const Held& held);
  base::Expected<void> drain(const File& file, const Held& held, uint64_t page);
  base::Expected<Held> load(File& file, const Place& place, Use use);
  Partition::Claim claim(PageKey key, Place& place);
  base::Expected<void> wait_for_page(const File& file, uint64_t page, uint64_t deadline);
  base::Expected<void> clean(PageSet& set, uint32_t index);
  base::Expected<void> clean(PageKey key);
  void clean_first(PageSet& set);
  struct ReadBatch;
  struct WriteBatch;
  // Ends what claim or begin_clean began.
  Held end_load(const Place& place, Use use);
  void end_failed_load(const Place& place);
  void unshare(PageSet& set, Way& way) {
    way.unshare();
    set.changed(partition().layout());
  }
  // False: the cache has too many dirty pages now. The caller of this, who holds nothing, cleans some.
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
  enum class Clean : uint8_t { kBegun, kIsClean, kBusy };
  base::Expected<WriteBatch*> new_batch(const storage::Buffer& memory, const storage::Buffer& copies);
  void add_copy(WriteBatch& batch, const Place& place);
  void end_clean(const Place& place, bool is_clean);
  Clean begin_clean(PageKey key, WriteBatch& batch);
  bool looks_cleanable(PageKey key);
  void begin_run(PageKey key, WriteBatch& batch);
  // Writes pages of these sets back, if they look as if they would leave soon, and others that follow them in their files. A page that
  // cannot be written is dirty again.
  WriteCounts flush(std::span<PageSet* const> sets);
  WriteCounts flush(std::vector<PageKey> keys);
  // Calls act(keys) for pages that are dirty, and were when this was called before, some at a time, and without a lock; no more when it
  // returns false. Lets others run meanwhile. REQUIRES: a task.
  template <class Act>
  void for_aged_pages(const Act& act);
  std::vector<PageKey> pages_to_flush(std::span<PageSet* const> sets);
  base::Expected<void> wait_until_cleanable(const File& file, PageKey key, uint64_t deadline);
  std::vector<PageKey> dirty_pages(const File& file);
  base::Expected<void> write_back_all(File& file);
  base::Expected<void> write_back(File& file, WriteBatch& batch);
  // How a change of size goes on.
  struct Resizing {
    uint64_t wait_ns_max = 0;
    // Then others of the calling task's worker run between sets, the balancer may have it stop, and files that servers have left are left
    // alone; nullptr: somebody asked for it.
    const Balancer* balancer = nullptr;
    bool goes_on() const;
  };
  // Moves a part of the frames from one node to another, if that is to be done. Errors: those of resize(), of which nothing is to be told;
  // ECANCELED: it was to stop. The next one goes on from there. REQUIRES: a task.
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
  base::Expected<void> end_read(const File& file, const Place& place, const storage::Io& io);
  static base::Error io_error(const File& file, const char* what, uint64_t offset, const storage::Io& io);
  base::Error busy_error(const File& file, uint64_t page) const;

  PageCache* cache_ = nullptr;
  struct Channel {
    const File* file = nullptr;
    task::Channel channel;
  };
  std::vector<std::unique_ptr<Channel>> channels_;  // by the file's number - 1; opened when first used
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
  constexpr size_t kKeysMost = 1024;
  std::vector<PageKey> keys;
  uint32_t count = 0;
  bool goes_on = true;
  const auto end_keys = [&] {
    if (goes_on && !keys.empty()) goes_on = act(std::span<const PageKey>(keys));
    keys.clear();
  };
  cache_->for_all_sets(
      [&](PageSet& set) {
        for (uint32_t w = 0; goes_on && w < kWaysMost; ++w)
          if (Way& way = partition().way(set, w); way.age()) keys.push_back(way.key());
      },
      [&] {
        if (keys.size() >= kKeysMost) end_keys();
        // Not yield(): messages and what devices have ended have their turn, too.
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
