#include "storage/backends/uring.h"

#include <linux/falloc.h>

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "storage/backends/aio.h"
#include "storage/objects.h"
#include "sys/events.h"
#include "sys/io_ring.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace storage {
namespace {

// It falls back to its base classes: Linux AIO, and then plain calls.
class UringDevice final : public AioDevice {
 public:
  UringDevice(const Medium& medium, size_t max_depth, const UringModes& modes)
      : AioDevice("uring", medium, max_depth), modes_(modes) {}

  // Finds out whether io_uring works here at all, and in the wanted modes.
  base::Expected<void> probe_rings(uint32_t helper_count) {
    auto probed = sys::IoRing::probe();
    if (probed && medium().takes_commands()) probed = probe_commands();
    if (probed) {
      probe_modes();
      return {};
    }
    rings_work_ = false;
    const auto aio = probe_aio();
    // On a buffered medium AIO would do one Io at a time.
    if (aio && medium().is_direct) {
      log_fallback(probed.error().message, "Linux AIO");
      set_scheme("aio");
      return {};
    }
    base::Text<200> what;
    what << probed.error().message;
    if (!aio) what << "; " << aio.error().message;
    log_fallback(what.view(), "blocking calls");
    return give_up_aio(helper_count);
  }

  const UringModes& modes() const { return modes_; }

 private:
  base::Expected<void> probe_commands();
  void probe_modes() {
    if (modes_.polls_device && !(medium().is_direct && medium().polls)) {
      modes_.polls_device = false;
      base::log(name(), ": iopoll: ",
                medium().takes_commands() ? "commands are not polled for"
                : medium().is_direct      ? "its device does not poll (queue/io_poll is 0)"
                                          : "it has no direct I/O",
                "; using interrupts instead");
    }
    if (!modes_.kernel_thread) return;
    sys::IoRing ring;
    if (auto opened = ring.open(1, {.kernel_thread = true}); !opened) {
      modes_.kernel_thread = false;
      base::log(name(), ": sqpoll: ", opened.error().message, "; using system calls instead");
    }
    ring.close();
  }

  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  void do_close() override {
    end();
    free_object(this, 0);
  }

  bool rings_work_ = true;
  UringModes modes_;
};

class UringQueue final : public Queue {
 public:
  UringQueue(UringDevice& device, size_t depth)
      : Queue(device, depth),
        file_(device),
        polls_device_(device.modes().polls_device),
        is_in_child_(device.is_in_child()) {}

  // The caller must close the queue even on an error.
  base::Expected<void> open(const QueueUse& use, const UringModes& modes) {
    auto opened =
        ring_.open(static_cast<uint32_t>(depth()), {.by_one_thread = use.by_one_thread,
                                                    .polls_device = modes.polls_device,
                                                    .kernel_thread = modes.kernel_thread,
                                                    .takes_commands = file_.medium().takes_commands()});
    if (!opened) return opened;
    fix_files();
    if (!use.sleeps || polls_device_) return {};
    opened = told_.open();
    if (opened && !ring_.tell(told_.descriptor())) told_.close();
    return opened;
  }
  void do_close() override {
    ring_.close();
    told_.close();
    free_object(this, 0);
  }

 private:
  // How often submissions that the kernel refuses for lack of memory are retried: for about a millisecond.
  static constexpr uint32_t kMaxSubmitTries = 1000;

  void do_start(Io& io) override {
    // If this child is killed, what its ring has begun may end only after the parent has given that room on the device to others. A
    // blocking call ends before its process does.
    if (is_in_child_ && io.operation != Operation::kRead) {
      file_.perform(io);
      complete(io);
      return;
    }
    const bool transfers = io.operation == Operation::kRead || io.operation == Operation::kWrite;
    // io_uring has no BLKDISCARD; and on a polled device it has only transfers.
    const bool by_call =
        io.operation == Operation::kDiscard && (!file_.medium().discards || file_.medium().is_block_device);
    if (by_call || (polls_device_ && !transfers)) {
      file_.perform(io);
      complete(io);
      return;
    }
    prepare(io);
  }

  // The caller sleeps until it is done anyway, so a blocking call is the shortest way: on media that cannot start a transfer without
  // blocking, a ring adds a hop to a kernel worker (5.5 against 2.5 us a page on zram), and on others it is no faster.
  void do_start_alone(Io& io) override {
    file_.perform(io);
    complete(io);
  }

  void do_flush_submissions() override {
    if (ring_.pending_count() > 0) enter(0);
  }

  void do_poll(bool block) override {
    if (ring_.pending_count() > 0 || block || ring_.needs_enter()) {
      // If there are completions already, there is no need to enter the kernel.
      if (ring_.pending_count() == 0 && reap() > 0) return;
      enter(block ? 1 : 0);
    }
    reap();
  }

