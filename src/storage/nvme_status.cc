#include "storage/nvme_status.h"

#include <cerrno>

namespace storage {
namespace {

constexpr uint32_t kGeneric = 0, kMedia = 2, kPath = 3;

int error_of_generic(uint32_t code, Operation operation) {
  switch (code) {
    case 0x00: return 0;
    case 0x01: return EOPNOTSUPP;  // invalid opcode
    case 0x02: return EINVAL;      // invalid field
    case 0x05:                     // aborted: power loss
    case 0x07:                     // aborted on request
    case 0x08: return ENXIO;       // aborted: the queue is deleted, or its connection has ended
    case 0x0b: return ENXIO;       // no such namespace (any more)
    case 0x20:
      return EROFS;  // write protected
    // Past the end, as the kernel's block devices have it.
    case 0x80: return operation == Operation::kWrite ? ENOSPC : EIO;
    case 0x81: return ENOSPC;  // capacity exceeded
    case 0x83: return EBUSY;   // reserved by another host
    default: return EIO;
  }
}

}  // namespace

int error_of_nvme_status(uint32_t type, uint32_t code, Operation operation) {
  switch (type) {
    case kGeneric: return error_of_generic(code, operation);
    case kMedia: return code == 0x86 ? EACCES : EIO;
    case kPath: return ENXIO;
    default: return EIO;
  }
}

}  // namespace storage
