// The standard library's containers, algorithms, strings, function objects and memory resources.
// chaos: 2
// expect: cache.evictions>=2000
#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <queue>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
#include "e2e.h"

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
  std::string name;
};
struct Square : Shape {
  explicit Square(double side) : side_(side) { name = "square of side " + std::to_string(side); }
  double area() const override { return side_ * side_; }
  double side_;
};
struct Wide : Shape {
  explicit Wide(double a) : a_(a) { name = "rectangle"; }
  double area() const override { return a_ * 2 * a_; }
  double a_;
  char filler[700];
};

int main() {
  uint64_t random = 11;
  std::vector<uint64_t> numbers(100000);
  CHECK_SPILLED(numbers.data());
  for (auto& n : numbers) n = next_random(&random) % 1000000;
  std::vector<uint64_t> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  CHECK(std::is_sorted(sorted.begin(), sorted.end()));
  std::stable_sort(numbers.begin(), numbers.end(), [](auto a, auto b) { return a % 1000 < b % 1000; });
  CHECK(std::accumulate(sorted.begin(), sorted.end(), uint64_t{0}) ==
        std::accumulate(numbers.begin(), numbers.end(), uint64_t{0}));
  printf("%llu %llu\n", (unsigned long long)sorted[50000], (unsigned long long)numbers[50000]);
  numbers.clear();
  numbers.shrink_to_fit();

  std::map<std::string, int> words;
  std::unordered_map<std::string, std::vector<int>> places;
  for (int i = 0; i < 8000; ++i) {
    std::string word = "word " + std::to_string(next_random(&random) % 3000);
    ++words[word];
    places[word].push_back(i);
  }
  size_t total = 0;
  for (auto& [word, count] : words) {
    CHECK(places[word].size() == static_cast<size_t>(count));
    total += word.size() * count;
  }
  printf("%zu words, %zu, first '%s' last '%s'\n", words.size(), total, words.begin()->first.c_str(),
         words.rbegin()->first.c_str());
  words.erase(words.lower_bound("word 2"), words.end());
  printf("%zu left\n", words.size());

  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < 3000; ++i) {
    if (i % 3 != 0)
      shapes.push_back(std::make_unique<Square>(i));
    else
      shapes.push_back(std::make_unique<Wide>(i));
  }
  double area = 0;
  for (auto& shape : shapes) area += shape->area();
  printf("%.0f %s\n", area, shapes[1000]->name.c_str());
  auto* square = dynamic_cast<Square*>(shapes[1].get());
  CHECK(square != nullptr && dynamic_cast<Wide*>(shapes[1].get()) == nullptr);

  std::vector<std::function<long(long)>> functions;
  for (long i = 0; i < 5000; ++i) {
    std::string held = "held by function " + std::to_string(i);
    functions.push_back([held, i](long x) { return x * 31 + i + static_cast<long>(held.size()); });
  }
  long value = 1;
  for (auto& function : functions) value = function(value) % 1000003;
  printf("%ld\n", value);

  std::deque<std::string> queue;
  std::list<std::string> list;
  for (int i = 0; i < 4000; ++i) {
    queue.push_back("an entry that is on the heap " + std::to_string(i));
    if (i % 3 == 1) queue.pop_front();
    list.push_front(queue.back());
  }
  list.sort();
  list.unique();
  printf("%zu %s %s\n", queue.size(), queue.front().c_str(), list.front().c_str());
  std::priority_queue<std::pair<int, std::string>> heap;
  for (int i = 0; i < 5000; ++i)
    heap.emplace(static_cast<int>(next_random(&random) % 100000), std::to_string(i));
  int last = 1 << 30;
  while (!heap.empty()) {
    CHECK(heap.top().first <= last);
    last = heap.top().first;
    heap.pop();
  }

  // Strings above the short form, through code that libstdc++ brings compiled.
  std::string text;
  for (int i = 0; i < 6000; ++i) text += "line " + std::to_string(i) + " of a long text\n";
  CHECK_SPILLED(text.data());
  CHECK(text.find("line 5999") != std::string::npos);
  text.replace(text.find("line 3000"), 9, "a much longer replacement");
  text.insert(text.size() / 2, text.substr(100, 5000));
  printf("%zu %zu\n", text.size(),
         std::hash<std::string>{}(text) != 0 ? std::count(text.begin(), text.end(), '\n') : 0);
  std::ostringstream stream;
  for (int i = 0; i < 3000; ++i) stream << i << ' ' << i * 0.5 << ',';
  std::istringstream back(stream.str());
  int first;
  double second;
  char comma;
  double sum = 0;
  while (back >> first >> second >> comma) sum += first + second;
  printf("%.1f\n", sum);

  std::pmr::unsynchronized_pool_resource pool;
  std::pmr::monotonic_buffer_resource monotonic(&pool);
  std::pmr::map<int, std::pmr::string> in_pool(&pool);
  std::pmr::vector<std::pmr::string> in_buffer(&monotonic);
  for (int i = 0; i < 4000; ++i) {
    in_pool.emplace(i * 7919 % 4001, "a string in a memory resource");
    in_buffer.emplace_back("another string in a memory resource");
  }
  size_t bytes = 0;
  for (auto& [key, string] : in_pool) bytes += string.size() + key % 2;
  for (auto& string : in_buffer) bytes += string.size();
  CHECK_SPILLED(in_buffer.data());
  printf("%zu\n", bytes);
  auto shared = std::make_shared<std::vector<int>>(1000, 3);
  std::weak_ptr<std::vector<int>> weak = shared;
  CHECK(weak.lock()->at(999) == 3);
  shared.reset();
  CHECK(weak.expired());
  return 0;
}
