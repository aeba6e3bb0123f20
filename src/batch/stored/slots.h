// Slots: which slots of a stored table's medium are in use, a bit for each. In use are those that a region, a map or the last checkpoint refers to, and
// slot 0, where the superblocks are. As a slot's number, 0 means none.
//
// Slots are taken below a limit only, so that those in use lie together at the beginning of the medium. Who finds none there raises the limit, or takes
// a checkpoint: what was given up before it is free then.
//
// Thread contract: under the table's lock.
#pragma once
#include <cstdint>
#include <vector>

namespace batch {

class Slots {
 public:
  // There are more slots than regions: one for so many regions, and so many at least.
  static constexpr uint64_t kSpareShare = 8, kMinSpare = 8;

  // So many slots, of which all but slot 0 are free. set_limit() follows, after mark_used() for what is known to be in use.
  void open(uint64_t count);
  // Something on the medium refers to the slot. False: something else does, too. REQUIRES: slot < count().
  bool mark_used(uint64_t slot);
  // The limit leaves a share of what is in use.
  void set_limit();

  uint64_t count() const { return count_; }
  uint64_t used_count() const { return used_count_; }
  uint64_t free_count() const { return count_ - used_count_; }

  // Takes a free slot below the limit, the next one behind the last that was taken. 0: there is none.
  uint64_t take();
  // The same without regard to the limit, which rises as far as needed.
  uint64_t take_anywhere();
  // False, and nothing is changed: no slot lies beyond the limit, or so many were given up that a checkpoint gains more.
  bool raise_limit();
  // The slot is free.
  void give_back(uint64_t slot);
  // The slot is free when the next checkpoint is durable: until then the last one refers to it.
  void give_up(uint64_t slot);
  bool has_given_up() const { return !given_up_.empty(); }
  // For a checkpoint: what was given up before it. The caller gives these slots back when the checkpoint is durable, or else up again.
  std::vector<uint64_t> take_given_up();

 private:
  std::vector<uint64_t> used_;
  uint64_t count_ = 0, used_count_ = 0;
  uint64_t limit_ = 0;
  uint64_t next_ = 1;               // where take() begins to look
  std::vector<uint64_t> given_up_;  // since the last checkpoint
};

}  // namespace batch
