// The aio backend: each Queue has a context of Linux AIO, over the same medium as the file backend. It replaces the uring backend
// where io_uring is forbidden, as in most containers.
//
// submit() costs one system call for every two Ios of a batch, poll() none, wait() one; run() of one Io is a blocking call.
// Only direct I/O is asynchronous: on a buffered medium submit() does the work, one Io after the other. It also does all discards, which
// AIO lacks, and flushes where the kernel's AIO lacks them (before 4.18).
// When the kernel has no room (EAGAIN), later polls submit the rest of a batch. An Io that the kernel refuses fails with its error; the
// others continue. Where a context cannot be had (forbidden, or the system already has fs.aio-max-nr requests), a queue of the file
// backend takes its place; one line of log per device says so. A child of fork opens its own queues, and its writes are blocking calls,
// as with uring.
#pragma once
#include "storage/backends/file.h"

namespace storage {

inline constexpr size_t kDefaultAioDepth = 128;

// Takes over the medium, even on errors. Queues are at most `max_depth` deep. The `helper_count` threads are those of the file backend;
// they are started only if AIO is not available at all. Errors: ENOMEM.
base::Expected<Device*> make_aio_device(const Medium& medium, size_t max_depth = kDefaultAioDepth,
                                        uint32_t helper_count = kDefaultHelperCount);

// A device whose queues use Linux AIO, or are the file backend's where AIO cannot be had.
class AioDevice : public FileDevice {
 public:
  AioDevice(std::string_view scheme, const Medium& medium, size_t max_depth)
      : FileDevice(scheme, medium, max_depth), aio_works_(!medium.takes_commands()) {}

  // Finds out whether AIO works here at all. If not, logs a line and starts helpers. Errors: ENOMEM.
  base::Expected<void> probe(uint32_t helper_count);

 protected:
  ~AioDevice() = default;
  base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) override;
  void do_close() override;

  // An error if contexts of AIO may not be made here, or are of no use for the medium.
  base::Expected<void> probe_aio() const;
  // Uses the file backend's queues from now on. Errors: ENOMEM.
  base::Expected<void> give_up_aio(uint32_t helper_count);
  // A queue that uses AIO, without falling back. REQUIRES: the medium takes no commands. Errors: the system's; ENOMEM.
  base::Expected<Queue*> open_aio_queue(size_t depth, const QueueUse& use);
  // Logs the one line: what does not work, and what is used instead. Later calls do nothing.
  void log_fallback(std::string_view what, const char* instead);

 private:
  bool aio_works_;
  std::atomic<bool> logged_{false};
};

}  // namespace storage
