// What madvise means for spilled memory, in compiled programs and in preload mode.
#pragma once
#include <sys/mman.h>

namespace spill {

//   kForget    the content is dropped
//   kWillNeed  what is not in memory begins to be loaded
//   kPattern   how much is read ahead of a miss
//   kNothing   concerns the kernel's paging, which spilled memory is not subject to
//   kRefused   EINVAL: what it promises would not hold, or the advice is unknown
enum class Advice { kForget, kWillNeed, kPattern, kNothing, kRefused };

inline Advice meaning_of_advice(int advice) {
  switch (advice) {
    case MADV_DONTNEED:
    case MADV_DONTNEED_LOCKED:
    case MADV_FREE: return Advice::kForget;
    case MADV_WILLNEED:
    case MADV_POPULATE_READ: return Advice::kWillNeed;
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL: return Advice::kPattern;
    case MADV_DOFORK:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_KEEPONFORK:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case MADV_POPULATE_WRITE: return Advice::kNothing;
    // Known advice that is refused: MADV_REMOVE is not for private memory; MADV_DONTFORK and MADV_WIPEONFORK change what a
    // child of fork finds; MADV_COLLAPSE and guards concern the kernel's own pages.
    default: return Advice::kRefused;
  }
}

}  // namespace spill
