// Waiting for whoever holds a word for some nanoseconds: a sleep in the kernel takes many times as long.
#pragma once
#include <immintrin.h>
#include <sched.h>

namespace sys {

// The next look of a loop that has looked `spins` times in vain.
inline void spin(int spins) {
  constexpr int kSpins = 200;
  if (spins < kSpins) {
    _mm_pause();
  } else {
    sched_yield();  // the holder's CPU is wanted by others
  }
}

}  // namespace sys
