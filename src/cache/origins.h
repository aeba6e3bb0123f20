// Origins: where the content of a page that has no place on storage comes from. It is zeros unless the cache's user names another origin (spill: a
// file that the program mapped).
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
    kConstant,  // reads the same each time: an unchanged page is dropped at eviction, and read again
    kChanging,  // may read differently: a page that was read is written to storage at eviction, unless nobody can have stored to it
    kGone       // the cache does not have the page any more: loading it fails with ESTALE
  };
  // Called for each miss of a page without a place, mostly under its partition's lock: must take no lock. Cost: a few loads.
  virtual Kind kind_of(base::PageId page) = 0;
  // How many pages from `first` on, at most `most`, one read() may fill, even ahead of use. 0: only `first`, and only on demand. REQUIRES: kConstant
  // or kChanging.
  virtual uint32_t count_together(base::PageId first, uint32_t most) = 0;
  // Fills one segment for each page, and returns how many bytes there were; the rest of the segments is left as it is. Any error.
  virtual base::Expected<uint64_t> read(base::PageId first, const iovec* segments, uint32_t count) = 0;

  // For asynchronous reads: a device that has the same bytes, and where on it `count` pages from `first` on lie. Null, or nothing, if read() is the
  // only way. If such a read fails, read() is called, and either succeeds or says why not.
  virtual storage::Device* device() { return nullptr; }
  virtual std::optional<uint64_t> offset_of(base::PageId, uint32_t /*count*/) { return std::nullopt; }

 protected:
  ~Origins() = default;
};

}  // namespace cache
