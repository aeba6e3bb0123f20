// fork: the child sees its parent's memory as it was, and both go on.
//
//   1 before fork, after all handlers of the program: what is mapped for code not compiled by spillcc is unmapped; the
//     cache is frozen (no page comes or goes), its frames are lent and its places on storage kept (cache.h)
//   2 parent: thaws the cache and goes on
//   3 child: ends what its parent's other threads had begun in the cache, opens workspaces of its own when it needs them, and
//     starts a background thread of its own. It has no servers: most children exec, and servers cost CPU time
//   4 stacks that the program made are the one thing that is shared (keep_mapped): the child moves them to memory of its
//     own, and the parent waits for that in step 2. Until then both run on plain memory, and take no signals
//
// Other threads of the parent are not stopped: what they store before fork returns, the child may have or not, as
// natively.
//
// Every way to a copy of the process comes here: handlers of pthread_atfork for the C library's own, the two
// halves below for the others (intercept/fork.cc). A copy made behind our back has no pool (MADV_DONTFORK).
//
// Thread contract: forks of several threads follow each other, since step 1 takes locks that 2 and 3 let go.
#pragma once

namespace spill {

// To be called once, at the start, before anybody else registers fork handlers: so step 1 comes after all of theirs.
void watch_forks();
// To be called once, after the heap has registered its fork handlers. The C library's fork locks the list of its streams after step 1;
// whoever has that lock by then (fflush(NULL)) may wait for a page, or for a stream whose owner waits for a page or for the heap. So it
// is locked before both.
void lock_streams_before_fork();
// To be called once, after the heap has registered its fork handlers: in a child the heap is usable by then,
// and the program has not run yet.
void start_background_in_children();

// What the handlers do, for ways around the C library's fork. In such a child the C library may not be fit to start a
// thread: it has no background thread.
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

// Calls `make`, which copies the process and calls the functions above, on a stack that parent and child do not share.
// Returns what it returns; or -1 with errno ENOMEM if there is no memory for the stack, ENOTSUP if the thread began on
// a stack in spilled memory or SATC is used.
long fork_on_plain_stack(long (*make)(void* context), void* context);

// Whether the calling process borrows this memory from the one that it belongs to, as a child of vfork does: what the
// kernel keeps for each process (descriptors, signal actions) is its own, what the runtime records is its parent's.
// Cost: a system call.
bool is_sharing_child();

// Ends a copy of the process that cannot have what its parent has, with one line that says why.
[[noreturn]] void end_fork_child(const char* why);

}  // namespace spill
