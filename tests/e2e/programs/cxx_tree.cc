// std::map and std::set in spilled memory: the C++ library's rebalancing and stepping do not take the fault path.
// chaos: 2
// pages: 4K 8K
// expect: cache.evictions>=300 spill.faults<=20
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "e2e.h"

struct Value {
  uint64_t number;
  char filler[1500];
};

// All of a map forwards and backwards.
static void visit(std::map<uint64_t, Value>& map) {
  uint64_t sum = 0, last = 0;
  for (const auto& [key, value] : map) {
    CHECK(key >= last && value.number == key * 3);
    last = key;
    sum = sum * 31 + key;
  }
  for (auto at = map.end(); at != map.begin();) {
    --at;
    CHECK(at->first == last || at->first < last);
    last = at->first;
    sum = sum * 31 + at->second.number;
  }
  printf("%zu %llu\n", map.size(), (unsigned long long)sum);
}

int main() {
  uint64_t random = 3;
  // In spilled memory with its header, as a member of a larger object would be.
  auto* map = new std::map<uint64_t, Value>;
  HIDE(map);
  for (int i = 0; i < 1200; ++i) {
    const uint64_t key = next_random(&random) % 3600;
    (*map)[key].number = key * 3;
  }
  CHECK_SPILLED(&map->begin()->second);
  visit(*map);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t key = next_random(&random) % 3600;
    if (i % 2 == 0)
      map->erase(key);
    else
      (*map)[key].number = key * 3;
  }
  visit(*map);
  const auto& constant = *map;
  CHECK(std::distance(constant.begin(), constant.end()) == (long)map->size());
  CHECK(std::next(constant.rbegin())->first < constant.rbegin()->first);

  // Nodes move between trees; a tree that empties is whole.
  std::map<uint64_t, Value> other;
  while (map->size() > 250)
    other.insert(map->extract(map->size() % 2 == 0 ? map->begin() : std::prev(map->end())));
  visit(*map);
  visit(other);
  other.merge(*map);
  visit(other);
  for (auto at = other.begin(); at != other.end();) at = other.erase(at);
  CHECK(other.empty() && other.begin() == other.end());

  std::vector<std::multiset<int>> many(25);
  for (int i = 0; i < 1000; ++i)
    many[next_random(&random) % many.size()].insert((int)(next_random(&random) % 50));
  size_t erased = 0;
  for (auto& set : many) erased += set.erase(7) + set.erase(*set.begin());
  printf("%zu\n", erased);
  delete map;
  return 0;
}
