// libcuckoo's map beside the index, as its own benchmark uses it: 8-byte keys and values, a lock for each access.
#include <sys/mman.h>
#include <libcuckoo/cuckoohash_map.hh>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "cases.h"

// An allocator of memory as the index has it: in large OS pages, if the system has any.
template <class T>
class LargePages {
 public:
  using value_type = T;

  LargePages() = default;
  template <class Other>
  LargePages(const LargePages<Other>&) noexcept {}

  T* allocate(size_t count) {
    constexpr size_t kLargePageBytes = size_t{2} << 20;
    const bool is_large = count * sizeof(T) >= kLargePageBytes;
    const size_t alignment = is_large ? kLargePageBytes : std::max(alignof(T), alignof(std::max_align_t));
    const size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, bytes);
    if (memory == nullptr) cases::fail("libcuckoo");
    if (is_large) madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) noexcept { std::free(memory); }

  template <class Other>
  bool operator==(const LargePages<Other>&) const noexcept {
    return true;
  }
};

class Map {
 public:
  Map(uint64_t keys, bool sized) {
    if (sized) map_.reserve(keys);
  }
  uint64_t insert(uint64_t begin, uint64_t end) {
    uint64_t done = 0;
    for (uint64_t number = begin; number < end; ++number) done += map_.insert(cases::key_of(number), number);
    return done;
  }
  uint64_t look_up(unsigned thread, uint64_t keys, uint64_t count, bool) {
    uint64_t state = thread, found = 0, value = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t number = cases::random_below(state, keys);
      found += map_.find(cases::key_of(number), value) && value == number;
    }
    return found;
  }

 private:
  libcuckoo::cuckoohash_map<uint64_t, uint64_t, std::hash<uint64_t>, std::equal_to<uint64_t>,
                            LargePages<std::pair<const uint64_t, uint64_t>>>
      map_;
};

int main(int count, char** words) { return cases::run<Map>(count, words); }
