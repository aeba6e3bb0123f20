#include "cache/sets/set_policy.h"

#include <iterator>

#include "base/text.h"

namespace cache {
namespace {

constexpr const char* kNames[] = {"lru",  "lfu",    "nrlfu",
                                  "alfu", "gclock", "s3fifo"};  // in the order of SetPolicy

}  // namespace

const char* name_of(SetPolicy policy) { return kNames[static_cast<uint8_t>(policy)]; }

base::Expected<SetPolicy> parse_set_policy(std::string_view name) {
  base::Text<96> names;
  constexpr size_t kCount = std::size(kSetPolicies);
  for (size_t i = 0; i < kCount; ++i) {
    if (name == name_of(kSetPolicies[i])) return kSetPolicies[i];
    names << (i == 0 ? "" : i + 1 == kCount ? " and " : ", ") << name_of(kSetPolicies[i]);
  }
  return base::failure(EINVAL, "no policy is called '", name.substr(0, 40), "'; there are ", names.view());
}

}  // namespace cache
