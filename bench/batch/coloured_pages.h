// Memory in OS pages of chosen colours. A colour is where in a cache the lines of a page have their places: pages of different colours never take each other's.
// It is given by the page's address, physical, or, for who simulates a cache by the addresses that a program sees, virtual.
// (cache-aware batch update, section 4.5)
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace load {

inline constexpr uint64_t kPageBytes = 4096;

// Zeros, in pages that need not be neighbours.
class PagedMemory {
 public:
  PagedMemory() = default;
  explicit PagedMemory(std::vector<std::byte*> pages) : pages_(std::move(pages)) {}
  // REQUIRES: what is looked at there ends on the same page.
  std::byte* at(uint64_t offset) const { return pages_[offset / kPageBytes] + offset % kPageBytes; }
  std::span<std::byte* const> pages() const { return pages_; }

 private:
  std::vector<std::byte*> pages_;
};

enum class Address { kVirtual, kPhysical };

// Small OS pages, taken from front to back, or by their colours. They stay until the process ends.
class PagePool {
 public:
  // Of so many pages, of which each has memory if physical addresses are asked for. Null: there is no memory, or the system does not tell where
  // pages are.
  static std::optional<PagePool> open(uint64_t count, Address address, uint64_t colour_count) {
    void* const mapped =
        mmap(nullptr, count * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED || madvise(mapped, count * kPageBytes, MADV_NOHUGEPAGE) != 0) return {};
    PagePool pool;
    pool.colour_count_ = colour_count;
    auto* const begin = static_cast<std::byte*>(mapped);
    for (uint64_t i = 0; i < count; ++i) pool.free_.push_back(begin + i * kPageBytes);
    for (std::byte* const page : pool.free_)
      pool.frames_.push_back(reinterpret_cast<uintptr_t>(page) / kPageBytes);
    if (address == Address::kPhysical && !pool.find_frames()) return {};
    return pool;
  }

  // So many of the next pages whose colour is in [begin, end). Null: there are too few.
  std::optional<PagedMemory> take(uint64_t count, uint64_t begin, uint64_t end) {
    std::vector<std::byte*> taken;
    for (size_t i = 0; i < free_.size() && taken.size() < count; ++i) {
      const uint64_t colour = frames_[i] % colour_count_;
      if (free_[i] == nullptr || colour < begin || colour >= end) continue;
      taken.push_back(free_[i]);
      free_[i] = nullptr;
    }
    if (taken.size() < count) return {};
    return PagedMemory(std::move(taken));
  }
  // What nobody has taken has no memory any more.
  void drop_rest() {
    for (std::byte* const page : free_)
      if (page != nullptr) madvise(page, kPageBytes, MADV_DONTNEED);
    free_.clear();
  }

 private:
  // By /proc/self/pagemap, which tells the numbers of frames to root only.
  bool find_frames() {
    const int file = open_pagemap();
    if (file < 0) return false;
    bool are_known = true;
    for (size_t i = 0; are_known && i < free_.size(); ++i) {
      *free_[i] = std::byte{0};  // now it has memory
      uint64_t entry = 0;
      are_known =
          pread(file, &entry, sizeof entry, static_cast<off_t>(frames_[i] * sizeof entry)) == sizeof entry;
      constexpr uint64_t kFrameBits = (uint64_t{1} << 55) - 1;
      frames_[i] = entry & kFrameBits;
      are_known = are_known && frames_[i] != 0;
    }
    close(file);
    return are_known;
  }
  static int open_pagemap() { return ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC); }

  uint64_t colour_count_ = 1;
  std::vector<std::byte*> free_;  // null: taken
  std::vector<uint64_t> frames_;  // by which addresses are the colours
};

}  // namespace load
