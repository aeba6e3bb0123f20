// NVMe commands: what an Io becomes for a namespace that is used through its character device (/dev/ng0n1), past the kernel's block layer.
//
// Invariants
//  1 a command transfers the front of its Io: as much as the kernel and the controller take at once. The rest is resumed (device.h), one
//    command after the other
//  2 an unchanged Io always gives the same command: so the command is not kept, but computed again when it has ended
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
  uint64_t command_bytes = 0;  // the most that one command transfers; a multiple of 4096
};

// Parses what the data of the Identify command says about a namespace's blocks. Pure. Errors: ENOTSUP (metadata, or blocks that are not of
// 512 to 4096 bytes), ENXIO (the namespace is empty); the message says what is wrong.
inline constexpr size_t kNvmeIdentityBytes = 4096;
base::Expected<NvmeNamespace> parse_nvme_identity(
    std::span<const unsigned char, kNvmeIdentityBytes> identity);
// Identifies the namespace of a descriptor of its character device; command_bytes is not set. Errors: as above; ENXIO (there is no such
// namespace any more); the kernel's.
base::Expected<NvmeNamespace> identify_nvme(long descriptor);

struct NvmeCommand {
  nvme_uring_cmd words = {};
  bool is_vector = false;          // words.addr is an array of data_len segments
  uint64_t transferred_bytes = 0;  // what it transfers when it succeeds; 0 for discards and flushes
};

// Changes nothing of the Io except resumption.rest, where it puts what the controller reads for a discard: the Io must stay in place until the
// command has ended.
NvmeCommand nvme_command(const NvmeNamespace& space, Io& io);

// Runs the Io's command, and blocks until it has ended. Returns 0 for success, the status of the completion (nvme_status_type), or -errno;
// ENODEV means that the device is gone. A command that the kernel aborted because the controller was reset is retried a few times.
long run_nvme_command(int descriptor, const NvmeNamespace& space, Io& io);

// The parts of a status that is not 0, as nvme_status.h takes them.
inline uint32_t nvme_status_type(long status) { return static_cast<uint32_t>(status) >> 8 & 7; }
inline uint32_t nvme_status_code(long status) { return static_cast<uint32_t>(status) & 0xff; }

}  // namespace storage
