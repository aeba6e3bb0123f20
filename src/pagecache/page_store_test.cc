// Tables that are kept in a file of a page cache.
#include "pagecache/page_store.h"

#include "batch/stored/test_power_cut.h"
#include "pagecache/test_cache.h"

namespace pagecache {
namespace {

// A store in a cache of its own with some forty pages.
class OwnStore final : public batch::BucketStore {
 public:
  explicit OwnStore(storage::Device& device)
      : cache_(*PageCache::open(with_frames(40))), store_(*cache_, **cache_->add(device)) {}
  ~OwnStore() override { cache_->close(); }

  uint64_t bytes() const override { return store_.bytes(); }
  base::Expected<bool> has_content() const override { return store_.has_content(); }
  const char* name() const override { return store_.name(); }
  base::Expected<std::unique_ptr<Access>> open_access() override { return store_.open_access(); }

 private:
  PageCache* const cache_;
  PageStore store_;
};

std::unique_ptr<batch::BucketStore> in_cache(storage::Device& device) {
  return std::make_unique<OwnStore>(device);
}

TEST(PageStoreTest, PowerIsLostWithALog) { batch::cut_many(true, 60, in_cache); }
TEST(PageStoreTest, PowerIsLostWithoutALog) { batch::cut_many(false, 60, in_cache); }

TEST(PageStoreTest, PiecesAreReadAndWritten) {
  TestDevice test(64 * 4096);
  OwnStore store(test.device);
  auto access = *store.open_access();
  std::vector<std::byte> text(10 * 4096);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::byte>(i / 100);
  ASSERT_TRUE(access->write(3 * 4096, text));
  // More pieces than are read at a time.
  std::vector<std::vector<std::byte>> found(150, std::vector<std::byte>(77));
  std::vector<batch::BucketStore::Piece> pieces;
  for (size_t i = 0; i < found.size(); ++i) pieces.push_back({.offset = 3 * 4096 + i * 200, .to = found[i]});
  ASSERT_TRUE(access->read(pieces));
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(std::equal(found[i].begin(), found[i].end(), text.begin() + static_cast<ptrdiff_t>(i * 200)));
  EXPECT_NE(test.content(3 * 4096, text.size()), text);
  ASSERT_TRUE(access->sync());
  EXPECT_EQ(test.content(3 * 4096, text.size()), text);
  // Errors are reported.
  auto outside = access->write(64 * 4096, text);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().number, EINVAL);
}

}  // namespace
}  // namespace pagecache
