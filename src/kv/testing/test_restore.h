// For tests and fuzzers: restores an index from images in one thread (index.h describes the steps and their errors).
#pragma once
#include "kv/index/index.h"

namespace kv {

// To be called for each image; then finish_restore() is to be called once.
inline base::Expected<void> restore_image(Index& index, const TableImage& image) {
  if (auto known = index.restore_shape(image.shape); !known) return known;
  return index.restore_slots(image);
}

template <class Stays>
base::Expected<void> finish_restore(Index& index, const Stays& stays) {
  if (auto joined = index.join_images(); !joined) return joined;
  for (uint32_t number = 0; number < index.table_count(); ++number) index.sift(number, stays);
  index.end_restore();
  return {};
}

}  // namespace kv
