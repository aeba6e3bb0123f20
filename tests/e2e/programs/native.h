// What programs share that run as code with two bodies does: functions marked NATIVE are not instrumented, and go on as long as
// native() says so at the heads of their loops; instrumented twins do the rest.
#pragma once
#include "e2e.h"

// As objects with native bodies say of themselves.
const char __spillway_has_native_bodies = 1;

#define NATIVE __attribute__((annotate("spill_none"), noinline))

#ifdef SPILLED
#define native() (*(const volatile unsigned char*)kNativeBodies != 0)
#else
#define native() 0
#endif

// Both make the same of n words, from the seed on.
NATIVE static size_t fill_native(uint64_t* words, size_t begin, size_t end, uint64_t seed) {
  for (; begin < end && native(); ++begin) words[begin] = seed ^ begin * 0x9e3779b97f4a7c15;
  return begin;
}
static void fill(uint64_t* words, size_t begin, size_t end, uint64_t seed) {
  for (begin = fill_native(words, begin, end, seed); begin < end; ++begin)
    words[begin] = seed ^ begin * 0x9e3779b97f4a7c15;
}
static size_t wrong_words(const uint64_t* words, size_t begin, size_t end, uint64_t seed) {
  size_t wrong = 0;
  for (; begin < end; ++begin) wrong += words[begin] != (seed ^ begin * 0x9e3779b97f4a7c15);
  return wrong;
}
// The same by native code, whatever the byte says: by the fault path once it is 0.
NATIVE static size_t wrong_words_native(const uint64_t* words, size_t begin, size_t end, size_t step,
                                        uint64_t seed) {
  size_t wrong = 0;
  for (; begin < end; begin += step) wrong += words[begin] != (seed ^ begin * 0x9e3779b97f4a7c15);
  return wrong;
}
NATIVE static void store_native(uint64_t* word, uint64_t value) { *word = value; }
NATIVE static uint64_t load_native(const uint64_t* word) { return *(const volatile uint64_t*)word; }
