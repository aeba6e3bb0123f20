// Superblocks: the two copies of a store's superblock. A copy that cannot be used is no loss while the other one can: it is written anew from that one.
//
// Meanwhile the good copy, which lies far from the other one, is not touched: a power cut leaves the store as it was.
#pragma once
#include "kv/media/channel.h"
#include "kv/media/format.h"
#include "storage/device.h"

namespace kv {

class Superblocks {
 public:
  // Reads both, and returns what they say. Errors, as "store: NAME ...": those of read_superblock, those of I/O; EINVAL: the device has blocks that are
  // larger than the store's grains, or is not the stripe that the store was made on.
  base::Expected<Identity> read(storage::Device& device, Channel& channel);
  // What the copy at kSuperblockOffsets[which] says, or why it cannot be used. REQUIRES: read() was called; a copy that it did not get to is not set.
  const base::Expected<Identity>& copy(size_t which) const { return copies_[which].identity; }
  // Is each copy whole, but of another store? REQUIRES: read() has found the store.
  bool are_of_two_stores() const;
  // Logs that a copy cannot be used, and writes it anew, durably, if it may. An error of the write is logged; one of the flush is returned, since other
  // writes may be lost with it. REQUIRES: read() has found the store.
  int mend(storage::Device& device, Channel& channel, bool may_write);

 private:
  struct Copy {
    alignas(4096) std::byte block[kSuperblockBytes];
    base::Expected<Identity> identity;
  };
  Copy copies_[std::size(kSuperblockOffsets)];
};

}  // namespace kv
