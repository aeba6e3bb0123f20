#include "spill/pins.h"

#include "spill/runtime.h"

namespace spill {

char* pin_page_piece(uint64_t address) {
  InRuntime inside;
  const base::PageId page = runtime.cache->page_of(address);
  auto pinned = runtime.cache->pin(page, lane_of(inside.thread()));
  if (!pinned) end_process(pinned.error(), kFatalStatus);
  return *pinned + (address - runtime.cache->address_of(page));
}

void unpin_page_piece(uint64_t address) {
  InRuntime inside;
  runtime.cache->unpin(runtime.cache->page_of(address));
}

size_t pin_allowance() {
  const size_t share = runtime.cache->frame_count() / 16;
  return share > 0 ? share : 1;
}

}  // namespace spill
