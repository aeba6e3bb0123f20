#include "batch/shape.h"

#include "batch/spread.h"

namespace batch {

base::Expected<void> check_records(const Shape& shape, uint64_t records, uint64_t key_space) {
  if (shape.key_bytes < kMinKeyBytes || shape.key_bytes > kMaxKeyBytes)
    return base::failure(EINVAL, "keys have ", uint64_t{kMinKeyBytes}, " to ", uint64_t{kMaxKeyBytes},
                         " bytes, not ", uint64_t{shape.key_bytes});
  if (shape.value_bytes == 0 || shape.value_bytes > kMaxRecordBytes ||
      shape.record_bytes() < kMinRecordBytes || shape.record_bytes() > kMaxRecordBytes)
    return base::failure(EINVAL, "a record has ", uint64_t{kMinRecordBytes}, " to ",
                         uint64_t{kMaxRecordBytes}, " bytes, of which one at least is its value's; not ",
                         uint64_t{shape.key_bytes}, " and ", uint64_t{shape.value_bytes});
  if (records == 0) return base::failure(EINVAL, "say how many records the table is made for");
  if (key_space == 0) return {};
  if (shape.key_bytes > sizeof(uint64_t))
    return base::failure(EINVAL, "keys that are numbers have up to 8 bytes, not ", uint64_t{shape.key_bytes});
  if (key_space > Spread::kMaxKeySpace)
    return base::failure(EINVAL, "a key space has up to ", Spread::kMaxKeySpace, " numbers, not ", key_space);
  return {};
}

}  // namespace batch
