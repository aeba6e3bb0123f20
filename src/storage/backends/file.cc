#include "storage/backends/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>

#include "base/check.h"
#include "base/log.h"
#include "storage/backends/nvme_status.h"
#include "storage/objects.h"
#include "sys/files.h"
#include "sys/kernel.h"

namespace storage {
namespace {

class FileQueue final : public Queue {
 public:
  FileQueue(FileDevice& device, size_t depth) : Queue(device, depth), file_(device) {}

  // The caller must close the queue even on an error.
  base::Expected<void> open(const QueueUse& use) {
    if (!use.sleeps || !has_helpers()) return {};
    auto opened = client_.told.open();
    // Without a descriptor it is polled while something is in flight.
    if (!opened && opened.error().number == EMFILE) return {};
    return opened;
  }
  void do_close() override {
    // Acquire: pairs with a helper's release in its last step.
    while (has_helpers() && client_.helpers_inside.load(std::memory_order_acquire) != 0)
      sys::syscall(SYS_sched_yield);
    client_.told.close();
    free_object(this, 0);
  }

 private:
  void do_start(Io& io) override { gathered_.append(io); }

  void do_flush_submissions() override {
    if (gathered_.count() > 1 && has_helpers()) {
      file_.helpers()->want(client_, gathered_);
      return;
    }
    while (!gathered_.empty()) perform_here(gathered_.take_first());
  }

  void do_poll(bool block) override {
    do_flush_submissions();
    collect();
    while (block && !has_completed()) {
      if (Io* io = file_.helpers()->take_wanted(client_); io != nullptr) {
        perform_here(*io);
        return;
      }
      uint32_t key = client_.finished.prepare();
      if (collect() > 0) {
        client_.finished.cancel();
        return;
      }
      client_.finished.wait(key);
      collect();
    }
  }

  // Helpers set the event for whatever they complete after collect() has looked. Without helpers nothing is ever left to do.
  base::Quiet do_quiet() override {
    if (client_.told.descriptor() < 0) return {};
    client_.told.clear();
    collect();
    return {.until_ns = gathered_.empty() ? base::Quiet::kForever : 0,
            .descriptor = client_.told.descriptor()};
  }

  // A child of fork has no helpers: neither idle ones, nor those that were working for the queue at the fork.
  bool has_helpers() const { return file_.helpers() != nullptr && file_.helpers()->helper_count() > 0; }

  void perform_here(Io& io) {
    file_.perform(io);
    complete(io);
  }

  size_t collect() {
    size_t count = 0;
    Io* io = client_.done.exchange(nullptr, std::memory_order_acquire);  // pairs with the helpers' release
    while (io != nullptr) {
      Io* next = io->next;
      complete(*io);
      io = next;
      ++count;
    }
    return count;
  }

