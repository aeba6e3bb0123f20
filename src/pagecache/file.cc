#include "pagecache/file.h"

#include <cstring>

#include "base/checksum.h"
#include "base/mix.h"

namespace pagecache {

// Depends on the page's number, too, so that a page that was written to another one's place is not intact there.
uint64_t File::checksum_of(uint64_t page, const std::byte* bytes) const {
  return base::checksum(bytes, page_data_bytes()) ^ base::mix(page);
}

void File::seal(uint64_t page, std::byte* bytes) const {
  DCHECK(has_checksums_);
  const uint64_t checksum = checksum_of(page, bytes);
  memcpy(bytes + page_data_bytes(), &checksum, sizeof checksum);
}

bool File::is_intact(uint64_t page, const std::byte* bytes) const {
  DCHECK(has_checksums_);
  uint64_t checksum;
  memcpy(&checksum, bytes + page_data_bytes(), sizeof checksum);
  if (checksum == checksum_of(page, bytes)) return true;
  if (checksum != 0) return false;
  // Are all bytes zero? The first one is, and each other one equals its predecessor.
  return bytes[0] == std::byte{0} && memcmp(bytes, bytes + 1, page_data_bytes() - 1) == 0;
}

}  // namespace pagecache
