// A table that is kept in a file: the file, the page cache that it is reached through, and its log.
#pragma once
#include <memory>

#include "batch/stored/stored_table.h"
#include "pagecache/bucket_store.h"
#include "spillway/batch.h"

namespace capi::batching {

class Stored {
 public:
  // REQUIRES: options.file is not null. Errors: EINVAL: an option, which the line names; of opening the files; of the table.
  static base::Expected<std::unique_ptr<Stored>> open(const spillway_batch_options& options);
  ~Stored();

  batch::StoredTable& table() { return table_; }
  uint64_t file_bytes() const { return file_->bytes(); }
  uint64_t slot_bytes() const { return table_.slot_bytes(); }
  // As the table's.
  base::Expected<void> close() { return table_.close(); }

 private:
  base::Expected<void> open_files(const spillway_batch_options& options, const batch::StoredOptions& own);

  storage::Device* device_ = nullptr;
  storage::Device* log_ = nullptr;
  pagecache::PageCache* cache_ = nullptr;
  pagecache::File* file_ = nullptr;
  std::unique_ptr<pagecache::PageStore> store_;
  batch::StoredTable table_;
};

}  // namespace capi::batching
