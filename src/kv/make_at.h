// Makes a store where a device string says, and the files for it: for `spillway kv make` and spillway_kv_make.
//
// A refusal leaves everything as it was: whether files exist, their sizes, and what another process has made meanwhile.
#pragma once
#include <string_view>

#include "kv/store.h"

namespace kv {

struct MakeAtOptions {
  MakeOptions store;  // with a capacity where a file is empty or missing
  bool overwrite = false;
  // How the caller's user can ask for these: ends of messages.
  const char* overwrite_advice = "";
  const char* capacity_advice = "";
};

// Errors: EEXIST: there is content, anywhere in a file or at either end of a device (storage/opening/content.h), and `overwrite` is not set; EINVAL: an
// empty file, and no capacity; those of StoreFiles, open_device and Store::make.
base::Expected<Geometry> make_store_at(std::string_view device, const MakeAtOptions& options);

}  // namespace kv