  FileDevice& file_;
  IoList gathered_;
  HelperClient client_;
};

// What fallocate and BLKDISCARD return where discarding is not possible. No error: a discard is only advice.
bool means_cannot_discard(long result) {
  return result == -EOPNOTSUPP || result == -ENOSYS || result == -EPERM || result == -ENOTTY;
}

}  // namespace

FileDevice::FileDevice(std::string_view scheme, const Medium& medium, size_t max_depth)
    : medium_(medium), max_depth_(max_depth), process_(sys::syscall(SYS_getpid)) {
  CHECK_GE(max_depth, 1u);
  CHECK_LE(max_depth, kMaxQueueDepth);
  CHECK_LE(medium.block_bytes, 4096u);
  CHECK_EQ(medium.block_bytes & (medium.block_bytes - 1), 0u);
  CHECK_EQ(medium.capacity_bytes % medium.block_bytes, 0u);
  capacity_bytes_ = medium.capacity_bytes;
  missing_bytes_ = medium.missing_bytes;
  block_bytes_ = medium.block_bytes;
  discards_ = medium.discards;
  whereabouts_.descriptor = medium.takes_commands() ? medium.block_descriptor : medium.descriptor;
  set_scheme(scheme);
}

void FileDevice::set_scheme(std::string_view scheme) {
  base::TextRef(name_, sizeof name_) << scheme << ':' << medium_.label;
}

bool FileDevice::do_has_room_at(uint64_t offset_bytes, uint64_t length_bytes) const {
  constexpr uint32_t kExtents = 32;
  if (medium_.is_block_device || medium_.takes_commands()) return true;
  alignas(fiemap) char memory[sizeof(fiemap) + kExtents * sizeof(fiemap_extent)];
  auto* const map = reinterpret_cast<fiemap*>(memory);
  const uint64_t end = offset_bytes + length_bytes;
  for (uint64_t at = offset_bytes; at < end;) {
    *map = {};
    map->fm_start = at;
    map->fm_length = end - at;
    map->fm_extent_count = kExtents;
    // Most file systems can tell; for the others it cannot be found out.
    if (sys::failed(sys::syscall(SYS_ioctl, medium_.descriptor, FS_IOC_FIEMAP, map))) return true;
    if (map->fm_mapped_extents == 0) return false;
    for (uint32_t i = 0; i < map->fm_mapped_extents; ++i) {
      const fiemap_extent& extent = map->fm_extents[i];
      if (extent.fe_logical > at || (extent.fe_flags & FIEMAP_EXTENT_UNWRITTEN) != 0) return false;
      at = extent.fe_logical + extent.fe_length;
    }
  }
  return true;
}

base::Expected<void> FileDevice::start_helpers(uint32_t helper_count) {
  ends_at_once_ = medium_.is_memory && helper_count == 0;
  if (helper_count == 0) return {};
  auto perform_io = [](void* self, Io& io) { static_cast<FileDevice*>(self)->perform(io); };
  auto helpers = FileHelpers::make(helper_count, perform_io, this);
  if (!helpers) return std::unexpected(helpers.error());
  helpers_ = *helpers;
  return {};
}

base::Expected<Queue*> FileDevice::do_open_queue(size_t depth, const QueueUse& use) {
  auto queue = make_object<FileQueue>(0, "a storage queue", *this, depth < max_depth_ ? depth : max_depth_);
  if (!queue) return std::unexpected(queue.error());
  auto opened = (*queue)->open(use);
  if (opened) return *queue;
  (*queue)->do_close();
  return std::unexpected(opened.error());
}

void close_medium(const Medium& medium) {
  if (medium.is_locked) sys::syscall(SYS_flock, medium.descriptor, LOCK_UN);
  for (int descriptor : {medium.descriptor, medium.block_descriptor})
    if (descriptor >= 0) sys::close_own_descriptor(descriptor);
}

void FileDevice::end() {
  if (helpers_ != nullptr) helpers_->close();
  close_medium(medium_);
}

void FileDevice::do_close() {
  end();
  free_object(this, 0);
}

bool FileDevice::is_in_child() const {
  // A child's descendants may have the number of the process that opened the device, once that has ended. Relaxed: it is only ever set.
  if (sys::syscall(SYS_getpid) != process_) is_inherited_.store(true, std::memory_order_relaxed);
  return is_inherited_.load(std::memory_order_relaxed);
}

// The result that a system call on a file would have had: a number of bytes, or -errno.
int64_t FileDevice::result_of_command(Io& io, int64_t status) const {
  if (status == 0) return static_cast<int64_t>(nvme_command(medium_.nvme, io).transferred_bytes);
  const uint32_t type = nvme_status_type(status), code = nvme_status_code(status);
  const int error = error_of_nvme_status(type, code, io.operation);
  constexpr const char* kNames[] = {"read", "write", "discard", "flush"};
  // Relaxed: it only ensures that one of several threads logs.
  if (!(io.operation == Operation::kDiscard && means_cannot_discard(-error)) &&
      !status_logged_.exchange(true, std::memory_order_relaxed))
    base::log(name(), ": ", kNames[static_cast<int>(io.operation)], " of ", base::Bytes{io.length_bytes},
              " at byte ", io.offset_bytes, ": ", nvme_status_name(type, code), " (NVMe status type ", type,
              ", code ", base::Hex{code}, "); no more of these lines");
  return -error;
}

void FileDevice::set_result(Io& io, int64_t result) const {
  if (medium_.takes_commands() && result >= 0) result = result_of_command(io, result);
  if (io.operation == Operation::kDiscard && means_cannot_discard(result)) result = 0;
  if (result < 0)
    io.error = static_cast<int>(-result);
  else if (io.operation == Operation::kRead || io.operation == Operation::kWrite)
    io.transferred_bytes = static_cast<uint64_t>(result);
  else
    io.transferred_bytes = io.length_bytes;
}

void FileDevice::transfer(Io& io) const {
  const bool reads = io.operation == Operation::kRead;
  const auto [descriptor, offset_bytes] = where(io);
  long result;
  do {
    // With one segment, the kernel need not copy a list.
    if (io.segment_count == 1)
      result = sys::syscall(reads ? SYS_pread64 : SYS_pwrite64, descriptor, io.segments[0].iov_base,
                            io.segments[0].iov_len, offset_bytes);
    else
      result = sys::syscall(reads ? SYS_preadv : SYS_pwritev, descriptor, io.segments, io.segment_count,
                            offset_bytes, 0);
  } while (result == -EINTR);
  set_result(io, result);
}

void FileDevice::perform(Io& io) const {
  if (io.operation == Operation::kDiscard && !medium_.discards) {
    io.transferred_bytes = io.length_bytes;
    return;
  }
  if (medium_.takes_commands()) {
    set_result(io, run_nvme_command(medium_.descriptor, medium_.nvme, io));
    return;
  }
  if (io.operation == Operation::kRead || io.operation == Operation::kWrite) {
    transfer(io);
    return;
  }
  long result = 0;
  if (io.operation == Operation::kFlush) {
    do {
      result = sys::syscall(SYS_fdatasync, medium_.descriptor);
    } while (result == -EINTR);
  } else if (medium_.is_block_device) {
    uint64_t range[2] = {io.offset_bytes, io.length_bytes};
    result = sys::syscall(SYS_ioctl, medium_.descriptor, BLKDISCARD, range);
  } else {
    do {
      result = sys::syscall(SYS_fallocate, medium_.descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            io.offset_bytes, io.length_bytes);
    } while (result == -EINTR);
  }
  set_result(io, result);
}

base::Expected<Device*> make_file_device(const Medium& medium, uint32_t helper_count, size_t max_depth) {
  auto device = make_object<FileDevice>(0, "a file device", "file", medium, max_depth);
  if (!device) {
    close_medium(medium);
    return std::unexpected(device.error());
  }
  if (auto started = (*device)->start_helpers(helper_count); !started) {
    (*device)->close();
    return std::unexpected(started.error());
  }
  return *device;
}

}  // namespace storage
