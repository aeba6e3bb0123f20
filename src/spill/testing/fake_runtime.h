// Spilled memory for unit tests of the interceptors, without a cache: pages in the real address range,
// each in a frame of its own, no two neighbours side by side.
//
//   what is caught                                       how
//   a spilled address dereferenced                       the range is inaccessible: SIGSEGV
//   a page touched that belongs to no allocation         spillway_translate ends the process
//   a raw pointer used after its slot was let go         with moving on, each translation may move
//                                                        other pages and poisons the frames they leave
//   a slot held, a pin kept across the interceptor       expect_nothing_held()
#pragma once
#include <cstddef>
#include <cstdint>

namespace fake {

// Once per process; every thread that touches spilled memory calls enter_thread() first.
void start();
void enter_thread();

// `bytes` of spilled memory whose first byte is `offset` bytes into a page. The pages before and after
// belong to nothing. Never freed.
char* allocate(size_t bytes, size_t offset);

// Whether translations move pages. REQUIRES for true: one thread.
void set_moving(bool moving);

// Ends the process when the calling thread holds a slot or a pin is left.
void expect_nothing_held();

uint64_t translations();

}  // namespace fake
