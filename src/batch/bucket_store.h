// BucketStore: where a table that is larger than memory is kept. The page cache has one (pagecache/page_store.h), tests another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"

namespace batch {

class BucketStore {
 public:
  // Bytes that are wanted, and where they are to be copied to.
  struct Piece {
    uint64_t offset = 0;
    std::span<std::byte> to;
  };

  // How one caller at a time reads and writes. Errors: of I/O, with a line that says where.
  class Access {
   public:
    virtual ~Access() = default;
    // All of them, or an error. Cost: reads of what is not in memory overlap.
    virtual base::Expected<void> read(std::span<const Piece> pieces) = 0;
    // It is read from now on. After an error a part of it may be written.
    virtual base::Expected<void> write(uint64_t offset, std::span<const std::byte> bytes) = 0;
    // What was written before the call, by anybody, is there for good.
    virtual base::Expected<void> sync() = 0;
  };

  virtual ~BucketStore() = default;
  // The same for its whole life. What was never written reads as zeros.
  virtual uint64_t bytes() const = 0;
  // Would whoever makes a table in it lose something? Errors: of I/O.
  virtual base::Expected<bool> has_content() const = 0;
  // "/mnt/nvme/table", for messages
  virtual const char* name() const = 0;
  // Any thread. Errors: ENOMEM, EMFILE.
  virtual base::Expected<std::unique_ptr<Access>> open_access() = 0;
};

}  // namespace batch
