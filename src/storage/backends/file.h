// The file backend: preadv and pwritev on a file or block device, or commands of an NVMe character device, one call each.
// Works everywhere.
//
// A batch of one Io runs in the submitting thread, which is the shortest way for one miss. Larger batches
// go to helper threads shared by the device's queues, so that the medium sees their depth.
// O_DIRECT where the descriptor has it. EINTR is retried; short transfers are reported as they are.
// FileDevice is also what the aio and uring backends build on: the same descriptor, the same facts about it.
#pragma once
#include <string_view>

#include "storage/backends/file_helpers.h"
#include "storage/backends/nvme.h"
#include "storage/device.h"

namespace storage {

// An open medium and what open_medium (open_medium.h) found out about it.
struct Medium {
  int descriptor = -1;          // the runtime's own
  uint64_t capacity_bytes = 0;  // a multiple of block_bytes
  uint64_t missing_bytes = 0;   // of its last block: Device::end_bytes
  uint32_t block_bytes = 512;
  bool discards = false;
  bool is_block_device = false;  // discards by BLKDISCARD instead of hole punching
  bool is_direct = false;        // O_DIRECT; else transfers go through the kernel's page cache
  bool polls = false;  // its device can be polled for completions of reads and writes, as opposed to commands
  bool is_memory = false;  // nothing to wait for: transfers end before their system call returns
  bool ends_with_process =
      false;           // others want its room, or its lock, as soon as the process has ended or was killed
  NvmeNamespace nvme;  // of a character device, which takes commands; else none
  // Of a character device: the block device of the same namespace, the runtime's own, open exclusively as long as the
  // medium, for direct reading.
  int block_descriptor = -1;
  char label[200] = {};  // for Device::name(), after the scheme: "/mnt/nvme (unlinked file, direct)"

  bool takes_commands() const { return nvme.id != 0; }
};

// Closes its descriptors.
void close_medium(const Medium& medium);

inline constexpr uint32_t kDefaultHelperCount = 8;

// Takes over the medium, also on errors. helper_count 0: batches run one after the other.
// Errors: ENOMEM.
base::Expected<Device*> make_file_device(const Medium& medium, uint32_t helper_count = kDefaultHelperCount,
                                         size_t max_depth = kMaxQueueDepth);

class FileDevice : public Device {
 public:
  FileDevice(std::string_view scheme, const Medium& medium, size_t max_depth);

  const Medium& medium() const { return medium_; }
  size_t max_depth() const { return max_depth_; }
  // Null without helpers.
  FileHelpers* helpers() const { return helpers_; }
  base::Expected<void> start_helpers(uint32_t helper_count);

  // Runs the Io to its end: sets error and transferred_bytes. Thread-safe. May block.
  void perform(Io& io) const;
  // Where the kernel finds the first byte of a transfer.
  struct Where {
    int descriptor;
    uint64_t offset_bytes;
  };
  virtual Where where(const Io& io) const { return {medium_.descriptor, io.offset_bytes}; }
  // Sets error and transferred_bytes by what the kernel says: bytes (0 for discard and flush) or, where it takes commands, the
  // status of one, or -errno. Of statuses the first that is an error is logged.
  void set_result(Io& io, int64_t result) const;

  // Is this a child of fork of the process that opened it?
  bool is_in_child() const;

 protected:
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  bool do_has_room_at(uint64_t offset_bytes, uint64_t length_bytes) const override;
  void do_close() override;
  ~FileDevice() = default;
  // What it is called, "uring" or so, is what it turned out to be.
  void set_scheme(std::string_view scheme);
  // Ends the helpers and closes the medium, but does not free the object.
  void end();

 private:
  void transfer(Io& io) const;
  int64_t result_of_command(Io& io, int64_t status) const;

  Medium medium_;
  size_t max_depth_;
  FileHelpers* helpers_ = nullptr;
  const long process_;
  mutable std::atomic<bool> status_logged_{false};
};

}  // namespace storage
