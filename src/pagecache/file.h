// File: a device whose pages are in a cache, and where on it the file's bytes are.
//
//   without checksums   page n is the device's bytes from n * page_bytes on, to where they end: the last one may have less
//   with                each page has its checksum in its last 8 bytes (docs/formats/pagecache.md), and the file goes on in the next page:
//                       it is as many bytes shorter than the device. What follows the last whole page of the device is not used
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
  // Each page is checked when it is read from the device, and gets its checksum when it is written back. The file was made so, with pages of
  // this size, or is zeros.
  bool checksums = false;
};

// Bytes of the device are only read and written through the cache meanwhile. Behind the keys of its pages, and before them, are some of no page.
class File {
 public:
  static constexpr unsigned kPageBits = 48;
  static constexpr uint32_t kNumberMost = (1 << (64 - kPageBits)) - 1;
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
  // That may be read and written.
  uint64_t bytes() const { return bytes_; }

  struct Position {
    uint64_t page = 0;
    uint64_t begin = 0;  // in the page
  };
  Position position_of(uint64_t offset) const {
    if (!has_checksums_) return {offset >> page_shift_, offset & (page_bytes() - 1)};
    return {offset / data_bytes(page_shift_), offset % data_bytes(page_shift_)};
  }
  // Of the file, in a whole page.
  uint64_t page_data_bytes() const { return has_checksums_ ? data_bytes(page_shift_) : page_bytes(); }
  // Of the file, in this page. REQUIRES, as of what follows: it has such a page.
  uint64_t data_bytes_of(uint64_t page) const {
    return has_checksums_ ? data_bytes(page_shift_) : std::min(page_bytes(), bytes_ - device_offset_of(page));
  }
  // All of the page, on the device: as many bytes as are to be transferred, and of these, how many there are.
  uint64_t device_offset_of(uint64_t page) const { return page << page_shift_; }
  uint64_t device_bytes_of(uint64_t page) const {
    return std::min(page_bytes(), device_.capacity_bytes() - device_offset_of(page));
  }
  uint64_t device_bytes_there(uint64_t page) const {
    return std::min(page_bytes(), device_.end_bytes() - device_offset_of(page));
  }

  // Of a device for so many bytes of a file with checksums, whole pages. More than any file may have stays so.
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

  // Gives a page, that is to be written to the device, its checksum. REQUIRES: it has_checksums().
  void seal(uint64_t page, std::byte* bytes) const;
  // Is what was read from there what seal() left? A page of zeros was never written. REQUIRES: it has_checksums().
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
  std::atomic<bool> is_left_{false};                // by servers, which do not flush it
  task::FlushGroup flushes_;                        // of its device, by all sessions
  mutable std::atomic<uint32_t> session_count_{0};  // that have used it
};

}  // namespace pagecache
