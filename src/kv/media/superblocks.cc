#include "kv/media/superblocks.h"

#include "base/log.h"

namespace kv {
namespace {

struct LayoutText : base::Text<64> {
  explicit LayoutText(const storage::Layout& layout) {
    if (layout.unit_bytes == 0)
      *this << "one device";
    else
      *this << "a stripe of " << layout.member_count << " devices in units of "
            << base::Bytes{layout.unit_bytes};
  }
};

bool is_none(const base::Error& error) { return error.number == EINVAL; }

bool is_refusal(const base::Error& error) {
  return error.number == EPROTONOSUPPORT || error.number == ENOSPC;
}

}  // namespace

base::Expected<Identity> Superblocks::read(storage::Device& device, Channel& channel) {
  auto& [first, second] = copies_;
  for (Copy& copy : copies_) {
    const uint64_t offset = kSuperblockOffsets[&copy - copies_];
    copy.identity = base::failure(EINVAL, "holds no store");
    if (offset + kSuperblockBytes > device.capacity_bytes()) continue;
    if (const int error = channel.read(offset, copy.block); error != 0)
      copy.identity = base::failure(error, "cannot be read: ", base::error_name(error));
    else if (const auto read = read_superblock(copy.block); read && read->layout != device.layout())
      return base::failure(EINVAL, "store: it was made on ", LayoutText(read->layout).c_str(),
                           ", and is opened on ", LayoutText(device.layout()).c_str(), ": ", device.name());
    else
      copy.identity = read_superblock(copy.block, device.capacity_bytes());
    // This copy is whole, and says that the store is not for this device or program: what the other one says does not matter.
    if (!copy.identity && is_refusal(copy.identity.error()))
      return base::failure(copy.identity.error().number, "store: ", device.name(), " ",
                           copy.identity.error().message);
  }
  // If neither can be used, the first one's reason is reported, unless that is merely that there is no superblock.
  const bool is_first = first.identity || (!second.identity && !is_none(first.identity.error()));
  const base::Expected<Identity>& identity = (is_first ? first : second).identity;
  if (!identity)
    return base::failure(identity.error().number, "store: ", device.name(), " ", identity.error().message);
  if (identity->geometry.grain_bytes < device.block_bytes())
    return base::failure(EINVAL, "store: grains of ", identity->geometry.grain_bytes, " bytes, but ",
                         device.name(), " has blocks of ", device.block_bytes(),
                         "; dump it where its blocks are smaller, and load that");
  return identity;
}

bool Superblocks::are_of_two_stores() const {
  const auto& [first, second] = copies_;
  return first.identity && second.identity && *first.identity != *second.identity;
}

int Superblocks::mend(storage::Device& device, Channel& channel, bool may_write) {
  const auto& [first, second] = copies_;
  if (first.identity && second.identity) return 0;
  const bool is_first = !first.identity;
  const uint64_t offset = kSuperblockOffsets[is_first ? 0 : 1];
  const int write_error = may_write ? channel.write(offset, (is_first ? second : first).block) : 0;
  const int flush_error = may_write && write_error == 0 ? channel.flush() : 0;
  const int error = write_error != 0 ? write_error : flush_error;
  base::log({.name = "superblock_damaged", .fields = {{"offset_bytes", offset}, {"error", error}}},
            "store: ", device.name(), ": the superblock at byte ", offset, " was damaged, ",
            !may_write   ? "and is written anew when the store is opened for writing"
            : error == 0 ? "and was written anew from the other one"
                         : "and could not be written anew: ",
            error != 0 ? base::error_name(error) : "");
  return flush_error;
}

}  // namespace kv
