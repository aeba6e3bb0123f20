// fork: the child sees its parent's memory as it was.
//
//   1 before fork, after all handlers of the program: the cache is frozen (no page comes or goes) and a pipe and
//     a word of shared memory are made
//   2 child: its pool becomes inaccessible; a page that it loads from is copied from the parent's while
//     the word does not say "thawed" (copy_for_child). It says that it copies, so that 4 waits
//   3 parent: waits until the child's end of the pipe is closed, by exec or by its end, at most
//     kPatienceMs
//   4 parent: says "thawed", waits for a copy under way, thaws the cache
//
// So a child that execs soon reads all that it needs, and one that goes on never reads what its parent changed
// or threw out: it ends with one line when it needs a page that it has not copied, or stores.
//
// Thread contract: forks of several threads follow each other, since step 1 takes the cache's locks.
#pragma once
#include <cstdint>

namespace spill {

// Once, at the start, before anybody else asks to be told of forks: step 1 comes last of all then.
void watch_forks();

// In a child: makes the OS page of `address`, in a pool, the child's own. Returns false when it is too late, or
// the address is in no pool. Async-signal-safe.
bool copy_for_child(uint64_t address);

}  // namespace spill
