// The spdk backend: a namespace of an NVMe controller, reached without the kernel's block layer, over PCIe, NVMe-oF/TCP or
// RDMA. The work is done by libspillway-spdk.so (storage/spdk/), which is built where pkg-config finds SPDK; this is its face.
//
// A Queue is one I/O queue pair. submit() hands over to the network or the device; poll() and wait() ask it again and
// again, wait() yielding in between. Data goes straight from and to the caller's memory over TCP, and by memory of SPDK's own
// (registered once) over PCIe and RDMA.
//
// Nothing stays in flight for ever: when the oldest Io of a queue is older than the target's time-out, or the connection
// ends, the device is lost: what any of its queues has in flight, and all that is asked for later, fails with ETIMEDOUT, or with
// ENXIO. It does not connect again.
//
// A child of fork can open no queue (ENOTSUP): the memory and connections are its parent's.
#pragma once
#include "storage/backends/spdk_interface.h"
#include "storage/opening/open_medium.h"

namespace storage {

inline constexpr size_t kDefaultSpdkDepth = 128;
inline constexpr uint32_t kDefaultSpdkTimeoutSeconds = 10;

// Which namespace, as its device string has it. Its texts are no longer than SpdkTarget's.
struct SpdkParameters {
  SpdkTransport transport = SpdkTransport::kPcie;
  std::string_view address;  // "0000:01:00.0", or a host
  std::string_view port;     // not PCIe
  std::string_view nqn;      // not PCIe
  uint32_t namespace_id = 1;
  uint32_t timeout_seconds = kDefaultSpdkTimeoutSeconds;
  bool bounces = false;  // by memory of SPDK's own; over PCIe and RDMA always
};

// Queues are at most `max_depth` deep. As open_medium does with block devices, it refuses with EEXIST what does not begin
// with zeros when parameters say so. Errors: those of connecting, ENOTSUP, ENOMEM; each with one line for the user.
base::Expected<Device*> make_spdk_device(const SpdkParameters& spdk, size_t max_depth,
                                         const OpenParameters& parameters);

}  // namespace storage
