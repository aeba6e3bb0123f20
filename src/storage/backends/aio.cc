#include "storage/backends/aio.h"

#include "base/check.h"
#include "base/log.h"
#include "storage/objects.h"
#include "sys/aio_ring.h"
#include "sys/events.h"
#include "sys/kernel.h"

namespace storage {
namespace {

class AioQueue final : public Queue {
 public:
  AioQueue(AioDevice& device, size_t depth)
      : Queue(device, depth), file_(device), is_in_child_(device.is_in_child()) {}

  // The caller must close the queue even on an error.
  base::Expected<void> open(const QueueUse& use) {
    auto opened = ring_.open(static_cast<uint32_t>(depth()));
    return opened && use.sleeps ? ended_.open() : opened;
  }
  void do_close() override {
    ring_.close();
    ended_.close();
    free_object(this, 0);
  }

 private:
  void do_start(Io& io) override {
    // As in uring.cc: if this child is killed, its writes must end no later than the process.
    const bool by_call = io.operation == Operation::kDiscard ||
                         (io.operation == Operation::kFlush && !flushes_) ||
                         (io.operation != Operation::kRead && is_in_child_);
    if (by_call)
      perform(io);
    else
      prepare(io);
  }

  // The caller sleeps until it is done, so a blocking call is the shortest way.
  void do_start_alone(Io& io) override { perform(io); }

  // Submits what is pending, until the kernel has no room.
  void do_flush_submissions() override {
    while (ring_.pending_count() > 0) {
      const long result = ring_.submit();
      if (result == -EAGAIN || result == -EINTR) return;
      if (sys::failed(result)) refuse(*reinterpret_cast<Io*>(ring_.take_first()), result);
    }
  }

  void do_poll(bool block) override {
    do_flush_submissions();
    // The kernel takes nothing although it has no Io of ours: one Io is done by a blocking call, so that there is progress.
    if (ring_.pending_count() > 0 && ring_.in_kernel_count() == 0)
      perform(*reinterpret_cast<Io*>(ring_.take_first()));
    if (reap() > 0 || !block || has_completed()) return;
    const long result = ring_.wait();
    // Waiting failed, and would fail again. Completions still appear, so look for them.
    if (sys::failed(result) && result != -EINTR) sys::syscall(SYS_sched_yield);
    reap();
  }

  // The kernel sets the event for completions that come after reap() has looked.
  base::Quiet do_quiet() override {
    if (ended_.descriptor() < 0) return {};
    ended_.clear();
    reap();
    return {.until_ns = ring_.pending_count() > 0 ? 0 : base::Quiet::kForever,
            .descriptor = ended_.descriptor()};
  }

  void prepare(Io& io) {
    iocb* entry = ring_.next_submission();
    CHECK(entry != nullptr);  // pending + in the kernel <= in flight <= depth
    const auto [descriptor, offset_bytes] = file_.where(io);
    entry->aio_fildes = static_cast<uint32_t>(descriptor);
    entry->aio_data = reinterpret_cast<uint64_t>(&io);
    if (ended_.descriptor() >= 0) {
      entry->aio_flags = IOCB_FLAG_RESFD;
      entry->aio_resfd = static_cast<uint32_t>(ended_.descriptor());
    }
    if (io.operation == Operation::kFlush) {
      entry->aio_lio_opcode = IOCB_CMD_FDSYNC;
      return;
    }
    const bool reads = io.operation == Operation::kRead;
    entry->aio_offset = static_cast<int64_t>(offset_bytes);
    if (io.segment_count == 1) {
      entry->aio_lio_opcode = reads ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
      entry->aio_buf = reinterpret_cast<uint64_t>(io.segments[0].iov_base);
      entry->aio_nbytes = io.segments[0].iov_len;
    } else {
      entry->aio_lio_opcode = reads ? IOCB_CMD_PREADV : IOCB_CMD_PWRITEV;
      entry->aio_buf = reinterpret_cast<uint64_t>(io.segments);
      entry->aio_nbytes = io.segment_count;
    }
  }

  // The kernel has refused the Io.
  void refuse(Io& io, long result) {
    if (io.operation == Operation::kFlush && (result == -EINVAL || result == -EOPNOTSUPP)) {
      flushes_ = false;
      perform(io);
      return;
    }
    file_.set_result(io, result);
    complete(io);
  }

  size_t reap() {
    size_t count = 0;
    uint64_t user_data;
    int64_t result;
    while (ring_.next_completion(user_data, result)) {
      Io& io = *reinterpret_cast<Io*>(user_data);
      ++count;
      // The kernel gave up where a blocking call would have slept or continued.
      if (result == -EAGAIN || result == -EINTR || result == -ECANCELED) {
        perform(io);
      } else {
        file_.set_result(io, result);
        complete(io);
      }
    }
    return count;
  }

  void perform(Io& io) {
    file_.perform(io);
    complete(io);
  }

  AioDevice& file_;
  const bool is_in_child_;
  bool flushes_ = true;  // the kernel's AIO has flushes
  sys::AioRing ring_;
  // The kernel sets it when the ring has a completion. Open only if the queue's user sleeps.
  sys::Event ended_;
};

}  // namespace

base::Expected<void> AioDevice::probe_aio() const {
  if (medium().takes_commands()) return base::failure(EOPNOTSUPP, "Linux AIO has no commands of devices");
  return sys::AioRing::probe();
}

base::Expected<void> AioDevice::probe(uint32_t helper_count) {
  const auto probed = probe_aio();
  if (probed) return {};
  log_fallback(probed.error().message, "blocking calls");
  return give_up_aio(helper_count);
}

base::Expected<void> AioDevice::give_up_aio(uint32_t helper_count) {
  aio_works_ = false;
  set_scheme("file");
  return start_helpers(helper_count);
}

void AioDevice::log_fallback(std::string_view what, const char* instead) {
  // Relaxed: it only ensures that one of several threads logs.
  if (logged_.exchange(true, std::memory_order_relaxed)) return;
  base::log(name(), ": ", what, "; using ", instead, " instead");
}

base::Expected<Queue*> AioDevice::do_open_queue(size_t depth, const QueueUse& use) {
  if (!aio_works_ || use.by_calls) return FileDevice::do_open_queue(depth, use);
  auto queue = open_aio_queue(depth, use);
  if (queue) return queue;
  log_fallback(queue.error().message, "blocking calls for some threads");
  return FileDevice::do_open_queue(depth, use);
}

base::Expected<Queue*> AioDevice::open_aio_queue(size_t depth, const QueueUse& use) {
  auto queue = make_object<AioQueue>(0, "a storage queue", *this, std::min<size_t>(depth, max_depth()));
  if (!queue) return std::unexpected(queue.error());
  if (auto opened = (*queue)->open(use); !opened) {
    (*queue)->do_close();
    return std::unexpected(opened.error());
  }
  return *queue;
}

void AioDevice::do_close() {
  end();
  free_object(this, 0);
}

base::Expected<Device*> make_aio_device(const Medium& medium, size_t max_depth, uint32_t helper_count) {
  auto device = make_object<AioDevice>(0, "an aio device", "aio", medium, max_depth);
  if (!device) {
    close_medium(medium);
    return std::unexpected(device.error());
  }
  if (auto probed = (*device)->probe(helper_count); !probed) {
    (*device)->close();
    return std::unexpected(probed.error());
  }
  return *device;
}

}  // namespace storage
