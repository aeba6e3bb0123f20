// Traces made from a seed, the same on every machine: YCSB's user-profile load over a B-tree, as the paper measured it
// (set-associative page cache, evaluation), at a tenth of its size, and what a cache has trouble with.
//
//   name        accesses
//   zipfleaf    3.9 million: an item of 3 million, by YCSB's Zipf law with exponent 0.99; its page, one of 574,882, by a hash of it
//   zipf        3 million such, and before 30.6 % of them one to an inner node above the page: 23 % of all
//   zipfscan    zipfleaf, and 12 times a scan of 70,000 pages that nothing else uses
//   zipfshift   3.9 million of half as many items on half as many pages; seven times each item's popularity goes to another, 8,000
//               further on
//   loop        half a million: 1,011 pages in turn
//
// NAME/N is one with an N-th of everything.
#pragma once
#include <string_view>

#include "base/error.h"
#include "hitrate/trace.h"

namespace hitrate {

// Accesses behind the first `most` are dropped; 0: none are. Errors: EINVAL, with all names that there are.
base::Expected<Trace> generate(std::string_view name, uint64_t most = 0);

}  // namespace hitrate
