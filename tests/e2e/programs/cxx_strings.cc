// Strings and string streams in spilled memory, in C++17, whose headers leave them to the C++ library: what they hold
// is spilled, and they take the fault path once or twice a page of a stream at most, where the library formats and
// reads numbers. Keys of hash tables do not take it.
// flags: -std=c++17
// levels: O0 O2 lto
// chaos: 2
// expect: cache.evictions>=2000 spill.faults<=600
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "e2e.h"

// Grown by the library's own functions. Returns a checksum.
static uint64_t grow(const std::string& piece, uint64_t* random) {
  std::vector<std::string> strings(1000);
  for (int i = 0; i < 8000; ++i) {
    std::string& s = strings[next_random(random) % strings.size()];
    switch (i % 5) {
      case 0: s += piece; break;
      case 1: s.append(piece, 3, 20); break;
      case 2: s.insert(s.size() / 2, piece); break;
      case 3: s.push_back(piece[0]); break;
      case 4: s.replace(0, s.size() / 3, piece); break;
    }
  }
  uint64_t sum = 0;
  for (std::string& s : strings) {
    if (s.size() > 64) CHECK_SPILLED(s.data());
    sum = sum * 31 + s.size() + s.find(piece[5]) + s.rfind(piece[7]);
  }
  std::vector<std::string> copies = strings;
  for (std::string& s : copies) s = s.substr(s.size() / 4);
  for (size_t i = 0; i < copies.size(); ++i)
    sum += copies[i].compare(strings[next_random(random) % strings.size()]) < 0;
  strings.swap(copies);
  for (const std::string& s : strings) sum = sum * 31 + s.size();
  return sum;
}

static void streams() {
  std::ostringstream out;
  for (int i = 0; i < 20000; ++i) out << "a piece of text, number " << i << '\n';
  const std::string text = out.str();
  CHECK_SPILLED(text.data());
  std::stringstream both;
  both << text << text;
  both.seekg((std::streamoff)text.size());
  std::string line(24, 'x');
  uint64_t sum = 0;
  while (both.read(&line[0], 24)) {
    int number = 0;
    both >> number;
    sum = sum * 31 + (uint64_t)number;
    both.get();
  }
  both.clear();
  both.seekp(0);
  both << "start";
  CHECK(both.str().compare(0, 5, "start") == 0 && both.str().size() == 2 * text.size());
  printf("%zu %llu\n", text.size(), (unsigned long long)sum);
}

static void keys() {
  std::unordered_map<std::string, int> counts;
  uint64_t random = 5;
  for (int i = 0; i < 6000; ++i)
    ++counts["a key that is longer than a short string " + std::to_string(next_random(&random) % 2500)];
  std::vector<const std::string*> order;
  for (const auto& [key, count] : counts) order.push_back(&key);
  uint64_t sum = 0;
  for (const std::string* key : order)
    sum = sum * 31 + (uint64_t)counts[*key] + std::hash<std::string>()(*key);
  printf("%zu %llu\n", counts.size(), (unsigned long long)sum);
}

int main() {
  uint64_t random = 6;
  printf("%llu\n", (unsigned long long)grow("a piece of text to make strings of", &random));
  streams();
  keys();
  return 0;
}
