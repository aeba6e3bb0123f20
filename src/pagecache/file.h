// File: a device whose pages are in a cache, and where on the device the file's bytes are.
//
//   without checksums   page n is the device's bytes from n * page_bytes on; the last page may be shorter
//   with checksums      the last 8 bytes of each page are its checksum (docs/formats/pagecache.md), and the file's bytes continue in the next
//                       page: the file is shorter than the device. What follows the device's last whole page is not used
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "pagecache/way.h"
#include "storage/device.h"
#include "task/flush_group.h"

namespace pagecache {

struct FileOptions {
  // Each page gets a checksum when it is written back, and is checked when it is read from the device. REQUIRES: the file was written with
  // checksums and this page size, or is all zeros.
  bool checksums = false;
};

// While it exists, the device's bytes must be read and written through the cache only. The keys before its first page's and after its last
// page's belong to no page: a run of neighbours ends there.
class File {
 public:
  static constexpr unsigned kPageBits = 48;
  static constexpr uint32_t kMaxNumber = (1 << (64 - kPageBits)) - 1;
  static constexpr uint64_t kChecksumBytes = 8;

  File(storage::Device& device, uint32_t number, unsigned page_shift, const FileOptions& options)
      : device_(device),
        bytes_(options.checksums ? (device.end_bytes() >> page_shift) * data_bytes(page_shift)
                                 : device.end_bytes()),
        number_(number),
        page_shift_(page_shift),
        has_checksums_(options.checksums) {}

  storage::Device& device() const { return device_; }
  uint32_t number() const { return number_; }
  bool has_checksums() const { return has_checksums_; }
  // How many bytes can be read and written.
  uint64_t bytes() const { return bytes_; }

  // Where a byte of the file is.
  struct Position {
    uint64_t page = 0;
    uint64_t begin = 0;  // in the page
  };
  Position position_of(uint64_t offset) const {
    if (!has_checksums_) return {offset >> page_shift_, offset & (page_bytes() - 1)};
    return {offset / data_bytes(page_shift_), offset % data_bytes(page_shift_)};
  }
  // How many bytes of the file a whole page has.
  uint64_t page_data_bytes() const { return has_checksums_ ? data_bytes(page_shift_) : page_bytes(); }

  // REQUIRES, of the next four: the file has such a page.

  // How many bytes of the file the page has.
  uint64_t data_bytes_of(uint64_t page) const {
    return has_checksums_ ? data_bytes(page_shift_) : std::min(page_bytes(), bytes_ - device_offset_of(page));
  }
  // Where the page is on the device, how many bytes are transferred for it, and how many of these exist on the device.
  uint64_t device_offset_of(uint64_t page) const { return page << page_shift_; }
  uint64_t device_bytes_of(uint64_t page) const {
    return std::min(page_bytes(), device_.capacity_bytes() - device_offset_of(page));
  }
  uint64_t device_bytes_there(uint64_t page) const {
    return std::min(page_bytes(), device_.end_bytes() - device_offset_of(page));
  }

  // How large a device must be for a file of `bytes` with checksums: whole pages. A size that no file can have gives one that no device can.
  static uint64_t device_bytes_for(uint64_t bytes, uint64_t page_bytes) {
    const uint64_t data_bytes = page_bytes - kChecksumBytes;
    const uint64_t pages = bytes / data_bytes + (bytes % data_bytes != 0);
    return std::max(bytes, pages * page_bytes);
  }

  PageKey key(uint64_t page) const { return static_cast<PageKey>(uint64_t{number_} << kPageBits | page); }
  bool has(PageKey key) const { return number_of(key) == number_; }
  static uint32_t number_of(PageKey key) {
    return static_cast<uint32_t>(static_cast<uint64_t>(key) >> kPageBits);
  }
  static uint64_t page_of(PageKey key) {
    return static_cast<uint64_t>(key) & ((uint64_t{1} << kPageBits) - 1);
  }

  // Sets the checksum of a page that is to be written to the device. REQUIRES: has_checksums().
  void seal(uint64_t page, std::byte* bytes) const;
  // Are these the bytes that seal() produced for this page? A page of zeros was never written, and is intact. REQUIRES: has_checksums().
  bool is_intact(uint64_t page, const std::byte* bytes) const;

 private:
  friend class PageCache;
  friend class Servers;
  friend class Session;
  static constexpr uint64_t data_bytes(unsigned page_shift) {
    return (uint64_t{1} << page_shift) - kChecksumBytes;
  }
  uint64_t page_bytes() const { return uint64_t{1} << page_shift_; }
  uint64_t checksum_of(uint64_t page, const std::byte* bytes) const;

  storage::Device& device_;
  const uint64_t bytes_;
  const uint32_t number_;
  const unsigned page_shift_;
  const bool has_checksums_;
  std::atomic<bool> is_left_{false};                // servers have left the file, and do not flush it
  task::FlushGroup flushes_;                        // of its device, shared by all sessions
  mutable std::atomic<uint32_t> session_count_{0};  // sessions that have a channel to the device
};

}  // namespace pagecache
