// The C++ library's templates over spilled memory.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

static uint64_t state = 12345;
static uint64_t random_u64() {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return state >> 11;
}

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Square : Shape {
  explicit Square(double s) : side(s) {}
  double area() const override { return side * side; }
  double side;
};
struct Circle : Shape {
  explicit Circle(double r) : radius(r) {}
  double area() const override { return 3 * radius * radius; }
  double radius;
  char padding[37] = {};
};

static long fibonacci(std::map<int, long>& memo, int n) {
  if (n < 2) return n;
  auto found = memo.find(n);
  if (found != memo.end()) return found->second;
  const long value = (fibonacci(memo, n - 1) + fibonacci(memo, n - 2)) % 1000000007;
  memo[n] = value;
  return value;
}

int main() {
  std::vector<uint32_t> numbers(6000);
  for (auto& n : numbers) n = static_cast<uint32_t>(random_u64() % 100000);
  std::vector<uint32_t> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  std::printf("sorted %d %u %u\n", std::is_sorted(sorted.begin(), sorted.end()), sorted.front(), sorted[777]);
  std::stable_sort(numbers.begin(), numbers.end(), [](uint32_t a, uint32_t b) { return a % 100 < b % 100; });
  std::printf("stable %u %u\n", numbers[5], numbers[5000]);
  std::printf("sum %lu\n", std::accumulate(numbers.begin(), numbers.end(), 0ul));

  std::map<uint32_t, std::string> names;
  std::unordered_map<std::string, int> counts;
  for (int i = 0; i < 1200; ++i) {
    const uint32_t key = static_cast<uint32_t>(random_u64() % 500);
    std::string name = "name-" + std::to_string(key * 7919);
    if (key % 5 == 0) name += " with a tail that needs the heap";
    counts[name]++;
    names[key] = std::move(name);
  }
  size_t length = 0;
  for (const auto& [key, name] : names) length += key * name.size();
  int most = 0;
  for (const auto& [name, count] : counts) most = std::max(most, count);
  std::printf("maps %zu %zu %zu %d\n", names.size(), counts.size(), length, most);

  std::list<std::pair<int, double>> list;
  for (int i = 0; i < 700; ++i) list.emplace_front(i, i * 0.5);
  list.sort([](const auto& a, const auto& b) { return a.first % 17 < b.first % 17; });
  list.remove_if([](const auto& p) { return p.first % 3 == 0; });
  double total = 0;
  for (const auto& p : list) total = total * 0.5 + p.second;
  std::printf("list %zu %.6f\n", list.size(), total);

  std::deque<int> deque;
  std::priority_queue<int> heap;
  std::set<int> set;
  for (int i = 0; i < 2000; ++i) {
    deque.push_back(static_cast<int>(random_u64() % 1000));
    if (i % 3 == 0) deque.pop_front();
    heap.push(deque.back());
    set.insert(deque.front());
  }
  long top = 0;
  for (int i = 0; i < 100; ++i, heap.pop()) top = top * 3 + heap.top();
  std::printf("queues %zu %ld %zu\n", deque.size(), top, set.size());

  std::vector<std::unique_ptr<Shape>> shapes;
  std::vector<std::shared_ptr<int>> shared;
  for (int i = 0; i < 300; ++i) {
    if (i % 2) {
      shapes.push_back(std::make_unique<Square>(i));
    } else {
      shapes.push_back(std::make_unique<Circle>(i));
    }
    shared.push_back(i % 4 ? shared.back() : std::make_shared<int>(i));
  }
  double area = 0;
  for (const auto& s : shapes) area += s->area();
  long uses = 0;
  for (const auto& s : shared) uses += s.use_count() * *s;
  std::printf("shapes %.1f %ld\n", area, uses);

  std::map<int, long> memo;
  std::printf("fibonacci %ld\n", fibonacci(memo, 300));

  int caught = 0;
  for (int i = 0; i < 50; ++i) {
    try {
      if (i % 7 == 0) throw std::runtime_error("number " + std::to_string(i));
      std::vector<int>(10).at(static_cast<size_t>(i));
    } catch (const std::out_of_range&) {
      caught += 1;
    } catch (const std::exception& e) {
      caught += 100 * static_cast<int>(std::strlen(e.what()));
    }
  }
  std::printf("caught %d\n", caught);

  std::vector<std::vector<std::string>> table(40);
  for (size_t i = 0; i < table.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      table[i].push_back(std::string(i * j % 50, static_cast<char>('a' + j % 26)));
  std::reverse(table.begin(), table.end());
  std::sort(table.begin(), table.end(),
            [](const auto& a, const auto& b) { return a.size() * 7 % 11 < b.size() * 7 % 11; });
  uint64_t hash = 0;
  for (const auto& row : table)
    for (const auto& cell : row)
      for (const char c : cell) hash = hash * 131 + static_cast<unsigned char>(c);
  std::printf("table %lx\n", hash);
  std::function<int(int)> f = [&](int x) { return x < 2 ? 1 : (x * f(x - 1)) % 10007; };
  std::printf("function %d\n", f(100));
}
