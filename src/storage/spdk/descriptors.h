// SPDK's sockets, and the descriptors that it waits on, become the runtime's own, out of the program's way: loops that close descriptors do
// not end connections, and programs that are executed do not inherit them. The library is linked with --wrap for the calls in
// descriptors.cc. Files that are opened by a path (VFIO and /sys of PCIe, files of huge pages) keep the numbers that the kernel gives them;
// so do those that the system's libraries open for RDMA, which --wrap does not reach.
#pragma once
#include "storage/backends/spdk_interface.h"

namespace storage::spdk {

// `its` takes over descriptors from now on. To be called once, before SPDK makes one.
void use_host(const SpdkHost& host);

}  // namespace storage::spdk
