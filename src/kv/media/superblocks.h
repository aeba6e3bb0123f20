// Superblocks: the two copies on a device. One that does not read is no loss while the other does, and is written anew from that one.
//
// The other copy stays as it is and lies far away: a power cut while one is written leaves the store as it was.
#pragma once
#include "kv/media/channel.h"
#include "kv/media/format.h"
#include "storage/device.h"

namespace kv {

class Superblocks {
 public:
  // What they say. Errors, as "store: NAME ...": those of read_superblock, of I/O; EINVAL if the store cannot be used on this
  // device: its blocks, or that it is another stripe than the store was made on.
  base::Expected<Identity> read(storage::Device& device, Channel& channel);
  // What the copy at kSuperblockOffsets[which] says, or why it does not read. After read(); of a copy that it did not come to, nothing.
  const base::Expected<Identity>& copy(size_t which) const { return copies_[which].identity; }
  // Tells of a copy that does not read and, where it may, writes it anew, for good. A failure is told, too; that of a flush is
  // returned, since others' writes may be lost with it. REQUIRES: read() has found the store.
  int mend(storage::Device& device, Channel& channel, bool may_write);

 private:
  struct Copy {
    alignas(4096) std::byte block[kSuperblockBytes];
    base::Expected<Identity> identity;
  };
  Copy copies_[std::size(kSuperblockOffsets)];
};

}  // namespace kv
