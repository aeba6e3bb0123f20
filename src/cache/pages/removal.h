// Removal: why a page leaves its frame, for the policies of partitions (cache/policies) and of sets (cache/sets).
#pragma once

namespace cache {

enum class Removal {
  kEvicted,    // to make room: the page may be remembered
  kForgotten,  // its content is gone: if it comes back, it counts as a new page
};

}  // namespace cache
