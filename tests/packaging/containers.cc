// Containers whose memory is spilled, whatever their size: made, copied, compared and joined. Exit status 0: all is as with std::allocator.
#include <spillway/spill.hpp>

#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

template <class T>
using Vector = std::vector<T, spillway::allocator<T>>;
template <class Key, class T>
using Map = std::map<Key, T, std::less<Key>, spillway::allocator<std::pair<const Key, T>>>;
template <class T>
using List = std::list<T, spillway::allocator<T>>;
using String = std::basic_string<char, std::char_traits<char>, spillway::allocator<char>>;

}  // namespace

int main() {
  const Vector<int> numbers(100'000, 7);
  Vector<int> copied_numbers;
  copied_numbers = numbers;
  Map<int, Vector<int>> map, copied_map;
  map[1] = numbers;
  copied_map = map;
  List<String> list{"a", String(1000, 'b')}, more{"c"}, copied_list;
  list.splice(list.end(), more);
  copied_list = list;
  const spillway::allocator<int> one{};
  const bool are_equal =
      one == spillway::allocator<double>(one) && !(one != spillway::allocator<double>(one));
  const bool are_copies = copied_numbers == numbers && copied_map == map && copied_list == list;
  return are_copies && are_equal && list.size() == 3 ? 0 : 1;
}
