// Glossary of the identities that every layer uses (docs/ARCHITECTURE.md, "Nouns").
//
//   OS page   4 KiB of address space or memory, what the MMU maps
//   Page      unit of caching, kOsPageBytes times a power of two, chosen at run time
//   PageId    which page of an address space: byte offset from the space's start / page size
//   FrameId   which frame of a pool: a frame is DRAM that holds one page
//   PlaceId   which page-sized place on storage
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace base {

inline constexpr unsigned kOsPageShift = 12;
inline constexpr size_t kOsPageBytes = size_t{1} << kOsPageShift;
inline constexpr size_t kLineBytes = 64;

enum class PageId : uint64_t {};
enum class FrameId : uint32_t {};
enum class PlaceId : uint32_t {};

template <class Id>
constexpr auto index(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}
constexpr PageId operator+(PageId page, uint64_t n) { return PageId{index(page) + n}; }
constexpr FrameId operator+(FrameId frame, uint32_t n) { return FrameId{index(frame) + n}; }

inline constexpr FrameId kNoFrame{~uint32_t{0}};
inline constexpr PlaceId kNoPlace{~uint32_t{0}};

constexpr uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
constexpr uint64_t round_down(uint64_t value, uint64_t unit) { return value / unit * unit; }

}  // namespace base
