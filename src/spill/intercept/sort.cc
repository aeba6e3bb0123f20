// qsort and bsearch: the comparator gets the addresses that the program knows, and nothing is held while
// it runs. Large arrays are sorted here even when they are plain, because the C library would allocate as much
// memory again from the heap, which may be spilled, and fault on it page by page.
//
// The order of equal elements is that of the C library's merge sort (2.36): programs rely on it unknowingly.
#include <stdlib.h>

#include "spill/intercept/intercept.h"

namespace spill {
namespace {

constexpr size_t kLibrarySortBytes = 16 << 10;  // arrays up to here, when plain, are the C library's
constexpr size_t kStackBytes = 1 << 10;

using Compare = int(const void*, const void*, void*);

class Sorter {
 public:
  Sorter(size_t size, Compare* compare, void* context) : size_(size), compare_(compare), context_(context) {}

  // Stable. `spare` has room for all n elements.
  void merge_sort(char* elements, size_t n, char* spare) const {
    if (n <= 1) return;
    const size_t left_count = n / 2;
    char* right = elements + left_count * size_;
    merge_sort(elements, left_count, spare);
    merge_sort(right, n - left_count, spare);
    merge(elements, left_count, right, n - left_count, spare);
  }

  // Not stable, but needs no memory: for when none can be had.
  void heap_sort(char* elements, size_t n) const {
    for (size_t i = n / 2; i-- > 0;) sift_down(elements, i, n);
    for (size_t end = n; end-- > 1;) {
      swap(elements, elements + end * size_);
      sift_down(elements, 0, end);
    }
  }

 private:
  void merge(char* elements, size_t left_count, char* right, size_t right_count, char* spare) const {
    char* left = elements;
    char* to = spare;
    while (left_count > 0 && right_count > 0) {
      if (compare_(left, right, context_) <= 0) {
        copy(to, left, size_);
        left += size_, --left_count;
      } else {
        copy(to, right, size_);
        right += size_, --right_count;
      }
      to += size_;
    }
    // The rest of the right side is in its place already.
    copy(to, left, left_count * size_);
    copy(elements, spare, static_cast<size_t>(to - spare) + left_count * size_);
  }

  void sift_down(char* elements, size_t i, size_t n) const {
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
      char* larger = elements + child * size_;
      if (child + 1 < n && compare_(larger, larger + size_, context_) < 0) ++child, larger += size_;
      if (compare_(elements + i * size_, larger, context_) >= 0) return;
      swap(elements + i * size_, larger);
    }
  }

  void swap(char* a, char* b) const {
    char part_a[256], part_b[256];
    for (size_t at = 0; at < size_; at += sizeof part_a) {
      const size_t n = std::min(sizeof part_a, size_ - at);
      copy(part_a, a + at, n);
      copy(part_b, b + at, n);
      copy(a + at, part_b, n);
      copy(b + at, part_a, n);
    }
  }

  size_t size_;
  Compare* compare_;
  void* context_;
};

void sort(void* elements, size_t n, size_t size, Compare* compare, void* context) {
  size_t bytes;
  if (n <= 1 || size == 0 || __builtin_mul_overflow(n, size, &bytes)) return;
  const Sorter sorter(size, compare, context);
  auto* first = static_cast<char*>(elements);
  if (bytes <= kStackBytes) {
    alignas(16) char spare[kStackBytes];
    sorter.merge_sort(first, n, spare);
  } else if (void* spare = __spill_malloc(bytes)) {
    sorter.merge_sort(first, n, static_cast<char*>(spare));
    __spill_free(spare);
  } else {
    sorter.heap_sort(first, n);
  }
}

}  // namespace
}  // namespace spill

SPILL_EXPORT void __spill_qsort(void* elements, size_t n, size_t size,
                                int (*compare)(const void*, const void*)) {
  if (spill::plain(elements) && n * size <= spill::kLibrarySortBytes)
    return qsort(elements, n, size, compare);
  using Plain = int(const void*, const void*);
  const auto compare_two = [](const void* a, const void* b, void* plain) {
    return reinterpret_cast<Plain*>(plain)(a, b);
  };
  spill::sort(elements, n, size, compare_two, reinterpret_cast<void*>(compare));
}

SPILL_EXPORT void __spill_qsort_r(void* elements, size_t n, size_t size,
                                  int (*compare)(const void*, const void*, void*), void* context) {
  if (spill::plain(elements) && n * size <= spill::kLibrarySortBytes)
    return qsort_r(elements, n, size, compare, context);
  spill::sort(elements, n, size, compare, context);
}

SPILL_EXPORT void* __spill_bsearch(const void* key, const void* elements, size_t n, size_t size,
                                   int (*compare)(const void*, const void*)) {
  auto* first = static_cast<const char*>(elements);
  for (size_t low = 0, high = n; low < high;) {
    const size_t middle = low + (high - low) / 2;
    const char* element = first + middle * size;
    const int order = compare(key, element);
    if (order == 0) return const_cast<char*>(element);
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return nullptr;
}