  // The kernel sets the event for completions that come after do_poll has looked.
  base::Quiet do_quiet() override {
    if (told_.descriptor() < 0) return {};
    told_.clear();
    do_poll(false);
    // For a ring of one thread, the kernel may have done only part of the work, and does not set the event again for the rest.
    const bool goes_on = ring_.pending_count() > 0 || ring_.needs_enter();
    return {.until_ns = goes_on ? 0 : base::Quiet::kForever, .descriptor = told_.descriptor()};
  }

  bool do_fix_memory(void* address, uint64_t bytes) override {
    iovec pieces[sys::IoRing::kMaxFixedPieces];
    uint32_t count = 0;
    fixed_ = {};
    for (uint64_t at = 0; at < bytes; at += kFixedPieceBytes) {
      if (count == sys::IoRing::kMaxFixedPieces) return false;
      pieces[count++] = {static_cast<char*>(address) + at, std::min(bytes - at, kFixedPieceBytes)};
    }
    if (count == 0 || !ring_.fix_memory(pieces, count)) return false;
    fixed_ = {static_cast<char*>(address), bytes};
    return true;
  }

  // The kernel closes registered files, and releases their locks, some time after a process has ended. An unregistered file stays open only
  // until its last Io in flight has ended, which is sooner. But the block device that keeps others away from a device that takes commands has
  // no Ios of its own: only as a registered file does it stay open until the commands have ended.
  void fix_files() {
    const Medium& medium = file_.medium();
    if (medium.ends_with_process && !medium.takes_commands()) return;
    const int files[] = {medium.descriptor, medium.block_descriptor};
    file_is_fixed_ = ring_.fix_files({files, files[1] >= 0 ? 2u : 1u});
  }

  void prepare(Io& io) {
    io_uring_sqe* entry = ring_.next_submission();
    CHECK(entry != nullptr);  // pending <= in flight <= depth <= entries
    entry->fd = file_is_fixed_ ? 0 : file_.medium().descriptor;
    if (file_is_fixed_) entry->flags = IOSQE_FIXED_FILE;
    entry->user_data = reinterpret_cast<uint64_t>(&io);
    if (file_.medium().takes_commands())
      set_command(io, *entry);
    else
      set_operation(io, *entry);
  }

  void set_command(Io& io, io_uring_sqe& entry) const {
    const NvmeCommand command = nvme_command(file_.medium().nvme, io);
    static_assert(sizeof command.words <= sys::IoRing::kCommandBytes);
    *reinterpret_cast<nvme_uring_cmd*>(entry.cmd) = command.words;
    entry.opcode = IORING_OP_URING_CMD;
    entry.cmd_op = command.is_vector ? NVME_URING_CMD_IO_VEC : NVME_URING_CMD_IO;
    const int piece = command.is_vector ? -1 : fixed_piece(command.words.addr, command.words.data_len);
    if (piece < 0) return;
    entry.uring_cmd_flags = IORING_URING_CMD_FIXED;
    entry.buf_index = static_cast<uint16_t>(piece);
  }

  void set_operation(const Io& io, io_uring_sqe& entry) const {
    entry.off = io.offset_bytes;
    switch (io.operation) {
      case Operation::kRead:
      case Operation::kWrite: {
        bool reads = io.operation == Operation::kRead;
        if (io.segment_count == 1 && io.length_bytes <= kMaxPlainBytes) {
          entry.addr = reinterpret_cast<uint64_t>(io.segments[0].iov_base);
          entry.len = static_cast<uint32_t>(io.length_bytes);
          if (const int piece = fixed_piece(entry.addr, entry.len); piece >= 0) {
            entry.opcode = reads ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
            entry.buf_index = static_cast<uint16_t>(piece);
          } else {
            entry.opcode = reads ? IORING_OP_READ : IORING_OP_WRITE;
          }
        } else {
          entry.opcode = reads ? IORING_OP_READV : IORING_OP_WRITEV;
          entry.addr = reinterpret_cast<uint64_t>(io.segments);
          entry.len = io.segment_count;
        }
        break;
      }
      case Operation::kDiscard:
        entry.opcode = IORING_OP_FALLOCATE;
        entry.len = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
        entry.addr = io.length_bytes;
        break;
      case Operation::kFlush:
        entry.opcode = IORING_OP_FSYNC;
        entry.off = 0;
        entry.fsync_flags = IORING_FSYNC_DATASYNC;
        break;
    }
  }

  // The registered piece that the range lies in; -1: none.
  int fixed_piece(uint64_t address, uint64_t bytes) const {
    const uint64_t at = address - reinterpret_cast<uint64_t>(fixed_.data());
    if (at >= fixed_.size() || bytes > fixed_.size() - at) return -1;
    const uint64_t piece = at / kFixedPieceBytes;
    return (at + bytes - 1) / kFixedPieceBytes == piece ? static_cast<int>(piece) : -1;
  }

