// Slots: which slots of a stored table's medium are in use, with a bit for each. A slot is in use if a region, a map or the last checkpoint refers to it;
// slot 0, where the superblocks are, always is. Where a function returns a slot's number, 0 means none.
//
// Slots are taken only below a limit, so that those in use lie together at the beginning of the medium. A caller that finds none there raises the limit, or
// takes a checkpoint, which makes the slots free that were given up before it.
//
// Thread contract: under the table's lock.
#pragma once
#include <cstdint>
#include <vector>

namespace batch {

class Slots {
 public:
  // A table has more slots than regions: one more for every kSpareShare regions, and at least kMinSpare more.
  static constexpr uint64_t kSpareShare = 8, kMinSpare = 8;

  // Begins with `count` slots; all except slot 0 are free. The caller then calls mark_used() for those known to be in use, and set_limit().
  void open(uint64_t count);
  // Something on the medium refers to the slot. False: something else refers to it, too. REQUIRES: slot < count().
  bool mark_used(uint64_t slot);
  // Sets the limit so that some slots below it are free: a share of those in use.
  void set_limit();

  uint64_t count() const { return count_; }
  uint64_t used_count() const { return used_count_; }
  uint64_t free_count() const { return count_ - used_count_; }

  // Takes a free slot below the limit: the next one after the last that was taken. 0: there is none.
  uint64_t take();
  // The same, but the limit is raised as far as needed.
  uint64_t take_anywhere();
  // False: nothing was changed, because no slot lies beyond the limit, or because so many slots were given up that a checkpoint makes more free.
  bool raise_limit();
  // The slot is free now.
  void give_back(uint64_t slot);
  // The slot will be free when the next checkpoint is durable: until then the last checkpoint refers to it.
  void give_up(uint64_t slot);
  bool has_given_up() const { return !given_up_.empty(); }
  // For a checkpoint: returns the slots that were given up before it. When the checkpoint is durable, the caller calls give_back() for them; if it failed,
  // give_up() again.
  std::vector<uint64_t> take_given_up();

 private:
  std::vector<uint64_t> used_;
  uint64_t count_ = 0, used_count_ = 0;
  uint64_t limit_ = 0;
  uint64_t next_ = 1;               // where take() begins to look
  std::vector<uint64_t> given_up_;  // since the last checkpoint
};

}  // namespace batch
