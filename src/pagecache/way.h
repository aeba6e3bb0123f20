// Way: a position in a set, with room for one page: which page it is, its frame, and the page's state, in 16 bytes.
//
//   FREE --claim--> LOADING --loaded----------------------> RESIDENT --evict--> FREE
//                      |    `-loaded_for_write--> RESIDENT+exclusive   (clean, nobody holds it)
//                      `--load_failed--> FREE
//   without a frame --give_frame--> FREE --take_frame--> without a frame
//   RESIDENT+exclusive, without readers or io --move_to--> without a frame; for the other way: without a frame --> RESIDENT
//   RESIDENT has these marks, which change independently
//     readers    a count: try_share adds one, unshare removes one
//     exclusive  try_exclude sets it, and its holder waits until the last reader is gone; written (which sets dirty) and unexclude end it
//     dirty      written sets it; begin_clean ends it
//     aged       marks a dirty page: age sets it; whatever ends dirty ends it, too, and so does move_to
//     io         begin_clean (dirty, not exclusive) sets it, and adds a reader, which copies the page; cleaned ends it, or clean_failed,
//                which sets dirty again
//
//   word   bits 0-25 readers, 26 exclusive, 27 resident, 28 loading, 29 dirty, 30 io, 31 aged, 32-63 frame, 0: none
//   key    PageKey of the page; 0: none
//
// Invariants
//  1 the key changes with the set's lock, and not while the page is held (it has readers, or is exclusive), is loading, or is being
//    cleaned: a page that somebody holds stays in this way
//  2 a page leaves only when it is clean, is not being cleaned, and nobody holds it
//  3 at most one Io is under way for a page: it is loading, or has io
//  4 a call that looks for a page may add a reader to any way, or exclude others from its page, for a moment, until it sees that the way
//    holds another page. So edges that need a way without readers are compare-and-swaps, or are taken by a holder of exclusive after the last
//    reader is gone; all other edges leave the count of readers unchanged
//
// Order: all edges are acquire and release, so that whoever takes an edge sees the page's bytes as they were at all earlier ones. They are
// also sequentially consistent, which waiting on a PageSet needs (PageSet::changed).
#pragma once
#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace pagecache {

// A page of a file: the file's number, from 1 on, above 48 bits for the page's.
enum class PageKey : uint64_t { kNone = 0 };

class Way {
 public:
  PageKey key() const { return static_cast<PageKey>(key_.load(std::memory_order_relaxed)); }
  uint32_t frame() const {
    return static_cast<uint32_t>(word_.load(std::memory_order_relaxed) >> kFrameShift);
  }
  bool has_frame() const { return (get() & kFrame) != 0; }
  bool is_free() const { return look().is_free(); }
  bool is_loading() const { return (get() & kLoading) != 0; }
  bool is_exclusive() const { return (get() & kExclusive) != 0; }
  bool is_dirty() const { return (get() & kDirty) != 0; }
  bool is_io() const { return (get() & kIo) != 0; }
  // Dirty or being cleaned, by a single load: between two loads, a failing cleaning could change one into the other.
  bool is_unsaved() const { return (get() & (kDirty | kIo)) != 0; }
  bool has_readers() const { return (get() & kReaders) != 0; }
  // Does the page have to stay in this way?
  bool is_held() const { return (get() & (kReaders | kExclusive | kLoading | kIo)) != 0; }
  bool is_evictable() const { return look().is_evictable(); }
  bool is_cleanable() const { return look().is_cleanable(); }
  // The state at one moment, for callers that ask for several of these.
  class Look {
   public:
    bool has_frame() const { return (word_ & kFrame) != 0; }
    // Does it have a frame but no page?
    bool is_free() const { return (word_ & (kResident | kLoading)) == 0 && has_frame(); }
    // Could its page leave?
    bool is_evictable() const { return (word_ & ~kFrame) == kResident; }
    // Could its page leave once it has been cleaned?
    bool is_cleanable() const { return (word_ & ~(kFrame | kAged)) == (kResident | kDirty); }
    bool is_io() const { return (word_ & kIo) != 0; }

   private:
    friend class Way;
    explicit Look(uint64_t word) : word_(word) {}
    uint64_t word_;
  };
  Look look() const { return Look(get()); }

  // --- with the set's lock ---

