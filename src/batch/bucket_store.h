// BucketStore: where a table that is larger than memory is kept. The page cache implements one (pagecache/page_store.h), the tests another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"

namespace batch {

class BucketStore {
 public:
  // Where the wanted bytes are, and where to copy them to.
  struct Piece {
    uint64_t offset = 0;
    std::span<std::byte> to;
  };

  // One caller at a time reads and writes through it. Errors: of I/O; the message says where.
  class Access {
   public:
    virtual ~Access() = default;
    // Reads all pieces, or fails. Cost: reads of pieces that are not in memory overlap.
    virtual base::Expected<void> read(std::span<const Piece> pieces) = 0;
    // When it returns, reads see the bytes. After an error a part of them may have been written.
    virtual base::Expected<void> write(uint64_t offset, std::span<const std::byte> bytes) = 0;
    // Returns when everything that was written before the call, by any caller, is durable.
    virtual base::Expected<void> sync() = 0;
  };

  virtual ~BucketStore() = default;
  // The size; it never changes. Bytes that were never written are read as zeros.
  virtual uint64_t bytes() const = 0;
  // Would something be lost if a table were made in the store? Errors: of I/O.
  virtual base::Expected<bool> has_content() const = 0;
  // "/mnt/nvme/table", for messages
  virtual const char* name() const = 0;
  // Any thread. Errors: ENOMEM, EMFILE.
  virtual base::Expected<std::unique_ptr<Access>> open_access() = 0;
};

}  // namespace batch
