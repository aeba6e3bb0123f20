// Where allocate_pages takes memory from.
#pragma once

namespace kernels {

// Pages of a memfd instead of the heap, as Spillway's frames are. The other builds have one kind only.
extern bool use_memfd;

}  // namespace kernels
