#include "cache/set_policy.h"

namespace cache {
namespace {

constexpr const char* kNames[] = {"lru",  "lfu",    "nrlfu",
                                  "alfu", "gclock", "s3fifo"};  // in the order of SetPolicy

}  // namespace

const char* name_of(SetPolicy policy) { return kNames[static_cast<uint8_t>(policy)]; }

base::Expected<SetPolicy> parse_set_policy(std::string_view name) {
  for (const SetPolicy policy : kSetPolicies)
    if (name == name_of(policy)) return policy;
  return base::failure(EINVAL, "no policy is called '", name.substr(0, 40),
                       "'; there are lru, lfu, nrlfu, alfu, gclock and s3fifo");
}

}  // namespace cache
