// The aio backend: a context of Linux AIO for each Queue, over the same medium as the file backend. What io_uring's
// is replaced by where it is forbidden, as in most containers.
//
// submit() costs one system call for every four Ios of a batch, poll() none, wait() one. run() of one Io is a blocking call.
// Only direct I/O is asynchronous: on a buffered medium submit() does the work, one Io after the other. Discards
// are done by submit() always (AIO has none), and flushes where the kernel's AIO has none (before 4.18).
// When the kernel has no room (EAGAIN) the rest of a batch is handed over by later polls; an Io that it
// refuses fails with its reason, and the others go on. Where a context cannot be had (forbidden, or the system has
// fs.aio-max-nr requests already), a queue of the file backend takes its place, with one line of log for the
// device. A child of fork, as with uring, opens its own queues, and its writes are blocking calls.
#pragma once
#include "storage/backends/file.h"

namespace storage {

inline constexpr size_t kDefaultAioDepth = 128;

// Takes over the medium, also on errors. Queues are at most `max_depth` deep. `helper_count` threads
// serve the queues of the file backend; they are started only when AIO is not available at all.
// Errors: ENOMEM.
base::Expected<Device*> make_aio_device(const Medium& medium, size_t max_depth = kDefaultAioDepth,
                                        uint32_t helper_count = kDefaultHelperCount);

// A device whose queues are Linux AIO's, or the file backend's where that cannot be.
class AioDevice : public FileDevice {
 public:
  AioDevice(std::string_view scheme, const Medium& medium, size_t max_depth)
      : FileDevice(scheme, medium, max_depth), aio_works_(!medium.takes_commands()) {}

  // Finds out whether AIO works here at all; if not, says so and starts helpers.
  base::Expected<void> probe(uint32_t helper_count);

 protected:
  ~AioDevice() = default;
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  void do_close() override;

  // Whether contexts of AIO may be made here, and are of use for the medium.
  base::Expected<void> probe_aio() const;
  // Does without AIO from now on. Errors: ENOMEM.
  base::Expected<void> give_up_aio(uint32_t helper_count);
  // A queue of AIO or none. REQUIRES: the medium takes no commands. Errors: of the system; ENOMEM.
  base::Expected<Queue*> open_aio_queue(size_t depth, const QueueUse& use);
  // The one line: what does not work, and what is used instead.
  void log_fallback(std::string_view what, const char* instead);

 private:
  bool aio_works_;
  std::atomic<bool> logged_{false};
};

}  // namespace storage
