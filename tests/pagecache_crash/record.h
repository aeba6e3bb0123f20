// Record: what a file may hold after the process that changes it was killed. It is in a file of its own, which processes map and which outlives
// them.
//
// A process's life begins with what the file holds, the record's image, and lists each change before it is made. Changes of one place are listed in
// the order in which they are made. So a page holds the image with its first n changes, where n is no fewer than were synced.
//
// The record has two sides, each for one life: the side of the next life is filled, and then comes into use by one store.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "base/mix.h"

// Bytes that a range is changed to; each follows from the seed and its offset.
struct Change {
  uint64_t seed = 0;
  uint64_t offset = 0;
  uint32_t bytes = 0;
  std::atomic<uint32_t> life{0};  // the life that listed it, set when the rest is there

  // Sets `to` to the bytes that are to be at the offset `at` of the file.
  void fill(uint64_t at, std::span<std::byte> to) const {
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<std::byte>(base::mix(seed + (at + i) / 8) >> (at + i) % 8 * 8);
  }
  // The same for the part of the range that lies in `to`, which has the file's bytes from `begin` on.
  void apply(uint64_t begin, std::span<std::byte> to) const {
    const uint64_t from = std::max(begin, offset), end = std::min(begin + to.size(), offset + bytes);
    if (from < end) fill(from, to.subspan(from - begin, end - from));
  }
};

struct Record {
  static constexpr uint64_t kPages = 400, kPageBytes = 4096, kDataBytes = kPageBytes - 8;
  static constexpr uint64_t kBytes = kPages * kDataBytes;
  static constexpr uint64_t kMaxChanges = 1 << 20;  // of one life

  struct Side {
    uint32_t life = 0;
    std::atomic<uint64_t> count{0};   // changes listed, or about to be
    std::atomic<uint64_t> synced{0};  // how many of them are durable on the device
    std::byte image[kBytes];
    Change changes[kMaxChanges];
  };

  // Counts of all lives. The script that starts them reads these, too.
  std::atomic<uint64_t> operations{0}, changes{0}, syncs{0}, resizes{0}, errors{0}, written_pages{0},
      damaged{0}, checks{0};
  std::atomic<uint32_t> used{0};  // the current side
  Side sides[2];

  Side& now() { return sides[used]; }
  Side& next() { return sides[1 - used]; }

  // Maps the file at `path`, which it makes if it is not there.
  static Record& open(const char* path) {
    const int descriptor = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(descriptor >= 0);
    CHECK_EQ(ftruncate(descriptor, sizeof(Record)), 0);
    void* const memory = mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    CHECK(memory != MAP_FAILED);
    close(descriptor);
    return *static_cast<Record*>(memory);
  }
};
