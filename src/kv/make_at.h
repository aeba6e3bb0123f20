// A store made where a device string says, its files included: what `spillway kv make` and spillway_kv_make are.
//
// What is refused leaves everything as it was, the files' existence and sizes included, and what another process has made meanwhile.
#pragma once
#include <string_view>

#include "kv/store.h"

namespace kv {

struct MakeAtOptions {
  MakeOptions store;  // its capacity is needed where a file is empty or missing
  bool overwrite = false;
  // How whoever asks says so: the ends of the lines that refuse it.
  const char* overwrite_advice = "";
  const char* capacity_advice = "";
};

// Errors: EEXIST for content, in files as a whole and on devices at both ends (storage/opening/content.h), unless it may be overwritten; EINVAL
// where no capacity says how large an empty file is to be; those of StoreFiles, open_device and Store::make.
base::Expected<Geometry> make_store_at(std::string_view device, const MakeAtOptions& options);

}  // namespace kv
