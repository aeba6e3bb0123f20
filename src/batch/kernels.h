// Kernels: the loops that do a job on buckets. Each way of searching and of fetching ahead is compiled for the common shapes.
#pragma once
#include "batch/buckets.h"
#include "batch/job.h"

namespace batch {

// Does the job's keys from index `from` on, in their order, and returns how many of the job's keys are done. If these are not all, there is no room for
// the next key's record. REQUIRES: the spread has all keys.
using Run = size_t (*)(const Buckets& buckets, Job& job, size_t from);

struct Kernels {
  // `shared` is for a table that several threads use; `alone` for one that only the caller uses: it locks no buckets.
  struct Pair {
    Run shared = nullptr;
    Run alone = nullptr;
  };
  Run linear = nullptr;  // key after key; a bucket is searched record after record
  // Key after key; a bucket is searched line after line, with vector instructions if the CPU has them. So are those that follow.
  Run direct = nullptr;
  Pair prefetch;  // fetches buckets some keys ahead
  Pair tagged;    // fetches tags ahead, and then the lines of the records whose tags match; REQUIRES: tags
};

// The fastest kernels for this CPU and this shape.
Kernels choose_kernels(const Shape& shape);

// The part of choose_kernels() that is for CPUs with AVX2. Leaves `kernels` unchanged for shapes without a vector search.
void choose_avx2_kernels(const Shape& shape, Kernels& kernels);

}  // namespace batch
