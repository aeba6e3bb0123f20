// Layout: where parts lie in one block so that they take few lines. (Ribbon, section 2.3: coalescing; aligned to lines, and what is flushed together
// side by side)
//
// Pure. The number of lines counts first, since the parts are flushed together when they are new. Second, no part should lie in more lines than it has to,
// since each may be changed alone later.
#pragma once
#include <cstddef>
#include <span>

namespace persist {

inline constexpr size_t kMaxLayoutParts = 64;

// Sets offsets[i] of part i, from the beginning of a block that is aligned to a line. Returns the block's bytes, a multiple of a line.
// 0: the alignment is no power of two up to a line, there are more than kMaxLayoutParts, or the sum is beyond half of what size_t holds.
// REQUIRES: offsets.size() == bytes.size(). Cost: quadratic in the number of parts.
size_t lay_out(std::span<const size_t> bytes, size_t alignment, std::span<size_t> offsets);

}  // namespace persist
