#include "cache/pages/page_reader.h"

#include <string.h>

#include "cache/pages/frame.h"
#include "cache/pages/page_map.h"

namespace cache {
namespace {

constexpr uint32_t kMaxAttempts = 1000;

// Where a page was found, and the words that said so.
struct Found {
  uint32_t leaf = 0;
  uint32_t word = 0;
  // Of a page in a frame:
  PageId page{};
  PlaceId place = base::kNoPlace;
  uint32_t version = 0;
  State state = State::kAbsent;
  bool operator==(const Found&) const = default;
};

// Step 1. False: the process cannot be read.
bool find(const Layout& layout, const Layout::Part& part, PageId page, Found& found, Outside& outside) {
  found = {};
  if (!outside.read_memory(layout.directory + index(page) / kGroupPages * sizeof found.leaf, &found.leaf,
                           sizeof found.leaf))
    return false;
  if (found.leaf == 0) return true;
  if (!outside.read_memory(part.leaves + PageMap::word_offset(found.leaf, page), &found.word,
                           sizeof found.word))
    return false;
  const PageMap::Where where = PageMap::where_of(found.word);
  if (where.frame == base::kNoFrame || index(where.frame) >= part.frame_count) return true;
  alignas(Frame) char bytes[sizeof(Frame)];
  if (!outside.read_memory(part.frames + uint64_t{index(where.frame)} * sizeof(Frame), bytes, sizeof bytes))
    return false;
  const Frame& frame = *reinterpret_cast<const Frame*>(bytes);
  found.page = frame.page;
  found.place = frame.place;
  found.version = frame.version();
  found.state = frame.state();
  return true;
}

// Two readings that agree.
bool read_place(const Layout& layout, PlaceId place, uint64_t offset, char* to, char* scratch,
                Outside& outside) {
  const uint64_t at = uint64_t{index(place)} * layout.page_bytes + offset;
  if (!outside.read_storage(at, to, base::kOsPageBytes)) return false;
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    if (!outside.read_storage(at, scratch, base::kOsPageBytes)) return false;
    if (memcmp(to, scratch, base::kOsPageBytes) == 0) return true;
    memcpy(to, scratch, base::kOsPageBytes);
  }
  return false;
}

}  // namespace

ReadResult read_os_page(const Layout& layout, uint64_t address, char* to, char* scratch, Outside& outside) {
  const PageId page{(address - layout.range_begin) / layout.page_bytes};
  const uint64_t offset = (address - layout.range_begin) % layout.page_bytes;
  const Layout::Part& part = layout.parts[partition_of(page, layout.region_shift, layout.partition_count)];
  bool failed = false;
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Found before, after;
    if (!find(layout, part, page, before, outside)) return ReadResult::kUnreadable;
    const PageMap::Where where = before.leaf == 0 ? PageMap::Where{} : PageMap::where_of(before.word);
    bool readable = true;
    if (where.frame == base::kNoFrame && where.place == base::kNoPlace) {
      memset(to, 0, base::kOsPageBytes);
    } else if (where.place != base::kNoPlace) {
      readable = read_place(layout, where.place, offset, to, scratch, outside);
    } else if (before.page != page) {
      continue;
    } else if (before.state == State::kLoading && before.place == base::kNoPlace) {
      memset(to, 0, base::kOsPageBytes);
    } else if (before.state == State::kLoading) {
      readable = read_place(layout, before.place, offset, to, scratch, outside);
    } else if (before.state == State::kResident || before.state == State::kEvicting ||
               before.state == State::kWriting) {
      readable = outside.read_memory(part.memory + uint64_t{index(where.frame)} * layout.page_bytes + offset,
                                     to, base::kOsPageBytes);
    } else {
      continue;
    }
    if (!find(layout, part, page, after, outside)) return ReadResult::kUnreadable;
    if (!(after == before)) continue;
    if (readable) return ReadResult::kDone;
    failed = true;
  }
  return failed ? ReadResult::kUnreadable : ReadResult::kUnsettled;
}

}  // namespace cache
