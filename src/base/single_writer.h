// Counts that one thread at a time changes, and that any thread may read. Benchmarks include this header with other compilers: it needs only C++20.
#pragma once
#include <atomic>

namespace base {

// Cost: a plain addition. Relaxed: a count, which orders nothing.
template <class Number>
void increase(std::atomic<Number>& count, Number by) {
  count.store(count.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace base
