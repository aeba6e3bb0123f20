#include "batch/stored/format.h"

#include <algorithm>
#include <cstddef>

#include "base/checksum.h"

namespace batch {
namespace {

constexpr size_t kSummed = sizeof(uint64_t);  // where a checksum's bytes begin: after the checksum itself

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

MapReader::Next MapReader::next(MapRegion& region) {
  if (rest_.empty()) return prefix_ == kAll ? Next::kEnd : Next::kDamaged;
  MapEntry& entry = region.entry;
  if (rest_.size() < sizeof entry || prefix_ >= kAll) return Next::kDamaged;
  memcpy(&entry, rest_.data(), sizeof entry);
  rest_ = rest_.subspan(sizeof entry);
  const size_t fence_bytes = size_t{entry.page_count} * sizeof(uint32_t);
  if (entry.depth > kMaxDepth || entry.page_count > limits_.slot_pages || entry.made > limits_.sequence ||
      rest_.size() < fence_bytes)
    return Next::kDamaged;
  const Wide span = kAll >> entry.depth;
  const uint64_t pages = (entry.count + limits_.page_records - 1) / limits_.page_records;
  if (entry.count > uint64_t{limits_.slot_pages} * limits_.page_records || prefix_ % span != 0 ||
      pages != entry.page_count || (entry.slot == 0) != (entry.count == 0))
    return Next::kDamaged;
  region.prefix = static_cast<uint64_t>(prefix_);
  memcpy(region.fences, rest_.data(), fence_bytes);
  if (!std::ranges::is_sorted(std::span(region.fences).first(entry.page_count))) return Next::kDamaged;
  rest_ = rest_.subspan(fence_bytes);
  prefix_ += span;
  return Next::kRegion;
}

}  // namespace batch
