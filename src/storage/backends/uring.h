// The uring backend: a ring of io_uring for each Queue, over the same medium as the file backend. Where that takes commands
// (an NVMe character device), they go by the ring as they are (URING_CMD, Linux 6.1), past the kernel's block layer.
//
// submit() costs one system call for every four Ios of a batch, run() of a batch waits with the last of them, poll() costs
// none, unless the kernel asks to be entered. run() of one Io is a blocking call. The medium's descriptor is registered with the
// ring unless Medium::ends_with_process, and the memory that fix_memory() is told of.
// Where a ring cannot be had (forbidden in a container, old kernel, no descriptor or memory left), a queue
// of the aio backend takes its place, or one of the file backend where that cannot be had either or the medium is
// buffered, with one line of log for the device.
#pragma once
#include "storage/backends/file.h"

namespace storage {

inline constexpr size_t kDefaultUringDepth = 128;

// Ways to drive the rings that are the user's choice. One that cannot be had is done without, with one line of log.
struct UringModes {
  // Polls the device for reads and writes instead of having it interrupt: whoever waits uses a CPU. Only with direct I/O, and a
  // device whose queues poll (NVMe with poll_queues). Flushes and discards are blocking calls; such a queue is never quiet.
  bool polls_device = false;
  // A thread of the kernel for each queue takes what is submitted, without a system call. It uses a CPU while there is something.
  bool kernel_thread = false;
};

// Takes over the medium, also on errors. Queues are at most `max_depth` deep. `helper_count` threads
// serve the queues of the file backend; they are started only when neither io_uring nor AIO is available at all.
// Errors: ENOMEM.
base::Expected<Device*> make_uring_device(const Medium& medium, size_t max_depth = kDefaultUringDepth,
                                          uint32_t helper_count = kDefaultHelperCount,
                                          const UringModes& modes = {});

}  // namespace storage