  // Submits all that is pending. With wait_count it then sleeps, unless something has completed or gone wrong.
  void enter(uint32_t wait_count) {
    for (uint32_t tries = 0;; ++tries) {
      long result = ring_.enter(wait_count);
      CHECK(result != -EEXIST && "a queue that was opened for one thread is used by another");
      bool temporary = result == -EINTR || result == -EAGAIN || result == -EBUSY;
      if (sys::failed(result) && ring_.pending_count() > 0 && (!temporary || tries >= kMaxSubmitTries)) {
        end_pending(temporary ? 0 : static_cast<int>(-result));
        return;
      }
      if (ring_.pending_count() == 0) {
        // Waiting failed, and would fail again. Completions still appear, and the caller looks for them.
        if (sys::failed(result) && !temporary) sys::syscall(SYS_sched_yield);
        return;
      }
      if (result == -EAGAIN || result == -EBUSY) {
        reap();  // makes room
        sys::syscall(SYS_sched_yield);
      }
    }
  }

  // No Io is dropped: those that the kernel has not taken fail with `error`. If that is 0, the kernel only lacked memory for them all the
  // time, and they are done by blocking calls: when memory is short, pages must reach the medium.
  void end_pending(int error) {
    while (ring_.pending_count() > 0) {
      Io& io = *reinterpret_cast<Io*>(ring_.take_back());
      if (error == 0)
        file_.perform(io);
      else
        io.error = error;
      complete(io);
    }
  }

  size_t reap() {
    size_t count = 0;
    uint64_t user_data;
    int32_t result;
    while (ring_.next_completion(user_data, result)) {
      Io& io = *reinterpret_cast<Io*>(user_data);
      if (result == -EAGAIN || result == -EINTR || result == -ECANCELED ||
          (result == -EOPNOTSUPP && polls_device_)) {
        // The kernel gave up where a blocking call would have slept or continued; or it could not start the thread that was to sleep,
        // because of a signal or a limit; or the controller was reset; or a layer above the polled device cannot be polled.
        file_.perform(io);
        complete(io);
      } else {
        file_.set_result(io, result);
        complete(io);
      }
      ++count;
    }
    return count;
  }

  static constexpr uint64_t kMaxPlainBytes = uint64_t{1} << 30;
  static constexpr uint64_t kFixedPieceBytes = sys::IoRing::kMaxFixedPieceBytes;

  FileDevice& file_;
  const bool polls_device_;
  const bool is_in_child_;
  bool file_is_fixed_ = false;
  std::span<char> fixed_;  // registered, in pieces of kFixedPieceBytes
  sys::IoRing ring_;
  sys::Event told_;  // set by the kernel; not open if the user does not sleep, or the device is polled
};

// Tries one command: an old kernel accepts the ring and refuses the commands, or those with registered memory.
base::Expected<void> UringDevice::probe_commands() {
  auto page = sys::map_anonymous(base::kOsPageBytes, "a storage buffer");
  if (!page) return std::unexpected(page.error());
  auto queue = make_object<UringQueue>(0, "a storage queue", *this, 1);
  base::Expected<void> opened = queue ? (*queue)->open({}, {}) : std::unexpected(queue.error());
  if (opened) {
    (*queue)->fix_memory(*page, base::kOsPageBytes);
    const iovec segment = {*page, base::kOsPageBytes};
    Io io;
    io.segments = &segment;
    io.segment_count = 1;
    io.length_bytes = base::kOsPageBytes;
    Io* batch[] = {&io};
    (*queue)->run(batch);
    if (io.error == EOPNOTSUPP || io.error == EINVAL)
      opened = base::failure(io.error, "io_uring: no commands of NVMe devices (Linux 6.1)");
  }
  if (queue) (*queue)->do_close();
  sys::unmap(*page, base::kOsPageBytes);
  return opened;
}

base::Expected<Queue*> UringDevice::do_open_queue(size_t depth, const QueueUse& use) {
  if (!rings_work_ || use.by_calls) return AioDevice::do_open_queue(depth, use);
  if (use.undisturbed) {
    // From a buffered medium, AIO reads before submit() returns.
    if (!medium().is_direct || medium().takes_commands())
      return base::failure(EOPNOTSUPP, name(), ": only io_uring reads it ahead");
    return open_aio_queue(depth, use);
  }
  if (depth > max_depth()) depth = max_depth();
  auto queue = make_object<UringQueue>(0, "a storage queue", *this, depth);
  if (!queue) return std::unexpected(queue.error());
  auto opened = (*queue)->open(use, modes_);
  if (opened) return *queue;
  (*queue)->do_close();
  log_fallback(opened.error().message,
               medium().takes_commands() ? "blocking calls for some threads" : "Linux AIO for some threads");
  return AioDevice::do_open_queue(depth, use);
}

}  // namespace

base::Expected<Device*> make_uring_device(const Medium& medium, size_t max_depth, uint32_t helper_count,
                                          const UringModes& modes) {
  auto device = make_object<UringDevice>(0, "a uring device", medium, max_depth, modes);
  if (!device) {
    close_medium(medium);
    return std::unexpected(device.error());
  }
  if (auto probed = (*device)->probe_rings(helper_count); !probed) {
    (*device)->close();
    return std::unexpected(probed.error());
  }
  return *device;
}

}  // namespace storage
