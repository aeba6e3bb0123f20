// Caches that are one set: the policies that set-associative ones are compared with, and what no policy can do better than. Each counts
// the hits of a whole trace with room for `size` pages.
//
//   lru      the page that was used longest ago goes
//   clock    a queue; who leaves it and was used since it entered, enters again (one bit)
//   2q       A1in, a queue of a quarter; A1out, what left it: as many as half of the pages; Am, by lru, is entered from A1out
//            (Johnson, Shasha: 2Q, VLDB 1994, "2Q full version")
//   s3fifo   small, a queue of a tenth; ghosts, what left it: as many as nine tenths; main (SOSP 2023, section 4)
//   sieve    a queue with a hand that goes from old to new, and takes who was not used since it passed (NSDI 2024, section 3)
//   linux    two lists: inactive, where pages enter and leave, and active, which a page enters at its second use, the first being what brought it; the oldest of
//            active goes back when those are more. What Linux's page cache approximates CLOCK-Pro by, without pages that are not resident
//            (mark_page_accessed and shrink_active_list of 3.2), as the paper of set-associative caches re-implemented it
//   opt      the page that is used again last goes (Belady 1966)
#pragma once
#include <span>
#include <string_view>

#include "hitrate/trace.h"

namespace hitrate {

struct WholePolicy {
  std::string_view name;
  uint64_t (*count_hits)(const Trace& trace, uint64_t size);
};
std::span<const WholePolicy> whole_policies();

}  // namespace hitrate
