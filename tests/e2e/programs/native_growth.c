// Data that native code fills until memory is full, and instrumented code from there on, in the middle of a loop: both find what
// the other one stored, also when native code goes on afterwards.
// levels: O2
// spillcc: -DSPILLED
// memory: 24M
// chaos: 6
// expect: spill.native_ms>=1 spill.native_end>=1 cache.regions_mapped>=6 cache.regions_unmapped>=1 cache.evictions>=1000
#include "native.h"

enum { kBlocks = 10, kWords = 1 << 20, kStep = 4096 / 8 * 7 + 1 };

int main(void) {
  uint64_t* blocks[kBlocks];
  CHECK(!runs_spilled() || getenv("SPILLWAY_CHAOS") != NULL || native());
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(kWords * sizeof(uint64_t));
    CHECK_SPILLED(blocks[i]);
    fill(blocks[i], 0, kWords, i);
    // What was there before is there still, in both ways.
    CHECK(wrong_words_native(blocks[i / 2], i, kWords, kStep, i / 2) == 0);
    CHECK(wrong_words(blocks[i], 0, kWords, i) == 0);
  }
  for (int i = 0; i < kBlocks; ++i) CHECK(wrong_words(blocks[i], 0, kWords, i) == 0);
  CHECK(!runs_spilled() || !native());
  // Native code that goes on after the end, and changes what may be on storage.
  for (int i = 0; i < kBlocks; ++i)
    for (size_t at = i; at < kWords; at += kStep * 9) store_native(&blocks[i][at], ~at);
  for (int i = 0; i < kBlocks; ++i)
    for (size_t at = i; at < kWords; at += kStep * 9) {
      CHECK(blocks[i][at] == ~at);
      blocks[i][at] = i ^ at * 0x9e3779b97f4a7c15;
    }
  for (int i = 0; i < kBlocks; ++i) CHECK(wrong_words(blocks[i], 0, kWords, i) == 0);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  puts("all there");
}
