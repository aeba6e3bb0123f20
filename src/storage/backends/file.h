// The file backend: each Io is one blocking call, preadv or pwritev on a file or block device, or a command of an NVMe character
// device. It works everywhere.
//
// A batch of one Io runs in the submitting thread, which is the shortest way for a single miss. Larger batches go to helper threads,
// which all queues of the device share, so that the medium gets several requests at a time.
// Transfers are direct where the descriptor has O_DIRECT. EINTR is retried; short transfers are reported as they are.
// The aio and uring backends build on FileDevice: they use the same descriptor, and need the same facts about it.
#pragma once
#include <string_view>

#include "storage/backends/file_helpers.h"
#include "storage/backends/nvme.h"
#include "storage/device.h"

namespace storage {

// An open medium, and what open_medium (open_medium.h) found out about it.
struct Medium {
  int descriptor = -1;          // one of the runtime's own (sys/files.h)
  uint64_t capacity_bytes = 0;  // a multiple of block_bytes
  uint64_t missing_bytes = 0;   // how much of the last block is not there (Device::end_bytes)
  uint32_t block_bytes = 512;
  bool discards = false;
  bool is_block_device = false;  // discards by BLKDISCARD instead of hole punching
  bool is_direct = false;        // by O_DIRECT; otherwise transfers go through the kernel's page cache
  bool polls = false;      // its device can be polled for completions of reads and writes (not of commands)
  bool is_memory = false;  // there is nothing to wait for: transfers end before their system call returns
  // Its room, or its lock, must be free for others as soon as this process has ended or was killed.
  bool ends_with_process = false;
  bool is_locked = false;  // its file is locked against others through the descriptor
  NvmeNamespace nvme;      // of a character device, which takes commands; otherwise none
  // Of a character device: the block device of the same namespace, open exclusively, for direct reading, as long as the medium is; one
  // of the runtime's own descriptors.
  int block_descriptor = -1;
  char label[200] = {};  // follows the scheme in Device::name(): "/mnt/nvme (unlinked file, direct)"

  bool takes_commands() const { return nvme.id != 0; }
};

// Closes its descriptors, and releases its lock, which children of fork that inherited the descriptor would otherwise keep.
void close_medium(const Medium& medium);

inline constexpr uint32_t kDefaultHelperCount = 8;

// Takes over the medium, even on errors. With helper_count 0 the Ios of a batch run one after the other. Fewer helpers are started if
// the system has no more threads. Errors: ENOMEM.
base::Expected<Device*> make_file_device(const Medium& medium, uint32_t helper_count = kDefaultHelperCount,
                                         size_t max_depth = kMaxQueueDepth);

class FileDevice : public Device {
 public:
  FileDevice(std::string_view scheme, const Medium& medium, size_t max_depth);

  const Medium& medium() const { return medium_; }
  size_t max_depth() const { return max_depth_; }
  // Null without helpers.
  FileHelpers* helpers() const { return helpers_; }
  // To be called once. Errors: ENOMEM.
  base::Expected<void> start_helpers(uint32_t helper_count);

  // Runs the Io to its end by a blocking call, and sets error and transferred_bytes. Thread-safe.
  void perform(Io& io) const;
  // The descriptor and offset that are passed to the kernel for a transfer.
  struct Where {
    int descriptor;
    uint64_t offset_bytes;
  };
  virtual Where where(const Io& io) const { return {medium_.descriptor, io.offset_bytes}; }
  // Sets error and transferred_bytes from the kernel's result: a number of bytes (0 for discard and flush), -errno, or, if the medium
  // takes commands, the status of one. The first status that is an error is logged.
  void set_result(Io& io, int64_t result) const;

  // Has the calling process inherited the device by fork?
  bool is_in_child() const;

 protected:
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  bool do_has_room_at(uint64_t offset_bytes, uint64_t length_bytes) const override;
  void do_close() override;
  ~FileDevice() = default;
  // Names the device after the backend that serves it, which may not be the one that was asked for: "uring", "aio", "file".
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
  mutable std::atomic<bool> is_inherited_{false};
  mutable std::atomic<bool> status_logged_{false};
};

}  // namespace storage
