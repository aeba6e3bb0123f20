#include "storage/backends/nvme.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/ids.h"
#include "sys/kernel.h"

namespace storage {
namespace {

// NVM Express, base and NVM command set specifications.
constexpr uint8_t kFlush = 0x00, kWrite = 0x01, kRead = 0x02, kDatasetManagement = 0x09;
constexpr uint8_t kIdentify = 0x06;
constexpr uint32_t kDeallocate = 1 << 2;
constexpr uint64_t kMaxBlocks = 1 << 16;

struct Range {
  uint32_t attributes;
  uint32_t block_count;
  uint64_t first_block;
};
static_assert(sizeof(Range) == sizeof(Io::Resumption::rest));

// What NVME_IOCTL_IO64_CMD takes.
struct Request {
  nvme_uring_cmd words;
  uint64_t result;
};
static_assert(sizeof(Request) == sizeof(nvme_passthru_cmd64) &&
              offsetof(Request, result) == offsetof(nvme_passthru_cmd64, result));

uint64_t number_at(std::span<const unsigned char> bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number |= uint64_t{bytes[at + i]} << 8 * i;
  return number;
}

void set_blocks(const NvmeNamespace& space, uint64_t offset_bytes, NvmeCommand& command) {
  const uint64_t first_block = offset_bytes / space.block_bytes;
  command.words.cdw10 = static_cast<uint32_t>(first_block);
  command.words.cdw11 = static_cast<uint32_t>(first_block >> 32);
  command.words.cdw12 = static_cast<uint32_t>(command.transferred_bytes / space.block_bytes - 1);
}

// Sets as many segments as fit, or the front of the first.
void set_data(const NvmeNamespace& space, const Io& io, NvmeCommand& command) {
  const uint64_t most_bytes = std::min(space.command_bytes, kMaxBlocks * space.block_bytes);
  uint32_t count = 0;
  uint64_t bytes = 0;
  while (count < io.segment_count && io.segments[count].iov_len <= most_bytes - bytes)
    bytes += io.segments[count++].iov_len;
  command.is_vector = count > 1;
  command.transferred_bytes = count == 0 ? most_bytes : bytes;
  command.words.addr = reinterpret_cast<uint64_t>(command.is_vector ? io.segments : io.segments[0].iov_base);
  command.words.data_len = command.is_vector ? count : static_cast<uint32_t>(command.transferred_bytes);
}

}  // namespace

base::Expected<NvmeNamespace> parse_nvme_identity(
    std::span<const unsigned char, kNvmeIdentityBytes> identity) {
  constexpr size_t kFormatCount = 25, kFormat = 26, kFormats = 128;
  NvmeNamespace space;
  space.block_count = number_at(identity, 0, 8);
  if (space.block_count == 0) return base::failure(ENXIO, "the namespace is empty");
  uint32_t format = identity[kFormat] & 0xf;
  if (identity[kFormatCount] >= 16) format |= static_cast<uint32_t>(identity[kFormat] & 0x60) >> 1;
  const size_t at = kFormats + 4 * format;
  const uint64_t metadata_bytes = number_at(identity, at, 2);
  const uint32_t block_shift = identity[at + 2];
  if (metadata_bytes != 0)
    return base::failure(
        ENOTSUP, "its blocks have ", metadata_bytes,
        " bytes of metadata, which passthrough does not do; name its block device, or give it a "
        "format without (nvme format)");
  if (block_shift < 9 || block_shift > 12)
    return base::failure(ENOTSUP, "only blocks of 512 to 4096 bytes are supported");
  space.block_bytes = uint32_t{1} << block_shift;
  return space;
}

base::Expected<NvmeNamespace> identify_nvme(long descriptor) {
  const auto refusal = [](long result) {
    // A status means that the controller knows no such namespace (any more).
    const int number = result < 0 ? static_cast<int>(-result) : ENXIO;
    return base::failure(number, "it does not say what it is: ", base::error_name(number));
  };
  const long id = sys::syscall(SYS_ioctl, descriptor, NVME_IOCTL_ID);
  if (id <= 0) return refusal(id);
  alignas(4096) unsigned char identity[kNvmeIdentityBytes];
  nvme_admin_cmd command = {};
  command.opcode = kIdentify;
  command.nsid = static_cast<uint32_t>(id);
  command.addr = reinterpret_cast<uint64_t>(identity);
  command.data_len = sizeof identity;
  if (const long result = sys::syscall(SYS_ioctl, descriptor, NVME_IOCTL_ADMIN_CMD, &command); result != 0)
    return refusal(result);
  auto space = parse_nvme_identity(identity);
  if (space) space->id = static_cast<uint32_t>(id);
  return space;
}

NvmeCommand nvme_command(const NvmeNamespace& space, Io& io) {
  NvmeCommand command;
  command.words.nsid = space.id;
  switch (io.operation) {
    case Operation::kRead:
    case Operation::kWrite:
      command.words.opcode = io.operation == Operation::kRead ? kRead : kWrite;
      set_data(space, io, command);
      set_blocks(space, io.offset_bytes, command);
      break;
    case Operation::kDiscard: {
      // Blocks beyond what one range can have are not discarded: it is only advice.
      const uint64_t count = std::min(io.length_bytes / space.block_bytes, uint64_t{UINT32_MAX});
      const Range range = {0, static_cast<uint32_t>(count), io.offset_bytes / space.block_bytes};
      io.resumption.rest = std::bit_cast<iovec>(range);
      command.words.opcode = kDatasetManagement;
      command.words.addr = reinterpret_cast<uint64_t>(&io.resumption.rest);
      command.words.data_len = sizeof range;
      command.words.cdw11 = kDeallocate;  // of one range: cdw10 is 0
      break;
    }
    case Operation::kFlush: command.words.opcode = kFlush; break;
  }
  return command;
}

long run_nvme_command(int descriptor, const NvmeNamespace& space, Io& io) {
  constexpr int kMaxTries = 5;  // as the kernel does for block devices
  const NvmeCommand command = nvme_command(space, io);
  const auto request_number = command.is_vector ? NVME_IOCTL_IO64_CMD_VEC : NVME_IOCTL_IO64_CMD;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    Request request = {command.words, 0};
    const long result = sys::syscall(SYS_ioctl, descriptor, request_number, &request);
    if (result != -EINTR && result != -EAGAIN) return result;
  }
  return -EIO;
}

}  // namespace storage
