// The spdk backend: a namespace of an NVMe controller, reached without the kernel's block layer, over PCIe, NVMe-oF/TCP or RDMA. This is
// the runtime's side of it. The work is done by libspillway-spdk.so (storage/spdk/), which is built where pkg-config finds SPDK.
//
// A Queue is one I/O queue pair. submit() hands requests to the network or the device; poll() asks for completions once, wait()
// repeatedly, yielding in between. Over TCP data goes directly from and to the caller's memory; over PCIe and RDMA it is copied through
// memory of SPDK's own, which is registered once.
//
// Nothing stays in flight for ever. When the oldest Io of a queue is older than the target's time-out, or the connection ends, the device
// is lost: all that its queues have in flight, and all later requests, fail with ETIMEDOUT or ENXIO. It does not reconnect.
//
// A child of fork cannot open queues (ENOTSUP): the memory and the connections are its parent's.
#pragma once
#include "storage/backends/spdk_interface.h"
#include "storage/opening/open_medium.h"

namespace storage {

inline constexpr size_t kDefaultSpdkDepth = 128;
inline constexpr uint32_t kDefaultSpdkTimeoutSeconds = 10;

// Which namespace, as its device string says. The texts point into that string, and are no longer than those of SpdkTarget.
struct SpdkParameters {
  SpdkTransport transport = SpdkTransport::kPcie;
  std::string_view address;  // "0000:01:00.0", or a host
  std::string_view port;     // not PCIe
  std::string_view nqn;      // not PCIe
  uint32_t namespace_id = 1;
  uint32_t timeout_seconds = kDefaultSpdkTimeoutSeconds;
  bool bounces = false;  // copies data through memory of SPDK's own, as it always does over PCIe and RDMA
};

// Queues are at most `max_depth` deep. For spilling, a namespace with content is refused with EEXIST, as open_medium refuses block devices.
// Errors: those of connecting, ENOTSUP, ENOMEM; each with one line for the user.
base::Expected<Device*> make_spdk_device(const SpdkParameters& spdk, size_t max_depth,
                                         const OpenParameters& parameters);

}  // namespace storage
