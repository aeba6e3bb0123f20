// Pages that are mapped at their own addresses, for code that was not compiled by spillcc: a page that is mapped is resident,
// pinned, and its frame is mapped a second time, at the spilled address itself: the same memory, so both views agree.
//
//   mapped   by the fault path (fault.h); stays until as many others as the limit says were mapped after it
//   kept     stacks that the program made; stays until its memory is freed
//
// Both are changed under one lock, that of mappings. A page's parts have the access that protection.h says; parts that are
// the kernel's own mappings are left alone.
#pragma once
#include <cstdint>

#include "base/ids.h"

namespace spill {

// Sets how many pages may be mapped at one time, as options and budget say, at least 2; kept ones are not counted. Again whenever the
// budget has changed: those beyond go.
void adjust_mapped_pages();
// How many are kept, and how many of others may be mapped.
uint64_t kept_page_count();
uint64_t most_mapped_pages();

// Maps the page of `address` for code at `site`, which the statistics count. REQUIRES: in_range, allocated. May
// block and do I/O; ends the process on a storage error.
void map_at_own_address(uint64_t address, uint64_t site);

// Takes every mapping within [address, address + bytes) away, before its addresses are freed.
void unmap_range(uint64_t address, uint64_t bytes);

// Takes every mapping within [address, address + bytes) away and calls f(context), before anything is mapped again.
void hand_over(uint64_t address, uint64_t bytes, void (*f)(void* context), void* context);

// What is mapped of pages that touch [address, address + bytes), but for what is kept, goes; then f(context) may change
// protections, and what is kept gets them. Nothing is mapped meanwhile: this is the lock of mappings (protection.h).
void change_mappings(uint64_t address, uint64_t bytes, void (*f)(void* context), void* context);

// Keeps [address, address + bytes) in memory and mapped at its own address until it is freed: a stack that
// the program made, whose accesses are not translated, and on which the kernel must be able to put a
// signal's frame. Returns false when that would take more than half of the frames (three quarters
// with what satc.h pins), or a table is full.
// REQUIRES: allocated. May block and do I/O; ends the process on a storage error.
bool keep_mapped(uint64_t address, uint64_t bytes);
// Before [address, address + bytes) is freed: ends keep_mapped for what lies within. Cost: one load when
// nothing is kept.
void end_kept(uint64_t address, uint64_t bytes);
// Is something kept of a page that touches [address, address + bytes)?
bool keeps_any(uint64_t address, uint64_t bytes);

// Fork. Between the first and one of the others nothing is mapped or unmapped; before it, all that is not kept is
// unmapped. In the child what is kept becomes its own (own_kept_pages, while the parent waits if keeps_pages).
void freeze_mappings();
void thaw_mappings();
// Whether the page lies in a range of keep_mapped. REQUIRES: between freeze_mappings and thaw_mappings.
bool is_kept(base::PageId page);
bool keeps_pages();
void own_kept_pages();

}  // namespace spill
