// The key of encrypted storage that is to be readable later: 64 random bytes in a file that only its owner may read.
//   (umask 077; head -c 64 /dev/urandom > FILE)
#pragma once
#include <string_view>

#include "storage/decorators/xts_cipher.h"

namespace storage {

// Reads the key. Errors: those of opening and reading the file; EINVAL if it is not a regular file, if others than its owner may access it, or
// if it is no key: it has another length, or two equal halves, as a file of zeros has. REQUIRES: path.size() <= kMaxPathBytes.
base::Expected<void> read_key_file(std::string_view path, XtsKey& key);

}  // namespace storage
