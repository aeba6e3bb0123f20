// What writers do in tests of modelled devices: lines, a fence, and again.
#pragma once
#include <vector>

#include "base/mix.h"
#include "persist/model/device_model.h"

namespace persist {

struct TestLoad {
  uint32_t writers = 1;
  uint32_t fence_lines = 4;  // lines before each fence
  bool is_random = false;    // else each writer has a stream of lines in order
  bool is_clean = false;
  double compute_ns = 0;  // between a fence and the next line
};

// The lines of a writer, one after another.
class TestLines {
 public:
  TestLines(const TestLoad& load, uint32_t writer)
      : is_random_(load.is_random), next_(is_random_ ? base::mix(writer) : (uint64_t{writer} << 32)) {}
  uint64_t next() { return is_random_ ? base::mix(next_++) >> 20 : next_++; }

 private:
  bool is_random_;
  uint64_t next_;
};

// Runs the load on the model alone, in the order of time, from 0 on. Returns lines that were fenced in a second.
inline double run_virtually(DeviceModel& model, const TestLoad& load, double duration_ns) {
  struct Writer {
    uint32_t id;
    TestLines lines;
    double now_ns = 0;
    uint32_t since_fence = 0;
  };
  std::vector<Writer> writers;
  for (uint32_t i = 0; i < load.writers; ++i) writers.push_back({model.open_writer(), TestLines(load, i)});
  uint64_t fenced = 0;
  for (;;) {
    Writer* first = &writers[0];
    for (Writer& writer : writers)
      if (writer.now_ns < first->now_ns) first = &writer;
    if (first->now_ns >= duration_ns) break;
    if (first->since_fence < load.fence_lines) {
      first->now_ns = model.flush(first->id, first->lines.next(), !load.is_clean, first->now_ns);
      ++first->since_fence;
      continue;
    }
    first->now_ns = model.fence(first->id, first->now_ns) + load.compute_ns;
    first->since_fence = 0;
    if (first->now_ns <= duration_ns) fenced += load.fence_lines;
  }
  for (const Writer& writer : writers) model.close_writer(writer.id);
  return static_cast<double>(fenced) / duration_ns * 1e9;
}

}  // namespace persist
