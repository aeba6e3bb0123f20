// Shares trees, lists, hash tables and strings with a library that spillcc did not compile.
#include <list>
#include <map>
#include <sstream>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <vector>

#include "../programs/e2e.h"

const std::string& foreign_text();
const std::vector<long>& foreign_numbers();
std::string foreign_make(int number);
void foreign_tree(std::map<int, std::string>& map, int from, int to);
void foreign_list(std::list<int>& list);
int foreign_find(const std::unordered_map<std::string, int>& map, const std::string& key);
void foreign_append(std::string& text);

int main() {
  CHECK(foreign_text().size() == 2 * 2000 * 30 + 1);
  // An instantiation that both have: the library gets the program's.
  std::vector<long> both;
  for (long i = 0; i < 1000; ++i) both.push_back(i);
  CHECK(both == foreign_numbers());
  // Its small strings are its own: plain memory, as for any library.
  const std::string made = foreign_make(12345678);
  CHECK(!is_spilled(made.data()));

  auto* map = new std::map<int, std::string>;
  CHECK_SPILLED(map);
  for (int i = 0; i < 1200; ++i) (*map)[i * 7 % 1201] = "made by the program, longer than a short string";
  push_out(3 << 20);
  for (int round = 0; round < 3; ++round) {
    foreign_tree(*map, round * 400, round * 400 + 400);
    for (int i = 0; i < 1200; i += 5) map->erase(i);
    for (int i = 0; i < 1200; i += 4) (*map)[i] += 'x';
  }
  uint64_t sum = 0;
  for (const auto& [key, value] : *map) sum = sum * 31 + (uint64_t)key + value.size() * 1000;
  for (auto at = map->rbegin(); at != map->rend(); ++at) sum = sum * 31 + (uint64_t)at->first;
  printf("%zu %llu\n", map->size(), (unsigned long long)sum);
  delete map;

  std::list<int> list;
  for (int i = 0; i < 1000; ++i) list.push_back(i * 389 % 1000);
  CHECK_SPILLED(&list.front());
  push_out(3 << 20);
  foreign_list(list);
  list.reverse();
  CHECK(list.size() == 1002 && list.front() == 999 && list.back() == -2);

  std::unordered_map<std::string, int> numbers;
  for (int i = 0; i < 1000; ++i) numbers["a key that is no short string " + std::to_string(i)] = i;
  push_out(3 << 20);
  for (int i = 0; i < 1001; ++i)
    CHECK(foreign_find(numbers, "a key that is no short string " + std::to_string(i)) == (i < 1000 ? i : -1));

  std::string text(5000, 't');
  for (int i = 0; i < 100; ++i) foreign_append(text);
  CHECK(text.size() == 5000 + 1600 && text.compare(5000, 16, "from the library") == 0);

  // Both sides mean the same type.
  std::ostringstream out;
  std::ios* stream = &out;
  CHECK(dynamic_cast<std::ostringstream*>(stream) == &out && typeid(*stream) == typeid(std::ostringstream));
  return 0;
}
