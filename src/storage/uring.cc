#include "storage/uring.h"

#include <linux/falloc.h>

#include "base/check.h"
#include "storage/aio.h"
#include "storage/objects.h"
#include "sys/aio_ring.h"
#include "sys/files.h"
#include "sys/io_ring.h"
#include "sys/kernel.h"

namespace storage {
namespace {

// What it falls back to is its base: Linux AIO, and then plain calls.
class UringDevice final : public AioDevice {
 public:
  UringDevice(const Medium& medium, size_t max_depth) : AioDevice("uring", medium, max_depth) {}

  // Finds out whether io_uring works here at all.
  base::Expected<void> probe_rings(uint32_t helper_count) {
    const auto probed = sys::IoRing::probe();
    if (probed) return {};
    rings_work_ = false;
    const auto aio = sys::AioRing::probe();
    // On a buffered medium AIO would do one Io after the other.
    if (aio && medium().is_direct) {
      log_fallback(probed.error().message, "Linux AIO");
      return {};
    }
    base::Text<200> what;
    what << probed.error().message;
    if (!aio) what << "; " << aio.error().message;
    log_fallback(what.view(), "blocking calls");
    return give_up_aio(helper_count);
  }

 private:
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  void do_close() override {
    close_medium();
    free_object(this, 0);
  }

  bool rings_work_ = true;
};

class UringQueue final : public Queue {
 public:
  UringQueue(UringDevice& device, size_t depth)
      : Queue(device, depth), file_(device), is_in_child_(device.is_in_child()) {}

  base::Expected<void> open_ring() { return ring_.open(static_cast<uint32_t>(depth())); }
  void free() { free_object(this, 0); }

 private:
  // Submissions that the kernel refused for want of memory are tried again this often.
  static constexpr uint32_t kMaxSubmitTries = 1000;

  void do_start(Io& io) override {
    // What a ring of a process that was killed has begun may end later, when the child's parent has given the room to
    // others. A blocking call ends before its process does.
    if (is_in_child_ && io.operation != Operation::kRead) {
      file_.perform(io);
      complete(io);
      return;
    }
    if (io.operation == Operation::kDiscard && (!file_.medium().discards || file_.medium().is_block_device)) {
      file_.perform(io);  // io_uring has no BLKDISCARD
      complete(io);
      return;
    }
    prepare(io);
  }

  // The caller sleeps until it is done, so a blocking call is the shortest way: a ring adds a hop to a
  // kernel worker on media that cannot start without blocking (5.5 against 2.5 us a page on zram), and
  // is no faster on the others.
  void do_start_alone(Io& io) override {
    file_.perform(io);
    complete(io);
  }

  void do_flush_submissions() override {
    if (ring_.pending_count() > 0) enter(0);
  }

  void do_poll(bool block) override {
    if (ring_.pending_count() > 0 || block || ring_.needs_enter()) {
      // What is there already needs no waiting for.
      if (ring_.pending_count() == 0 && reap() > 0) return;
      enter(block ? 1 : 0);
    }
    reap();
  }

  base::Quiet do_quiet() override {
    return {.until_ns = ring_.pending_count() > 0 ? 0 : base::Quiet::kForever,
            .descriptor = ring_.descriptor()};
  }

  void do_close() override {
    ring_.close();
    free();
  }

  void prepare(Io& io) {
    io_uring_sqe* entry = ring_.next_submission();
    CHECK(entry != nullptr);  // pending <= in flight <= depth <= entries
    entry->fd = file_.medium().descriptor;
    entry->off = io.offset_bytes;
    entry->user_data = reinterpret_cast<uint64_t>(&io);
    switch (io.operation) {
      case Operation::kRead:
      case Operation::kWrite: {
        bool reads = io.operation == Operation::kRead;
        if (io.segment_count == 1 && io.length_bytes <= kMaxPlainBytes) {
          entry->opcode = reads ? IORING_OP_READ : IORING_OP_WRITE;
          entry->addr = reinterpret_cast<uint64_t>(io.segments[0].iov_base);
          entry->len = static_cast<uint32_t>(io.length_bytes);
        } else {
          entry->opcode = reads ? IORING_OP_READV : IORING_OP_WRITEV;
          entry->addr = reinterpret_cast<uint64_t>(io.segments);
          entry->len = io.segment_count;
        }
        break;
      }
      case Operation::kDiscard:
        entry->opcode = IORING_OP_FALLOCATE;
        entry->len = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
        entry->addr = io.length_bytes;
        break;
      case Operation::kFlush:
        entry->opcode = IORING_OP_FSYNC;
        entry->off = 0;
        entry->fsync_flags = IORING_FSYNC_DATASYNC;
        break;
    }
  }

  // Hands over all that is pending; with wait_count, then sleeps unless something completed or went wrong.
  void enter(uint32_t wait_count) {
    for (uint32_t tries = 0;; ++tries) {
      long result = ring_.enter(wait_count);
      bool temporary = result == -EINTR || result == -EAGAIN || result == -EBUSY;
      if (sys::failed(result) && ring_.pending_count() > 0 && (!temporary || tries == kMaxSubmitTries)) {
        fail_pending(static_cast<int>(-result));
        return;
      }
      if (ring_.pending_count() == 0) {
        // Waiting failed for a reason that will not pass: completions still appear, so look for them.
        if (sys::failed(result) && !temporary) sys::syscall(SYS_sched_yield);
        return;
      }
      if (result == -EAGAIN || result == -EBUSY) {
        reap();  // makes room
        sys::syscall(SYS_sched_yield);
      }
    }
  }

  // No Io is dropped: those that the kernel did not take fail with its reason.
  void fail_pending(int error) {
    while (ring_.pending_count() > 0) {
      Io& io = *reinterpret_cast<Io*>(ring_.take_back());
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
      if (result == -EINTR) {
        prepare(io);  // as the blocking calls do; the next poll submits it
        continue;
      }
      if (result == -EAGAIN || result == -ECANCELED) {
        // The kernel gives up where a blocking call would sleep, or could not start the thread that would have slept:
        // signals kept it from that, or a limit.
        file_.perform(io);
        complete(io);
      } else {
        FileDevice::set_result(io, result);
        complete(io);
      }
      ++count;
    }
    return count;
  }

  static constexpr uint64_t kMaxPlainBytes = uint64_t{1} << 30;

  FileDevice& file_;
  const bool is_in_child_;
  sys::IoRing ring_;
};

base::Expected<Queue*> UringDevice::do_open_queue(size_t depth, const QueueUse& use) {
  if (!rings_work_) return AioDevice::do_open_queue(depth, use);
  if (depth > max_depth()) depth = max_depth();
  auto queue = make_object<UringQueue>(0, "a storage queue", *this, depth);
  if (!queue) return std::unexpected(queue.error());
  auto opened = (*queue)->open_ring();
  if (opened) return *queue;
  (*queue)->free();
  log_fallback(opened.error().message, "Linux AIO for some threads");
  return AioDevice::do_open_queue(depth, use);
}

}  // namespace

base::Expected<Device*> make_uring_device(const Medium& medium, size_t max_depth, uint32_t helper_count) {
  auto device = make_object<UringDevice>(0, "a uring device", medium, max_depth);
  if (!device) {
    sys::close_own_descriptor(medium.descriptor);
    return std::unexpected(device.error());
  }
  if (auto probed = (*device)->probe_rings(helper_count); !probed) {
    (*device)->close();
    return std::unexpected(probed.error());
  }
  return *device;
}

}  // namespace storage
