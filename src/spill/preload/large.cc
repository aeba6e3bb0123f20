#include "spill/preload/large.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/statistics.h"
#include "spill/address_space.h"
#include "spill/preload/service.h"
#include "sys/kernel.h"

namespace spill::preload {
namespace {

bool set_access(uint64_t address, uint64_t bytes, int protection) {
  return !sys::failed(sys::syscall(SYS_mprotect, address, bytes, protection));
}

void count_mapped(uint64_t bytes) {
  base::statistics.spill_allocated_bytes.add(bytes);
  base::statistics.spill_live_bytes.add(bytes);
}

}  // namespace

uint64_t map_large(uint64_t bytes, uint64_t alignment) {
  const uint64_t address = allocate_addresses(bytes, std::max(alignment, uint64_t{base::kOsPageBytes}));
  if (address == 0) return 0;
  if (!set_access(address, bytes, PROT_READ | PROT_WRITE)) {
    free_addresses(address, bytes);
    return 0;
  }
  count_mapped(bytes);
  return address;
}

bool map_large_at(uint64_t address, uint64_t bytes) {
  if (!allocate_addresses_at(address, bytes)) return false;
  if (!set_access(address, bytes, PROT_READ | PROT_WRITE)) {
    free_addresses(address, bytes);
    return false;
  }
  count_mapped(bytes);
  return true;
}

// In this order: nobody can touch the memory any more, it is forgotten, others may have the addresses.
void unmap_large(uint64_t address, uint64_t bytes) {
  set_access(address, bytes, PROT_NONE);
  ask_discard(address, bytes);
  free_addresses(address, bytes);
  base::statistics.spill_live_bytes.subtract(bytes);
}

bool renew_large(uint64_t address, uint64_t bytes) {
  if (!set_access(address, bytes, PROT_READ | PROT_WRITE)) return false;
  ask_discard(address, bytes);
  return true;
}

uint64_t resize_large(uint64_t address, uint64_t old_bytes, uint64_t bytes, bool may_move) {
  if (bytes < old_bytes) unmap_large(address + bytes, old_bytes - bytes);
  if (bytes <= old_bytes || map_large_at(address + old_bytes, bytes - old_bytes)) return address;
  const uint64_t moved = may_move ? map_large(bytes, base::kOsPageBytes) : 0;
  if (moved == 0) return 0;
  // The kernel does not move pages that may not be written, nor copy pages that may not be read.
  set_access(address, old_bytes, PROT_READ | PROT_WRITE);
  ask_relocate(moved, address, old_bytes);
  unmap_large(address, old_bytes);
  return moved;
}

}  // namespace spill::preload
