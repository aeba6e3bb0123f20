// NVMe commands: how an Io is said to a namespace that is used past the kernel's block layer, by its character device
// (/dev/ng0n1).
//
// Invariants
//  1 a command transfers the front of its Io, as much as the kernel and the controller take at once; the rest is resumed
//    (device.h), one command after the other
//  2 the same Io gives the same command as long as nobody changes it, so that who hears of its end knows what it was
#pragma once
#include <linux/ioctl.h>
#include <linux/nvme_ioctl.h>

#include <span>

#include "storage/device.h"

namespace storage {

struct NvmeNamespace {
  uint32_t id = 0;  // 0: none
  uint32_t block_bytes = 0;
  uint64_t block_count = 0;
  uint64_t command_bytes = 0;  // at most, of one that transfers; a multiple of 4096
};

// What the Identify command says of a namespace: its blocks. Pure. Errors: ENOTSUP (metadata, or blocks that are not of 512 to 4096
// bytes), ENXIO (there is none, or it is empty); the message is what is wrong with it.
inline constexpr size_t kNvmeIdentityBytes = 4096;
base::Expected<NvmeNamespace> parse_nvme_identity(
    std::span<const unsigned char, kNvmeIdentityBytes> identity);
// Asks the kernel for it, by a descriptor of the character device. Errors: as above, and the kernel's.
base::Expected<NvmeNamespace> identify_nvme(long descriptor);

struct NvmeCommand {
  nvme_uring_cmd words = {};
  bool is_vector = false;          // words.addr is a list of data_len segments
  uint64_t transferred_bytes = 0;  // when it succeeds; 0 for what transfers nothing
};

// Pure. Of a discard the Io holds what the controller reads, until the command has ended.
NvmeCommand nvme_command(const NvmeNamespace& space, Io& io);

// Runs that command. Returns what the kernel does: the status of the completion (nvme_status_type), 0 for success, or -errno, among
// them ENODEV when the device is gone. May block. One that the kernel gave up, since the controller was reset, is tried again a few times.
long run_nvme_command(int descriptor, const NvmeNamespace& space, Io& io);

// The parts of a status that is not 0, for nvme_status.h.
inline uint32_t nvme_status_type(long status) { return static_cast<uint32_t>(status) >> 8 & 7; }
inline uint32_t nvme_status_code(long status) { return static_cast<uint32_t>(status) & 0xff; }

}  // namespace storage
