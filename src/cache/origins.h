// Origins: where the content of a page comes from that has no place on storage. It is zeros, unless the cache's user says that the page comes from
// elsewhere (spill: from a file that the program mapped).
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
    kConstant,  // it reads the same each time: a page that is as it was read is dropped when it leaves, and read again
    kChanging,  // it may not: a page that was read goes to storage when it leaves, unless nobody can have stored to it
    kGone  // the cache does not have the page any more: loading it fails with ESTALE
  };
  // Called for each miss of a page without a place, mostly under its partition's lock: takes no lock. Cost: a few loads.
  virtual Kind kind_of(base::PageId page) = 0;
  // How many pages, from `first` on and at most `most`, one read() may fill, also before anybody asks for them. 0: only `first`, and only when it is
  // asked for. REQUIRES: kConstant or kChanging.
  virtual uint32_t count_together(base::PageId first, uint32_t most) = 0;
  // Fills one segment for each page, and returns how many bytes there were; what is behind these in the segments stays as it is. Any error.
  virtual base::Expected<uint64_t> read(base::PageId first, const iovec* segments, uint32_t count) = 0;

  // For reads that nobody waits for: a device that has the same bytes, and where on it `count` pages from `first` on lie. Null, or nothing, if read()
  // is the only way. What such a read does not bring, read() brings, or says why not.
  virtual storage::Device* device() { return nullptr; }
  virtual std::optional<uint64_t> offset_of(base::PageId, uint32_t /*count*/) { return std::nullopt; }

 protected:
  ~Origins() = default;
};

}  // namespace cache
