#include "cache/pages/page_map.h"

#include "base/check.h"
#include "sys/memory.h"

namespace cache {
namespace {

constexpr uint32_t kNoLeaf = ~uint32_t{0};

}  // namespace

base::Expected<void> PageDirectory::open(uint64_t page_count) {
  bytes_ = base::round_up(page_count / kGroupPages * sizeof(uint32_t) + 1, base::kOsPageBytes);
  auto memory = sys::map_anonymous(bytes_, "the page directory");
  if (!memory) return std::unexpected(memory.error());
  leaves_ = reinterpret_cast<uint32_t*>(*memory);
  return {};
}

void PageDirectory::close() { sys::unmap(leaves_, bytes_); }

base::Expected<void> PageMap::open(PageDirectory& directory, uint64_t group_limit, Budget& budget) {
  budget_ = &budget;
  directory_ = &directory;
  bytes_ = base::round_up(group_limit * sizeof(Leaf), base::kOsPageBytes);
  auto memory = sys::map_anonymous(bytes_, "the page map");
  if (!memory) return std::unexpected(memory.error());
  leaves_ = reinterpret_cast<Leaf*>(*memory);
  return {};
}

void PageMap::close() { sys::unmap(leaves_, bytes_); }

PageMap::Where PageMap::find(PageId page) const {
  const uint32_t leaf = directory_->leaf_of(page);
  if (leaf == 0) return {};
  return where_of(leaves_[leaf - 1].words[index(page) % kGroupPages]);
}

uint32_t& PageMap::word_for_update(PageId page) {
  uint32_t& leaf = directory_->leaf_of(page);
  if (leaf == 0) {
    uint32_t number = free_leaf_;
    if (number != kNoLeaf) {
      free_leaf_ = leaves_[number].words[0];
      leaves_[number].words[0] = 0;
    } else {
      number = leaf_end_++;
      budget_->add(sizeof(Leaf));
      CHECK_LE(uint64_t{leaf_end_} * sizeof(Leaf), bytes_);
    }
    leaf = number + 1;
  }
  return leaves_[leaf - 1].words[index(page) % kGroupPages];
}

void PageMap::set_frame(PageId page, FrameId frame) {
  CHECK_LT(index(frame), kIsFrame);
  word_for_update(page) = index(frame) | kIsFrame;
}

void PageMap::set_place(PageId page, PlaceId place) {
  CHECK_LT(index(place), kIsFrame - 1);
  word_for_update(page) = index(place) + 1;
}

void PageMap::erase(PageId page) {
  uint32_t& leaf = directory_->leaf_of(page);
  if (leaf == 0) return;
  Leaf& words = leaves_[leaf - 1];
  words.words[index(page) % kGroupPages] = 0;
  for (uint32_t word : words.words)
    if (word != 0) return;
  words.words[0] = free_leaf_;
  free_leaf_ = leaf - 1;
  leaf = 0;
}

}  // namespace cache
