// In a statically linked program there is no loader that could give a library a C library of its own.
#include "storage/backends/spdk_load.h"

namespace storage {

base::Expected<const SpdkLibrary*> load_spdk() {
  return base::failure(
      ENOTSUP, "storage: spdk: not in statically linked programs; link dynamically, or spill elsewhere");
}

}  // namespace storage
