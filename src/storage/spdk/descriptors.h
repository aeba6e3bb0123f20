// SPDK's sockets, and what it waits with, lie where the runtime's own descriptors do, out of the program's way: close loops do
// not end connections, and programs that it executes do not inherit them. The library is linked with --wrap for the calls in
// descriptors.cc. What is opened by a path lies where the kernel puts it: VFIO and /sys of PCIe, files of huge pages; so does what the
// system's libraries open for RDMA, which --wrap does not reach.
#pragma once
#include "storage/backends/spdk_interface.h"

namespace storage::spdk {

// Whom descriptors are given to from now on. Once, before SPDK makes one.
void use_host(const SpdkHost& host);

}  // namespace storage::spdk
