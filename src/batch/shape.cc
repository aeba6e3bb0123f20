#include "batch/shape.h"

#include "batch/spread.h"

namespace batch {

base::Expected<void> check_records(const Shape& shape, uint64_t records, uint64_t key_space) {
  if (shape.key_bytes < kKeyBytesMin || shape.key_bytes > kKeyBytesMax)
    return base::failure(EINVAL, "keys have ", uint64_t{kKeyBytesMin}, " to ", uint64_t{kKeyBytesMax},
                         " bytes, not ", uint64_t{shape.key_bytes});
  if (shape.value_bytes == 0 || shape.value_bytes > kRecordBytesMax ||
      shape.record_bytes() < kRecordBytesMin || shape.record_bytes() > kRecordBytesMax)
    return base::failure(EINVAL, "a record has ", uint64_t{kRecordBytesMin}, " to ",
                         uint64_t{kRecordBytesMax}, " bytes, of which one at least is its value's; not ",
                         uint64_t{shape.key_bytes}, " and ", uint64_t{shape.value_bytes});
  if (records == 0) return base::failure(EINVAL, "say how many records the table is made for");
  if (key_space == 0) return {};
  if (shape.key_bytes > sizeof(uint64_t))
    return base::failure(EINVAL, "keys that are numbers have up to 8 bytes, not ", uint64_t{shape.key_bytes});
  if (key_space > Spread::kKeySpaceMax)
    return base::failure(EINVAL, "a key space has up to ", Spread::kKeySpaceMax, " numbers, not ", key_space);
  return {};
}

}  // namespace batch
