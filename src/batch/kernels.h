// Kernels: the loops that do a job on buckets, each way of searching and fetching ahead compiled for the shapes that are common.
#pragma once
#include "batch/buckets.h"
#include "batch/job.h"

namespace batch {

// Does the job's keys from `from` on, in their order: returns how many of the job are done. Less than all: the next one's record finds no room
// from its home on. REQUIRES: the spread has all keys.
using Run = size_t (*)(const Buckets& buckets, Job& job, size_t from);

struct Kernels {
  // Of a table that several use, and of one that nobody but the caller does, for whom no bucket is locked.
  struct Pair {
    Run shared = nullptr;
    Run alone = nullptr;
  };
  Run linear = nullptr;  // one key after the other, and of its bucket one record, until it is found
  // One key after the other; of a bucket a line at a time, by vectors where the CPU has them, as those that follow.
  Run direct = nullptr;
  Pair prefetch;  // buckets are fetched some keys ahead
  Pair tagged;  // tags are fetched ahead, and then the lines of those records that they tell; REQUIRES: tags
};

// The fastest that this CPU has.
Kernels choose_kernels(const Shape& shape);

// A part of it: for CPUs with AVX2. Shapes for which it has no vectors are left alone.
void choose_avx2_kernels(const Shape& shape, Kernels& kernels);

}  // namespace batch
