// A table that is kept in a file: the file, the page cache that it is reached through, and its log.
#pragma once
#include <memory>
#include <string>

#include "batch/stored/stored_table.h"
#include "pagecache/page_store.h"
#include "spillway/batch.h"
#include "storage/opening/store_files.h"

namespace capi::batching {

class Stored {
 public:
  // REQUIRES: options.file is not null. Errors: EINVAL: an option is wrong, which the line names; those of opening the files, and of the table.
  static base::Expected<std::unique_ptr<Stored>> open(const spillway_batch_options& options);
  ~Stored();

  batch::StoredTable& table() { return table_; }
  uint64_t file_bytes() const { return file_->bytes(); }
  uint64_t slot_bytes() const { return table_.slot_bytes(); }
  // As the table's.
  base::Expected<void> close() { return table_.close(); }

 private:
  // A file or device that is locked. Until files.keep(), closing it leaves it as it was before.
  struct Place {
    std::string text;
    storage::StoreFiles files;
    storage::Device* device = nullptr;

    base::Expected<void> open(const char* name, uint64_t bytes);
  };
  base::Expected<void> open_files(const spillway_batch_options& options, const batch::StoredOptions& own);

  Place table_place_, log_place_;
  pagecache::PageCache* cache_ = nullptr;
  pagecache::File* file_ = nullptr;
  std::unique_ptr<pagecache::PageStore> store_;
  batch::StoredTable table_;
};

}  // namespace capi::batching
