// SPDK's sockets, and the descriptors on which it waits, become the runtime's own, out of the program's way: loops that close descriptors do
// not end connections, and executed programs do not inherit them. The library is linked with --wrap for the calls in descriptors.cc. Files
// that are opened by path (VFIO and /sys for PCIe, files of huge pages) keep the numbers that the kernel gives them; so do those that the
// system's libraries open for RDMA, which --wrap does not reach.
#pragma once
#include "storage/backends/spdk_interface.h"

namespace storage::spdk {

// From now on the functions of `host` manage descriptors. To be called once, before SPDK creates one.
void use_host(const SpdkHost& host);

}  // namespace storage::spdk
