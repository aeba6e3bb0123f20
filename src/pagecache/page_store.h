// PageStore: a file in a page cache, as the BucketStore of a batched update table that is larger than memory.
#pragma once
#include "batch/bucket_store.h"
#include "pagecache/session.h"
#include "storage/opening/content.h"

namespace pagecache {

class PageStore final : public batch::BucketStore {
 public:
  // Both must outlive it.
  PageStore(PageCache& cache, File& file) : cache_(cache), file_(file) {}

  uint64_t bytes() const override { return file_.bytes(); }
  base::Expected<bool> has_content() const override { return storage::device_has_content(file_.device()); }
  const char* name() const override { return file_.device().name(); }
  base::Expected<std::unique_ptr<Access>> open_access() override;

 private:
  PageCache& cache_;
  File& file_;
};

}  // namespace pagecache
