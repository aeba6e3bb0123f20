// LargeValues: values in pieces, while they are being read, written or taken apart.
//
// A value of more than Geometry::value_bytes_max() is as many records of pieces, which the index knows by hashes of their own, and a
// head: the key's record, which says what the pieces are called (format.h). The head is written last, when the pieces are on the
// medium for good, and is what makes the value be there; so it is one value or the other, whatever happens.
//
//  1 a piece whose head is not the key's record any more is nobody's: it is released by the collector, or by recovery, which finds it
//  2 who reads a value is registered here before it has looked, once more, whether the head is still its key's record. Who replaces a
//    head changes the index first and comes here then. So a reader that found the head keeps the pieces
//  3 the last reader of a value that is gone hands the pieces to the collector
// Any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "kv/media/format.h"
#include "sys/lock.h"

namespace kv {

// What a value's pieces are called by.
struct Pieces {
  KeyHash head;
  PiecesOf of;
};

class LargeValues {
 public:
  void begin_read(const Pieces& pieces);
  // Returns whether there is something for the collector.
  bool end_read(const Pieces& pieces);
  // The head is not the key's record any more, or has never been. Returns as end_read().
  bool remove(const Pieces& pieces);
  // Only those who read it keep it.
  bool is_removed(const Pieces& pieces);
  // Those that nobody reads. False: there are none.
  bool take_removed(Pieces& pieces);

  // Not all of their room could be given back: the medium cannot read some of them. They are removed once more by retry_left().
  void leave(const Pieces& pieces);
  bool has_left() const { return left_count_.load(std::memory_order_relaxed) != 0; }
  void retry_left();
  // A record that cannot be read is not its key's any more: it may have been a head. The next start finds its pieces.
  void lose() { lost_count_.fetch_add(1, std::memory_order_relaxed); }

  // Pieces that have no head so far: of who writes them.
  void begin_write(const Pieces& pieces);
  void end_write(const Pieces& pieces);
  // How many of those, and of those that are to be released: what is in the index and may have no head. For a checkpoint.
  size_t headless_count();

 private:
  struct Use {
    Pieces pieces;
    uint32_t readers = 0;
    bool is_removed = false;
  };
  std::vector<Use>::iterator find(const Pieces& pieces);

  sys::Mutex lock_;
  std::vector<Use> uses_;        // those that are read
  std::vector<Pieces> removed_;  // and nobody reads them
  std::vector<Pieces> written_;
  std::vector<Pieces> left_;
  std::atomic<size_t> left_count_{0};  // in left_
  std::atomic<size_t> lost_count_{0};
};

}  // namespace kv
