// For tests: an Io with memory of its own.
#pragma once
#include <stdlib.h>

#include <cstring>
#include <vector>

#include "base/mix.h"
#include "storage/device.h"

namespace storage {

inline constexpr size_t kBlock = 4096;

// An Io with memory of its own; fill() writes a pattern that tells which bytes of the medium they are.
struct TestIo {
  explicit TestIo(Operation operation, uint64_t offset, std::vector<size_t> lengths) {
    for (size_t length : lengths) io.length_bytes += length;
    void* memory = nullptr;
    if (posix_memalign(&memory, kBlock, io.length_bytes) != 0) abort();
    bytes = static_cast<unsigned char*>(memory);
    memset(bytes, 0xee, io.length_bytes);
    size_t at = 0;
    for (size_t length : lengths) {
      segments.push_back({bytes + at, length});
      at += length;
    }
    io.operation = operation;
    io.offset_bytes = offset;
    io.segments = segments.data();
    io.segment_count = static_cast<uint32_t>(segments.size());
    io.owner = this;
    io.done = [](Io& done) { ++static_cast<TestIo*>(done.owner)->done_count; };
  }
  ~TestIo() { free(bytes); }
  TestIo(const TestIo&) = delete;

  static unsigned char pattern(uint64_t offset, unsigned seed) {
    // Bytes of one place under two seeds below 256 always differ.
    return static_cast<unsigned char>((base::spread(offset) >> 56) ^ (seed * 37));
  }
  void fill(unsigned seed) {
    for (size_t i = 0; i < io.length_bytes; ++i) bytes[i] = pattern(io.offset_bytes + i, seed);
  }
  // The first byte that differs from fill(seed), or the length.
  size_t first_difference(unsigned seed) const {
    size_t i = 0;
    while (i < io.length_bytes && bytes[i] == pattern(io.offset_bytes + i, seed)) ++i;
    return i;
  }

  Io io;
  unsigned char* bytes = nullptr;
  std::vector<iovec> segments;
  int done_count = 0;
};

}  // namespace storage
