// LargeValues: which values in pieces are being read or written, and whose pieces are to be released.
//
// A value of more than Geometry::value_bytes_max() is stored as pieces, which are records that the index knows by hashes of their own, and a head:
// the key's record, which names the pieces (format.h). The head is written last, when the pieces are durable, and only with it is the value there;
// so after a crash the key has the one value or the other.
//
//  1 Pieces whose head is no longer its key's record belong to nobody: the collector releases them, or recovery, which finds them
//  2 A reader of a value registers here, and then checks once more that the head is still its key's record. Whoever replaces a head changes
//    the index first and then calls remove(). So the pieces stay for every reader that has found the head
//  3 The last reader of a value that is gone hands its pieces to the collector
// Thread contract: any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "kv/media/format.h"
#include "sys/lock.h"

namespace kv {

// What identifies a value's pieces.
struct Pieces {
  KeyHash head;
  PiecesOf of;
};

class LargeValues {
 public:
  void begin_read(const Pieces& pieces);
  // Returns whether the collector has pieces to release now.
  bool end_read(const Pieces& pieces);
  // The head is no longer the key's record, or never was. Returns as end_read().
  bool remove(const Pieces& pieces);
  // Has the value been removed, so that only its readers keep it? False if it has none.
  bool is_removed(const Pieces& pieces);
  // For the collector: pieces of a removed value that nobody reads. False: there are none.
  bool take_removed(Pieces& pieces);

  // For the collector: the medium could not read some of these pieces, and their room was not given back. retry_left() removes them once more.
  void leave(const Pieces& pieces);
  bool has_left() const { return left_count_.load(std::memory_order_relaxed) != 0; }
  void retry_left();
  // A record that could not be read was replaced: it may have been a head, whose pieces the next start finds.
  void lose() { lost_count_.fetch_add(1, std::memory_order_relaxed); }

  // For writers: pieces that have no head so far; they have one now; they will have none, and are the collector's to release. At no moment between
  // the first of these calls and the release does headless_count() miss them.
  void begin_write(const Pieces& pieces);
  void end_write(const Pieces& pieces);
  void abandon_write(const Pieces& pieces);
  // For a checkpoint: how many values there are of which the index may have pieces but no head: those being written, removed, left or lost.
  size_t headless_count();

 private:
  struct Use {
    Pieces pieces;
    uint32_t readers = 0;
    bool is_removed = false;
  };
  std::vector<Use>::iterator find(const Pieces& pieces);
  void forget_write(const Pieces& pieces);

  sys::Mutex lock_;
  std::vector<Use> uses_;              // values that are being read
  std::vector<Pieces> removed_;        // of removed values that nobody reads
  std::vector<Pieces> written_;        // of values that are being written
  std::vector<Pieces> left_;           // of values whose pieces could not all be released
  std::atomic<size_t> left_count_{0};  // in left_
  std::atomic<size_t> lost_count_{0};
};

}  // namespace kv
