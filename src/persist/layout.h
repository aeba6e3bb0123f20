// Layout: where parts lie in one block so that they take few lines. (Ribbon, section 2.3: coalescing; aligned to lines, and what is flushed together
// side by side)
//
// Pure. The parts are flushed together when they are new, so the number of lines counts first; each may be changed alone later, so that a part should not lie
// in one more line than it has to comes second.
#pragma once
#include <cstddef>
#include <span>

namespace persist {

inline constexpr size_t kMaxLayoutParts = 64;

// Sets offsets[i] of part i, from a block's begin that is at a line's. Returns the block's bytes, a multiple of a line.
// 0: the alignment is no power of two up to a line, there are more than kMaxLayoutParts, or the sum is beyond half of what size_t holds.
// REQUIRES: offsets.size() == bytes.size(). Cost: of the square of the number of parts.
size_t lay_out(std::span<const size_t> bytes, size_t alignment, std::span<size_t> offsets);

}  // namespace persist
