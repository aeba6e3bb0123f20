// How many pages of preload mode are to be on their second chance (pager.h).
#pragma once
#include <algorithm>
#include <cstdint>

namespace spill::preload {

// One in so many pages is cooling.
inline constexpr uint32_t kCoolingShare = 8;
// But no more become so at a time: the kernel moves each, and no fault is served meanwhile.
inline constexpr uint32_t kMostCooled = 4096;

// When `leaving` of up to `allowed` pages are to leave, and `cooling` are cooling now.
constexpr uint32_t cooling_wanted(uint32_t allowed, uint32_t cooling, uint32_t leaving) {
  return std::min(allowed / kCoolingShare, cooling + kMostCooled) + leaving;
}

}  // namespace spill::preload
