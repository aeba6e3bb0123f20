// SPDK's descriptors lie where the runtime's own do, out of the program's way: close loops do not end connections, and
// programs that it executes do not inherit them. The library is linked with --wrap for the calls in descriptors.cc.
#pragma once
#include "storage/spdk_interface.h"

namespace storage::spdk {

// Whom descriptors are given to from now on. Once, before SPDK makes one.
void use_host(const SpdkHost& host);

}  // namespace storage::spdk
