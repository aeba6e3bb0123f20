// Pages that are mapped at their own addresses, for code that was not compiled by spillcc. Such a page is resident and pinned, and its
// frame is mapped a second time, at the spilled address itself: it is the same memory, so that both views agree.
//
//   mapped   by the fault path (fault.h); stays until as many other pages as the limit says were mapped after it
//   kept     part of a stack that the program made; stays until its memory is freed
//
// Both kinds are changed under one lock, the lock of mappings. Each OS page of such a page has the access that protection.h says; where the
// kernel has a mapping of its own, nothing is mapped over it.
#pragma once
#include <cstdint>

#include "base/ids.h"

namespace spill {

// Sets how many pages may be mapped at a time, from the options and the budget: 2 or more, not counting those that are kept. To be called
// again whenever the budget has changed: pages beyond the new limit are unmapped.
void adjust_mapped_pages();
// How many pages are kept, and how many others may be mapped.
uint64_t kept_page_count();
uint64_t most_mapped_pages();

// Maps the page of `address` for code at `site`, which the statistics count. REQUIRES: in_range, allocated. May
// block and do I/O; ends the process on a storage error.
void map_at_own_address(uint64_t address, uint64_t site);

// Removes every mapping within [address, address + bytes), before its addresses are freed.
void unmap_range(uint64_t address, uint64_t bytes);

// The same, and calls f(context) before anything can be mapped there again.
void hand_over(uint64_t address, uint64_t bytes, void (*f)(void* context), void* context);

// Unmaps the pages that touch [address, address + bytes), except those that are kept; then calls f(context), which may change protections,
// and applies these to the pages that are kept. All of it under the lock of mappings (protection.h), so that nothing is mapped meanwhile.
void change_mappings(uint64_t address, uint64_t bytes, void (*f)(void* context), void* context);

// Keeps [address, address + bytes) in memory and mapped at its own address until it is freed: a stack that
// the program made, whose accesses are not translated, and on which the kernel must be able to put a
// signal's frame. Returns false when that would take more than half of the frames, or leave too few beside
// others' pins (count_as_staying), or a table is full.
// REQUIRES: allocated. May block and do I/O; ends the process on a storage error.
bool keep_mapped(uint64_t address, uint64_t bytes);
// Before [address, address + bytes) is freed: ends keep_mapped for what lies within. Cost: one load when
// nothing is kept.
void end_kept(uint64_t address, uint64_t bytes);
// Is any page that touches [address, address + bytes) kept?
bool keeps_any(uint64_t address, uint64_t bytes);

// Fork. freeze_mappings unmaps all pages that are not kept; until thaw_mappings none is mapped or unmapped. In the child own_kept_pages makes
// the kept ones its own, while the parent waits (if keeps_pages).
void freeze_mappings();
void thaw_mappings();
// Whether the page lies in a range of keep_mapped. REQUIRES: between freeze_mappings and thaw_mappings.
bool is_kept(base::PageId page);
bool keeps_pages();
void own_kept_pages();

}  // namespace spill