  // REQUIRES: it has no frame.
  void give_frame(uint32_t frame) { word_.fetch_add(uint64_t{frame} << kFrameShift); }
  // REQUIRES: FREE.
  uint32_t take_frame() { return static_cast<uint32_t>(word_.fetch_and(~kFrame) >> kFrameShift); }
  // Gives the way another frame, which holds the same bytes if there is a page. REQUIRES: FREE; or the caller excludes others, and has since
  // seen that there is neither a reader nor io.
  void replace_frame(uint32_t other) { word_.fetch_add((uint64_t{other} - frame()) << kFrameShift); }
  // Moves the page with its frame and its dirty mark; nobody is excluded from it afterwards. REQUIRES: the caller excludes others, and has
  // since seen that there is neither a reader nor io; the other way has no frame; the locks of both sets.
  void move_to(Way& other) {
    const uint64_t key = key_.load(std::memory_order_relaxed);
    const uint64_t word = word_.fetch_and(kReaders);
    DCHECK((word & (kExclusive | kResident | kLoading | kIo)) == (kExclusive | kResident));
    key_.store(0, std::memory_order_relaxed);
    other.key_.store(key, std::memory_order_relaxed);
    other.word_.fetch_add(word & (kFrame | kDirty | kResident));
  }
  // REQUIRES: FREE.
  void claim(PageKey key) {
    key_.store(static_cast<uint64_t>(key), std::memory_order_relaxed);
    const uint64_t before = word_.fetch_or(kLoading);
    CHECK_EQ(before & (kResident | kLoading | kDirty | kIo), 0u);
  }
  // False if somebody holds the page, or it is not clean: nothing is changed then.
  bool evict() {
    uint64_t clean = (get() & kFrame) | kResident;
    if (!word_.compare_exchange_strong(clean, clean & kFrame)) return false;
    key_.store(0, std::memory_order_relaxed);
    return true;
  }
  void load_failed() {
    key_.store(0, std::memory_order_relaxed);
    CHECK((word_.fetch_and(~kLoading) & kLoading) != 0);
  }
  // True: the caller is now a reader, and must copy the page. False: it is not dirty, is exclusive, or an Io is under way.
  bool begin_clean() {
    for (uint64_t word = get(); (word & (kDirty | kExclusive | kIo)) == kDirty;) {
      DCHECK((word & kReaders) != kReaders);
      if (word_.compare_exchange_weak(word, ((word & ~(kDirty | kAged)) | kIo) + 1)) return true;
    }
    return false;
  }
  // Marks the page if it is dirty. Returns whether it is dirty and was already marked.
  bool age() { return is_dirty() && (word_.fetch_or(kAged) & kAged) != 0; }

  // --- by any thread ---

  // To be called by the call that has claimed the way and filled its frame. From then on it is a reader, or excludes all others.
  void loaded() { word_.fetch_add(kResident - kLoading + 1); }
  void loaded_for_write() { word_.fetch_add(kResident + kExclusive - kLoading); }
  // If this page is here and not exclusive, the caller becomes a reader.
  bool try_share(PageKey key) {
    const uint64_t before = word_.fetch_add(1);
    DCHECK((before & kReaders) != kReaders);
    if ((before & (kResident | kExclusive)) == kResident && this->key() == key) return true;
    word_.fetch_sub(1);
    return false;
  }
  void unshare() {
    const uint64_t before = word_.fetch_sub(1);
    DCHECK((before & kReaders) != 0);
  }
  // If this page is here and not exclusive, it becomes exclusive: for the caller, once the last reader is gone.
  bool try_exclude(PageKey key) {
    for (uint64_t word = get(); (word & (kResident | kExclusive)) == kResident;) {
      if (!word_.compare_exchange_weak(word, word | kExclusive)) continue;
      if (this->key() == key) return true;
      unexclude();
      return false;
    }
    return false;
  }
  void unexclude() { CHECK((word_.fetch_and(~kExclusive) & kExclusive) != 0); }
  // Ends exclusive, and makes the page dirty. Returns whether it was clean.
  bool written() {
    uint64_t word = get();
    while (!word_.compare_exchange_weak(word, (word | kDirty) & ~kExclusive)) {
    }
    DCHECK((word & kExclusive) != 0);
    return (word & kDirty) == 0;
  }
  void cleaned() { CHECK((word_.fetch_and(~kIo) & kIo) != 0); }
  // Makes the page dirty again. Returns whether it was clean, so that nobody has written to it since begin_clean().
  bool clean_failed() {
    uint64_t word = get();
    while (!word_.compare_exchange_weak(word, (word | kDirty) & ~kIo)) {
    }
    return (word & kDirty) == 0;
  }

 private:
  static constexpr uint64_t kReaders = (1 << 26) - 1;
  static constexpr uint64_t kExclusive = 1 << 26;
  static constexpr uint64_t kResident = 1 << 27;
  static constexpr uint64_t kLoading = 1 << 28;
  static constexpr uint64_t kDirty = 1 << 29;
  static constexpr uint64_t kIo = 1 << 30;
  static constexpr uint64_t kAged = uint64_t{1} << 31;
  static constexpr unsigned kFrameShift = 32;
  static constexpr uint64_t kFrame = ~uint64_t{0} << kFrameShift;

  uint64_t get() const { return word_.load(); }

  std::atomic<uint64_t> key_{0};
  std::atomic<uint64_t> word_{0};
};
static_assert(sizeof(Way) == 16);

}  // namespace pagecache
