// Origins: what a page reads as that has no place on storage: zeros, unless the cache's user says that it comes from
// elsewhere (spill: files that the program mapped).
#pragma once
#include <sys/uio.h>

#include <optional>

#include "base/error.h"
#include "base/ids.h"
#include "storage/device.h"

namespace cache {

class Origins {
 public:
  enum class Kind : uint8_t {
    kZeros,
    kConstant,  // what is read stays the same: a page that is as it was read is dropped, and read again
    kChanging,  // it may not: a page that was read is kept on storage when it leaves, unless nobody can have stored to it
    kGone  // the page is not to be had from the cache any more: loading it fails with ESTALE
  };
  // Called for each miss of a page without a place, under its partition's lock: takes no lock, a few loads.
  virtual Kind kind_of(base::PageId page) = 0;
  // How many pages from `first` on, itself included, one read() may fill, and may fill before anybody asks for them; at most `most`. 0: only
  // `first`, and only for who asks for it. REQUIRES: kConstant or kChanging.
  virtual uint32_t count_together(base::PageId first, uint32_t most) = 0;
  // Fills a segment for each page, and returns how many bytes there were; what follows them is left as it is. Any error.
  virtual base::Expected<uint64_t> read(base::PageId first, const iovec* segments, uint32_t count) = 0;

  // For reads that nobody waits for: the device that has the same bytes, and where on it `count` pages from `first` on lie. Null, or nothing: there
  // is no way but read(). What such a read does not bring, read() does, or says why not.
  virtual storage::Device* device() { return nullptr; }
  virtual std::optional<uint64_t> offset_of(base::PageId, uint32_t /*count*/) { return std::nullopt; }

 protected:
  ~Origins() = default;
};

}  // namespace cache
