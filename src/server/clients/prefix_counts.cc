#include "server/clients/prefix_counts.h"

namespace server {

void PrefixCounts::add(std::string_view key, const Counts& more) {
  const size_t end = key.find(kDelimiter);
  if (end == std::string_view::npos) return;
  const std::string_view prefix = key.substr(0, end);
  sys::LockGuard scope(lock_);
  auto found = counts_.find(prefix);
  if (found == counts_.end()) {
    if (counts_.size() >= kMax) return;
    found = counts_.emplace(prefix, Counts()).first;
  }
  Counts& counts = found->second;
  counts.gets += more.gets;
  counts.hits += more.hits;
  counts.sets += more.sets;
  counts.deletes += more.deletes;
}

void PrefixCounts::reset() {
  sys::LockGuard scope(lock_);
  counts_.clear();
}

void PrefixCounts::for_each(const std::function<void(const std::string&, const Counts&)>& use) {
  sys::LockGuard scope(lock_);
  for (const auto& [prefix, counts] : counts_) use(prefix, counts);
}

}  // namespace server
