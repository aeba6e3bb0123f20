#include "batch/stored/format.h"

#include <cstddef>

#include "base/checksum.h"

namespace batch {
namespace {

constexpr size_t kSummed = sizeof(uint64_t);  // that it is not of itself

}  // namespace

void seal_page(const Shape& shape, std::span<std::byte> page, uint64_t made, uint32_t count) {
  const size_t end = sizeof(PageHeader) + size_t{count} * shape.record_bytes();
  memset(page.data() + end, 0, page.size() - end);
  PageHeader header = {.made = made, .count = count};
  memcpy(page.data(), &header, sizeof header);
  header.checksum = base::checksum(page.data() + kSummed, page.size() - kSummed);
  memcpy(page.data(), &header, kSummed);
}

bool read_page(const Shape& shape, std::span<const std::byte> page, uint64_t made, uint32_t& count) {
  PageHeader header;
  memcpy(&header, page.data(), sizeof header);
  count = header.count;
  return header.made == made && header.count <= records_of_page(shape) &&
         header.checksum == base::checksum(page.data() + kSummed, page.size() - kSummed);
}

void Superblock::seal() {
  memcpy(magic, kMagic, sizeof magic);
  checksum = base::checksum(this, offsetof(Superblock, checksum));
}

bool Superblock::is_sealed() const {
  return memcmp(magic, kMagic, sizeof magic) == 0 &&
         checksum == base::checksum(this, offsetof(Superblock, checksum));
}

void seal_map_slot(std::span<std::byte> slot, MapHeader header) {
  memcpy(slot.data(), &header, sizeof header);
  header.checksum = base::checksum(slot.data() + kSummed, sizeof header - kSummed + header.bytes);
  memcpy(slot.data(), &header, kSummed);
}

bool read_map_slot(std::span<const std::byte> slot, uint64_t number, MapHeader& header) {
  memcpy(&header, slot.data(), sizeof header);
  return header.number == number && header.bytes <= slot.size() - sizeof header &&
         header.checksum == base::checksum(slot.data() + kSummed, sizeof header - kSummed + header.bytes);
}

}  // namespace batch
