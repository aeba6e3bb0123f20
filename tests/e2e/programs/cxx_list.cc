// std::list in spilled memory: the C++ library's linking, transfers and reversal do not take the fault path.
// chaos: 2
// pages: 4K 8K
// expect: cache.evictions>=500 spill.faults<=20
#include <iterator>
#include <list>
#include <vector>

#include "e2e.h"

struct Item {
  uint64_t number;
  char filler[180];
  bool operator<(const Item& other) const { return number < other.number; }
};

static void visit(const std::list<Item>& list) {
  uint64_t sum = 0;
  size_t count = 0;
  for (const Item& item : list) sum = sum * 31 + item.number, ++count;
  for (auto at = list.rbegin(); at != list.rend(); ++at) sum = sum * 31 + at->number;
  CHECK(count == list.size());
  printf("%zu %llu\n", count, (unsigned long long)sum);
}

int main() {
  uint64_t random = 4;
  std::vector<std::list<Item>> lists(16);
  for (int i = 0; i < 3500; ++i) {
    auto& list = lists[next_random(&random) % lists.size()];
    if (i % 2 == 0)
      list.push_back({next_random(&random) % 100000, {}});
    else
      list.push_front({next_random(&random) % 100000, {}});
  }
  CHECK_SPILLED(&lists[0].front());
  for (auto& list : lists) visit(list);
  for (auto& list : lists) list.sort();
  for (size_t i = 1; i < 8; ++i) lists[0].merge(lists[i]);
  visit(lists[0]);
  lists[0].reverse();
  for (size_t i = 8; i < 16; ++i) {
    lists[0].splice(i % 2 == 0 ? lists[0].begin() : lists[0].end(), lists[i], lists[i].begin(),
                    std::next(lists[i].begin(), 100));
    std::swap(lists[i], lists[i - 8]);
  }
  for (auto& list : lists) visit(list);
  lists[8].remove_if([](const Item& item) { return item.number % 3 == 0; });
  lists[8].unique([](const Item& a, const Item& b) { return a.number / 100 == b.number / 100; });
  visit(lists[8]);
  std::swap(lists[8], lists[1]);
  for (auto at = lists[1].begin(); at != lists[1].end();)
    at = at->number % 2 == 0 ? lists[1].erase(at) : std::next(at);
  visit(lists[1]);
  visit(lists[8]);
  return 0;
}
