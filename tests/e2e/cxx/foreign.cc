// Compiled by clang: a C++ library that spillcc never saw, which works on the program's containers by the C++ library's
// own functions and keeps some of its own.
#include <list>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

// Made before main begins, and before the runtime would start were it not the first of all.
struct Early {
  Early() {
    for (int i = 0; i < 2000; ++i) text += "a piece of the library's text ";
    std::ostringstream out;
    out << text << 1 << text;
    text = out.str();
    for (long i = 0; i < 1000; ++i) numbers.push_back(i);
  }
  std::string text;
  std::vector<long> numbers;
};
static Early early;

const std::string& foreign_text() { return early.text; }
const std::vector<long>& foreign_numbers() { return early.numbers; }

// Strings of the library's, which the kernel must be able to read.
std::string foreign_make(int number) {
  std::string result;
  for (int i = 0; i < 30; ++i) result.append("a piece, number ").append(1, (char)('0' + number % 10));
  return result;
}

void foreign_tree(std::map<int, std::string>& map, int from, int to) {
  for (int i = from; i < to; i += 2) map.erase(i);
  for (int i = from; i < to; i += 3) map[i] = foreign_make(i);
}

void foreign_list(std::list<int>& list) {
  list.reverse();
  list.push_front(-1);
  list.push_back(-2);
  list.sort();
}

int foreign_find(const std::unordered_map<std::string, int>& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? -1 : found->second;
}

void foreign_append(std::string& text) { text += "from the library"; }
