// What the tests at a page's edge share: three pages, and a plain model of what they hold.
#pragma once
#include "e2e.h"

static unsigned char model[3 * 4096];

static unsigned char value_of(size_t i, unsigned round) {
  return (unsigned char)(i * 131 + (i >> 8) * 17 + round * 29);
}

// One aligned window of three pages, its content and the model's equal at the start of each check.
static void fill(unsigned char* window, unsigned round) {
  for (size_t i = 0; i < sizeof model; ++i) window[i] = model[i] = value_of(i, round);
}
static void compare(unsigned char* window, size_t at) {
  for (size_t i = at - 64; i < at + 128; ++i) {
    if (window[i] != model[i]) printf("offset %zu byte %zu: %d, not %d\n", at, i, window[i], model[i]);
    CHECK(window[i] == model[i]);
  }
}
