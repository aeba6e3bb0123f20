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

  // Through which one caller at a time reads and writes. Errors: of I/O, with a line that says where.
  class Access {
   public:
    virtual ~Access() = default;
    // Reads all of them, or fails. Cost: reads of what is not in memory overlap.
    virtual base::Expected<void> read(std::span<const Piece> pieces) = 0;
    // Reads see the bytes when it returns. After an error a part of them may be written.
    virtual base::Expected<void> write(uint64_t offset, std::span<const std::byte> bytes) = 0;
    // Returns when all that was written before the call, by any caller, is durable.
    virtual base::Expected<void> sync() = 0;
  };

  virtual ~BucketStore() = default;
  // The same for its whole life. What was never written reads as zeros.
  virtual uint64_t bytes() const = 0;
  // Would something be lost if a table was made in it? Errors: of I/O.
  virtual base::Expected<bool> has_content() const = 0;
  // "/mnt/nvme/table", for messages
  virtual const char* name() const = 0;
  // Any thread. Errors: ENOMEM, EMFILE.
  virtual base::Expected<std::unique_ptr<Access>> open_access() = 0;
};

}  // namespace batch
