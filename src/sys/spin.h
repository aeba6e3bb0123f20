// Waiting for a word that is held for some nanoseconds only: a sleep in the kernel takes many times as long.
#pragma once
#include <immintrin.h>
#include <sched.h>

namespace sys {

// What a loop that has looked `spins` times in vain does before it looks again.
inline void spin(int spins) {
  constexpr int kSpins = 200;
  if (spins < kSpins) {
    _mm_pause();
  } else {
    sched_yield();  // the holder may be waiting for a CPU
  }
}

}  // namespace sys
