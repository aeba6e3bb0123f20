// How many pages of preload mode should be on their second chance (pager.h).
#pragma once
#include <algorithm>
#include <cstdint>

namespace spill::preload {

// One in this many pages is cooling.
inline constexpr uint32_t kCoolingShare = 8;
// But at most this many more at a time: the kernel moves each of them, and no fault is served meanwhile.
inline constexpr uint32_t kMostCooled = 4096;

// How many pages should be cooling, if `leaving` of up to `allowed` pages are to leave, and `cooling` are cooling now.
constexpr uint32_t cooling_wanted(uint32_t allowed, uint32_t cooling, uint32_t leaving) {
  return std::min(allowed / kCoolingShare, cooling + kMostCooled) + leaving;
}

}  // namespace spill::preload
