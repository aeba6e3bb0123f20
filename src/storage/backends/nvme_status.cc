#include "storage/backends/nvme_status.h"

#include <cerrno>

namespace storage {
namespace {

constexpr uint32_t kGeneric = 0, kMedia = 2, kPath = 3;

struct Status {
  uint32_t type;
  uint32_t code;
  int error;
  const char* name;
};
constexpr Status kStatuses[] = {
    {kGeneric, 0x00, 0, "success"},
    {kGeneric, 0x01, EOPNOTSUPP, "invalid command"},
    {kGeneric, 0x02, EINVAL, "invalid field in a command"},
    {kGeneric, 0x05, ENXIO, "aborted since power is lost"},
    {kGeneric, 0x06, EIO, "internal error"},
    {kGeneric, 0x07, ENXIO, "aborted on request"},
    {kGeneric, 0x08, ENXIO, "aborted since its queue is deleted"},  // or its connection has ended
    {kGeneric, 0x0b, ENXIO, "no such namespace"},                   // any more
    {kGeneric, 0x20, EROFS, "the namespace is write protected"},
    {kGeneric, 0x80, EIO, "past the end"},
    {kGeneric, 0x81, ENOSPC, "capacity exceeded"},
    {kGeneric, 0x82, EIO, "the namespace is not ready"},
    {kGeneric, 0x83, EBUSY, "reserved by another host"},
    {kMedia, 0x80, EIO, "write fault"},
    {kMedia, 0x81, EIO, "unrecovered read error"},
    {kMedia, 0x82, EIO, "wrong checksum"},
    {kMedia, 0x86, EACCES, "access denied"},
    {kMedia, 0x87, EIO, "read of a block that was never written"},
};

const Status* status_of(uint32_t type, uint32_t code) {
  for (const Status& status : kStatuses)
    if (status.type == type && status.code == code) return &status;
  return nullptr;
}

}  // namespace

int error_of_nvme_status(uint32_t type, uint32_t code, Operation operation) {
  // Past the end, as the kernel's block devices report it.
  if (type == kGeneric && code == 0x80 && operation == Operation::kWrite) return ENOSPC;
  if (type == kPath) return ENXIO;
  const Status* status = status_of(type, code);
  return status != nullptr ? status->error : EIO;
}

const char* nvme_status_name(uint32_t type, uint32_t code) {
  if (type == kPath) return "the way to the namespace is lost";
  const Status* status = status_of(type, code);
  return status != nullptr ? status->name : "an error";
}

}  // namespace storage
