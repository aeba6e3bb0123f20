// Removal: why a page leaves its frame, as policies are told, those of partitions (cache/policies) and those of sets (cache/sets).
#pragma once

namespace cache {

enum class Removal {
  kEvicted,    // to make room: the page may be remembered
  kForgotten,  // its content is gone: when it comes back it is a new one
};

}  // namespace cache
