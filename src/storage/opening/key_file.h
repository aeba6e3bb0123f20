// The key of encrypted storage that is to be read again: 64 random bytes in a file of its owner.
//   (umask 077; head -c 64 /dev/urandom > FILE)
#pragma once
#include <string_view>

#include "storage/decorators/xts_cipher.h"

namespace storage {

// Errors: those of opening and reading it; EINVAL for what is no file, for one that others than its owner may read or write, and for what
// is no key: another length, or two halves that are the same, as of zeros. REQUIRES: path.size() <= kMaxPathBytes.
base::Expected<void> read_key_file(std::string_view path, XtsKey& key);

}  // namespace storage
