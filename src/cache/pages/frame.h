// Frame: a slot of DRAM that holds one page, and the state machine of its life.
//
//   ABSENT ----add---> FREE                                   (its pool is opened)
//   FREE ----claim---> LOADING --loaded--> RESIDENT --lock--> EVICTING --unchanged--> FREE
//                        |                  ^  ^  ^               |  |---discarded--> FREE
//                        `--load_failed--> FREE|  `----rescue-----|  `--changed--> WRITING --written--> FREE
//                                              |                                   |  |
//                                              |-----------write_failed------------'  |
//                                              `-- RESIDENT+io <------rescue----------'
//   RESIDENT --clean--> RESIDENT+io --done--> RESIDENT
//
// Invariants (verify() in partition.cc is their executable twin)
//  1 changed content reaches FREE only through WRITING or discarded
//  2 a pin or `io` forbids lock and clean; a frame with pins is RESIDENT
//  3 every edge is taken by the holder of the partition's lock. Between lock and the next edge the
//    evictor works without the lock; whoever holds the lock may rescue meanwhile, and the evictor
//    notices because every edge raises `version`
//  4 at most one Io is under way for a frame: io is set while RESIDENT or WRITING has one
#pragma once
#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/fingerprint.h"
#include "base/ids.h"

namespace cache {

using base::FrameId;
using base::PageId;
using base::PlaceId;

// The frame's memory.
//   kOwn      a piece of the pool's present memory file, which can be mapped a second time
//   kPrivate  a private mapping of the memory file that the pool had before a fork: the other processes that have this file do not see what
//             is stored here
//   kOld      a shared mapping of that file, because the page is kept mapped a second time
enum class Backing : uint8_t { kOwn, kPrivate, kOld };

// Whether the page was loaded ahead of use (Partition::prefetch, read-ahead) and is not known to have been used since.
//   kNew     it has not been considered as a victim yet
//   kSpared  it was considered once, and spared
enum class Ahead : uint8_t { kNo, kNew, kSpared };

enum class State : uint8_t { kAbsent, kFree, kLoading, kResident, kEvicting, kWriting };

class Frame {
 public:
  // A system call pins a page once for each OS page of a buffer and each entry of a vector, and many threads may be in such calls.
  static constexpr uint32_t kMaxPins = (1 << 23) - 1;

  State state() const { return static_cast<State>(word() & 0xff); }
  bool io() const { return (word() & kIo) != 0; }
  uint32_t pins() const { return static_cast<uint32_t>(word() >> kPinShift) & kMaxPins; }
  uint32_t version() const { return static_cast<uint32_t>(word() >> kVersionShift); }

  // Is it still in the state that the edge which returned this version led to?
  bool is(State expected, uint32_t expected_version) const {
    return state() == expected && version() == expected_version;
  }

  // Each edge returns the new version. REQUIRES: the frame is in the state that the edge starts from, and the caller holds the partition's
  // lock.
  uint32_t add() { return edge(State::kAbsent, State::kFree, false); }
  uint32_t claim() { return edge(State::kFree, State::kLoading, false); }
  uint32_t loaded() { return edge(State::kLoading, State::kResident, false); }
  uint32_t load_failed() { return edge(State::kLoading, State::kFree, false); }
  uint32_t lock() { return edge(State::kResident, State::kEvicting, false); }
  uint32_t unchanged() { return edge(State::kEvicting, State::kFree, false); }
  uint32_t discarded() { return edge(State::kEvicting, State::kFree, false); }
  uint32_t changed() { return edge(State::kEvicting, State::kWriting, true); }
  uint32_t written() { return edge(State::kWriting, State::kFree, false, true); }
  uint32_t write_failed() { return edge(State::kWriting, State::kResident, false, true); }
  uint32_t rescue() {
    return state() == State::kWriting ? edge(State::kWriting, State::kResident, true, true)
                                      : edge(State::kEvicting, State::kResident, false);
  }
  uint32_t clean() { return edge(State::kResident, State::kResident, true); }
  uint32_t done() { return edge(State::kResident, State::kResident, false, true, true); }

  void pin() {
    CHECK(state() == State::kResident);
    CHECK_LT(pins(), kMaxPins);
    word_.fetch_add(uint64_t{1} << kPinShift, std::memory_order_relaxed);
  }
  // In a child of fork, which lacks the parent's threads that would unpin.
  void forget_pins() {
    word_.fetch_and(~kPinMask, std::memory_order_relaxed);
    stays = false;
  }
  void unpin() {
    CHECK_GT(pins(), 0u);
    word_.fetch_sub(uint64_t{1} << kPinShift, std::memory_order_relaxed);
  }
  // Pins of threads that may be storing to the memory through an address that they, or the kernel for them, have looked up.
  uint32_t storing_pins() const { return stays ? pins() - 1 : pins(); }

  PageId page{};                   // the page that it holds, unless it is absent or free
  PlaceId place = base::kNoPlace;  // that page's place on storage, kNoPlace: never written
  bool fresh : 1 = true;           // reads as zeros: not touched since the OS gave it
  bool verified : 1 = false;       // nobody can have touched it since its fingerprints were found right
  bool poisoned : 1 = false;       // chaos: poisoned since it became free
  // Its memory was protected before its page was loaded: OS pages that the kernel reports as not stored to are as they were loaded.
  bool watched : 1 = false;
  bool stale_load : 1 = false;  // its load began before a fork, and may store to the memory file of that time
  bool gone : 1 = false;  // EVICTING: its page was forgotten while a thread held it, and must not be rescued
  bool guarded : 1 = false;  // some of its memory refuses accesses by bytes() (FramePool::guard)
  bool stays : 1 = false;    // one of its pins only keeps the page here (Partition::stay)
  Ahead ahead : 2 = Ahead::kNo;
  Backing backing : 2 = Backing::kOwn;
  // How many evictors have it as a victim and may be reading its memory; it must not be guarded meanwhile.
  uint16_t looked_at = 0;

 private:
  static constexpr uint64_t kIo = 1 << 8;
  static constexpr unsigned kPinShift = 9;
  static constexpr uint64_t kPinMask = uint64_t{kMaxPins} << kPinShift;
  static constexpr unsigned kVersionShift = 32;

  uint64_t word() const { return word_.load(std::memory_order_relaxed); }

  // Relaxed: all edges are ordered by the partition's lock. The compare-and-swap checks that nobody takes
  // an edge without it.
  uint32_t edge(State from, State to, bool io_after, bool io_before = false, bool pins_allowed = false) {
    uint64_t old = word();
    CHECK_EQ(old & 0xff, static_cast<uint64_t>(from));
    CHECK_EQ((old & kIo) != 0, io_before);
    if (!pins_allowed && from == State::kResident) CHECK_EQ(pins(), 0u);
    uint64_t version = (old >> kVersionShift) + 1;
    uint64_t next =
        (version << kVersionShift) | (old & kPinMask) | (io_after ? kIo : 0) | static_cast<uint64_t>(to);
    CHECK(word_.compare_exchange_strong(old, next, std::memory_order_relaxed));
    return static_cast<uint32_t>(version);
  }

  std::atomic<uint64_t> word_{static_cast<uint64_t>(State::kAbsent)};
};
static_assert(sizeof(Frame) == 24);

}  // namespace cache
