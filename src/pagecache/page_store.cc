#include "pagecache/page_store.h"

#include <new>

namespace pagecache {
namespace {

class PageAccess final : public batch::BucketStore::Access {
 public:
  PageAccess(PageCache& cache, File& file) : file_(file) { session_.open(cache); }

  base::Expected<void> read(std::span<const batch::BucketStore::Piece> pieces) override {
    constexpr size_t kMax = 64;
    while (!pieces.empty()) {
      Piece own[kMax];
      const size_t count = std::min(pieces.size(), kMax);
      for (size_t i = 0; i < count; ++i) own[i] = {.offset = pieces[i].offset, .to = pieces[i].to};
      if (auto done = session_.read(file_, std::span(own).first(count)); !done) return done;
      pieces = pieces.subspan(count);
    }
    return {};
  }
  base::Expected<void> write(uint64_t offset, std::span<const std::byte> bytes) override {
    return session_.write(file_, offset, bytes);
  }
  base::Expected<void> sync() override { return session_.sync(file_); }

 private:
  File& file_;
  Session session_;
};

}  // namespace

base::Expected<std::unique_ptr<batch::BucketStore::Access>> PageStore::open_access() {
  std::unique_ptr<Access> made(new (std::nothrow) PageAccess(cache_, file_));
  if (made == nullptr) return base::failure(ENOMEM, "page cache: no memory for a session");
  return made;
}

}  // namespace pagecache
