// The uring backend: each Queue has an io_uring of its own, over the same medium as the file backend. If the medium takes commands
// (an NVMe character device), the ring carries these (URING_CMD, Linux 6.1), past the kernel's block layer.
//
// submit() costs one system call for every four Ios of a batch; run() of a batch also waits in the last of these calls; poll() costs
// none unless the kernel asks to be entered; run() of one Io is a blocking call. The medium's descriptors are registered with the ring,
// unless Medium::ends_with_process and the medium takes no commands; so is the memory given to fix_memory(). Requests for which the kernel
// has no memory, and still none a millisecond later, are done by blocking calls.
// Where a ring cannot be had (forbidden in a container, old kernel, no descriptor or memory left), a queue of the aio backend takes
// its place, or one of the file backend if that cannot be had either or the medium is buffered. One line of log per device says so.
#pragma once
#include "storage/backends/file.h"

namespace storage {

inline constexpr size_t kDefaultUringDepth = 128;

// How rings are driven, where that is the user's choice. A mode that cannot be had is left out, with one line of log.
struct UringModes {
  // The device is polled for completions of reads and writes instead of interrupting: a waiting thread uses its CPU. Needs direct I/O, and
  // a device whose queues can be polled (NVMe with poll_queues). Flushes and discards are blocking calls; such a queue is never quiet.
  bool polls_device = false;
  // For each queue a kernel thread takes submissions, without a system call. It uses a CPU while there is something to do.
  bool kernel_thread = false;
};

// Takes over the medium, even on errors. Queues are at most `max_depth` deep. The `helper_count` threads are those of the file backend;
// they are started only if neither io_uring nor AIO is available at all. Errors: ENOMEM.
base::Expected<Device*> make_uring_device(const Medium& medium, size_t max_depth = kDefaultUringDepth,
                                          uint32_t helper_count = kDefaultHelperCount,
                                          const UringModes& modes = {});

}  // namespace storage
