// Finds and loads libspillway-spdk.so.
//
// It is loaded into a link namespace of its own (dlmopen), with a C library of its own: SPDK's memory does not come from the spill heap,
// its calls do not go through the interceptors, and its symbols cannot clash with the program's. It stays loaded.
#pragma once
#include "base/error.h"
#include "storage/backends/spdk_interface.h"

namespace storage {

// The library; the first call loads it. Thread-safe; may block (the loader's lock), and takes memory from the C library's heap. Errors:
// ENOTSUP, with a line that says what is missing.
base::Expected<const SpdkLibrary*> load_spdk();

}  // namespace storage
