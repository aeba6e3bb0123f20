// Pager: keeps the pages of spilled memory that a program of preload mode uses in memory, within a budget, and the
// others on storage. The memory is real: the program, its libraries and the kernel use it at its own address.
//
//   absent    missing at its address; on storage (Page::spot), or never written: zeros
//   hot       at its address; in a list, oldest arrival first
//   cooling   missing at its address, whole in the side area; in a list, oldest first. The second chance: a touch
//             brings it back without I/O
//
//              load                 cool                  leave
//     absent ────────► hot ─────────────────► cooling ─────────────► absent
//                       ▲                       │
//                       └────── bring_back ─────┘         discard: from any to absent, without spot
//
// Steps of an eviction (cool, leave), against threads that store to the page all the time:
//   1 the kernel moves the page to the side area atomically: a store comes either before, and is in the page, or after,
//     and waits for us. Pages that the kernel is reading or writing (direct I/O) do not move, and stay
//   2 only now, when nobody can store to it any more, its fingerprint is taken and compared
//   3 what changed is written; its fingerprint is unknown from before the write until the next load
//   4 only after its whole write has succeeded is its memory given back, and its frame free
// and of a load: 1 all is read · 2 fingerprint · 3 the kernel copies the page to its address, unless one is there.
//
// Invariants
//  1 nothing here touches an address of the spilled range, which could wait for this thread itself
//  2 a page has a frame if and only if it is hot or cooling; frame i's place in the side area is OS page i of it
//  3 Frame::known is what a load of Page::spot would yield (kNoSpot: zeros), or unknown
//  4 a page whose content is not what `known` says is written before it is absent, or it was discarded
//  5 a missing page at a hot address was given back to the kernel behind our back: it reads as zeros
//
// Owner: the thread that serves faults (service.h). No other thread calls anything here.
#pragma once
#include <cstdint>
#include <span>

#include "base/fingerprint.h"
#include "spill/preload/store.h"
#include "sys/user_faults.h"

namespace spill::preload {

using PageNumber = uint32_t;  // OS page of the spilled range
using FrameNumber = uint32_t;
inline constexpr FrameNumber kNone = ~FrameNumber{0};

class Pager {
 public:
  // Maps the tables and the side area, and registers the latter with `faults`. Errors: ENOMEM, those of Store::open.
  base::Expected<void> open(sys::UserFaults& faults, storage::Device& device, uint64_t memory_bytes);

  // The page at `address` is missing, or was a moment ago: afterwards it is there, and whoever waits for it goes on.
  void serve(uint64_t address);

  // All of it reads as zeros from now on. Whole OS pages.
  void discard(uint64_t address, uint64_t bytes);
  // Moves what is at `from` to `to`; `from` then reads as zeros. Whole OS pages that do not overlap.
  void relocate(uint64_t to, uint64_t from, uint64_t bytes);

 private:
  enum class State : uint32_t { kFree, kHot, kCooling };
  struct Page {
    Spot spot;
    uint32_t frame_plus_1;
  };
  struct Frame {
    base::Fingerprint known;
    PageNumber page;
    FrameNumber next;
    FrameNumber previous;
    State state;
  };
  static_assert(sizeof(Frame) == 32 && sizeof(Page) == 8);
  static constexpr uint32_t kPagesPerTablePage = base::kOsPageBytes / sizeof(Page);
  struct List {
    FrameNumber first = kNone;
    FrameNumber last = kNone;
    uint32_t count = 0;
  };
  // A run of misses to neighbouring pages, upwards or downwards.
  struct Stream {
    PageNumber next_up = 0;
    PageNumber next_down = 0;
    uint32_t window = 0;
  };

  FrameNumber frame_of(PageNumber page) const { return pages_[page].frame_plus_1 - 1; }
  char* side_of(FrameNumber frame) const { return side_ + uint64_t{frame} * base::kOsPageBytes; }
  void append(List& list, FrameNumber frame, State state);
  void remove(FrameNumber frame);
  List& list_of(State state);
  FrameNumber take_frame(PageNumber page);
  void give_frame(PageNumber page, FrameNumber frame);
  static uint64_t table_page_of(PageNumber page) { return uint64_t{page} / kPagesPerTablePage; }
  bool is_touched(PageNumber page) const;
  void note_touched(PageNumber page);
  void free_frame(FrameNumber frame);
  bool relocate_hot(uint64_t to, uint64_t from);
  long copy_in(uint64_t to, const void* from, uint64_t bytes);
  uint32_t in_use() const { return hot_.count + cooling_.count; }
  uint32_t allowed() const;
  void count_memory();

  void load(PageNumber page);
  void bring_back(PageNumber page);
  void dropped_by_program(PageNumber page);
  uint32_t place_pages(PageNumber first, uint32_t count, uint64_t& read_bytes);
  uint32_t absent_run(PageNumber from, uint32_t most, bool upwards) const;
  uint32_t window_for(PageNumber page, bool& upwards);

  uint32_t make_room(uint32_t wanted);
  void cool(uint32_t wanted);
  uint32_t cool_run();
  bool cool_stubborn(FrameNumber frame, long error);
  uint32_t leave(int& error);
  void release_side(std::span<const FrameNumber> frames);

  sys::UserFaults* faults_ = nullptr;
  Store store_;
  uint64_t memory_bytes_ = 0;
  uint32_t frame_limit_ = 0;  // how many frames there is address space for
  uint32_t frames_made_ = 0;  // frames that were ever used
  uint64_t metadata_bytes_ = 0;
  uint32_t most_loaded_ = 1;   // pages that one fault may bring
  uint32_t most_leaving_ = 1;  // pages that leave together
  bool said_over_ = false;
  Page* pages_ = nullptr;
  uint64_t* touched_ = nullptr;  // bit by OS page of pages_: counted as metadata
  Frame* frames_ = nullptr;
  char* side_ = nullptr;
  char* staging_ = nullptr;
  char* zeros_ = nullptr;
  List free_, hot_, cooling_;
  static constexpr uint32_t kStreams = 8;
  Stream streams_[kStreams];
  uint32_t oldest_stream_ = 0;
};

}  // namespace spill::preload
