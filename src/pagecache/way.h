// Way: a slot of a set that holds one page; what page that is, its frame, and the state machine of its life, in 16 bytes.
//
//   FREE --claim--> LOADING --loaded----------------------> RESIDENT --evict--> FREE
//                      |    `-loaded_for_write--> RESIDENT+exclusive   (clean, nobody holds it)
//                      `--load_failed--> FREE
//   without a frame --give_frame--> FREE --take_frame--> without a frame
//   RESIDENT+exclusive, without a reader and without io --move_to--> without a frame; the other way: without a frame --> RESIDENT
//   RESIDENT: each of these by itself
//     readers    try_share +1, unshare -1
//     exclusive  try_exclude, unshare by the last reader before it; written (dirty is set) or unexclude end it
//     dirty      written sets it; begin_clean ends it
//     aged       a mark of a page that is dirty: age sets it; what ends dirty ends it, and so does move_to
//     io         begin_clean (dirty, not exclusive) sets it and adds a reader, who copies the page; cleaned ends it, or clean_failed,
//                which sets dirty again
//
//   word   bits 0-25 readers, 26 exclusive, 27 resident, 28 loading, 29 dirty, 30 io, 31 aged, 32-63 frame, 0: none
//   key    which page, PageKey; 0: none
//
// Invariants
//  1 the key changes under the set's lock, and not while the page is loading, cleaned, or held: who holds a reader, or the exclusive mark,
//    of a resident page sees it stay in this way
//  2 a page leaves only when it is clean, not being written, and nobody holds it
//  3 one Io at a time is under way for a page: loading or io
//  4 anybody may add a reader to any way, or exclude others from its page, for a moment, to find out that it holds another page: edges that
//    need to have no reader are compare-and-swaps, or excluded others before and have seen the last one go; all others leave readers as
//    they are
//
// Order: what the bytes of a page were when an edge was taken is seen by who takes a later one: all edges are acquire and release. They are
// sequentially consistent, too, as SetWaits (page_set.h) needs.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace pagecache {

// A page of a file: the file's number, from 1 on, above 48 bits of the page's.
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
  // Dirty, or being cleaned, at one moment: a clean that fails goes from the one to the other.
  bool is_unsaved() const { return (get() & (kDirty | kIo)) != 0; }
  bool has_readers() const { return (get() & kReaders) != 0; }
  // Does the page have to stay in this way?
  bool is_held() const { return (get() & (kReaders | kExclusive | kLoading | kIo)) != 0; }
  bool is_evictable() const { return look().is_evictable(); }
  bool is_cleanable() const { return look().is_cleanable(); }
  // What it was at one moment, for who asks for more than one of these.
  class Look {
   public:
    bool has_frame() const { return (word_ & kFrame) != 0; }
    // Has it a frame, and no page?
    bool is_free() const { return (word_ & (kResident | kLoading)) == 0 && has_frame(); }
    // Could its page leave?
    bool is_evictable() const { return (word_ & ~kFrame) == kResident; }
    // The same, once it has been cleaned?
    bool is_cleanable() const { return (word_ & ~(kFrame | kAged)) == (kResident | kDirty); }
    bool is_io() const { return (word_ & kIo) != 0; }

   private:
    friend class Way;
    explicit Look(uint64_t word) : word_(word) {}
    uint64_t word_;
  };
  Look look() const { return Look(get()); }

  // --- under the set's lock ---

  // REQUIRES: it has no frame.
  void give_frame(uint32_t frame) { word_.fetch_add(uint64_t{frame} << kFrameShift); }
  // REQUIRES: FREE.
  uint32_t take_frame() { return static_cast<uint32_t>(word_.fetch_and(~kFrame) >> kFrameShift); }
  // Another frame, which holds the same bytes if there is a page. REQUIRES: FREE, or the caller excludes others, and has seen no reader and
  // no io since.
  void replace_frame(uint32_t other) { word_.fetch_add((uint64_t{other} - frame()) << kFrameShift); }
  // The page goes with its frame, and dirty if it is. REQUIRES: the caller excludes others, and has seen no reader and no io since; the
  // other way has no frame; the locks of both sets.
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
  // False: somebody holds it, or it is not clean.
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
  // False: it is not dirty, is exclusive, or an Io is under way. True: the caller is a reader, who copies the page.
  bool begin_clean() {
    for (uint64_t word = get(); (word & (kDirty | kExclusive | kIo)) == kDirty;) {
      DCHECK((word & kReaders) != kReaders);
      if (word_.compare_exchange_weak(word, ((word & ~(kDirty | kAged)) | kIo) + 1)) return true;
    }
    return false;
  }
  // Marks a page that is dirty. Returns whether it is, and was marked before.
  bool age() { return is_dirty() && (word_.fetch_or(kAged) & kAged) != 0; }

  // --- by anybody ---

  // Who claimed it has filled the frame; it is a reader, or excludes all others, from now on.
  void loaded() { word_.fetch_add(kResident - kLoading + 1); }
  void loaded_for_write() { word_.fetch_add(kResident + kExclusive - kLoading); }
  // Is this page here, and not exclusive? Then the caller is a reader.
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
  // Is this page here, and not exclusive? Then it is for the caller, once the last reader has gone.
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
  // Returns whether it was clean.
  bool written() {
    uint64_t word = get();
    while (!word_.compare_exchange_weak(word, (word | kDirty) & ~kExclusive)) {
    }
    DCHECK((word & kExclusive) != 0);
    return (word & kDirty) == 0;
  }
  void cleaned() { CHECK((word_.fetch_and(~kIo) & kIo) != 0); }
  // Returns whether it was clean: nobody has written to it meanwhile.
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
