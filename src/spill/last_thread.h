// The end of the program when its last thread ends, after main's thread left by pthread_exit.
//
// The C library ends the process when no thread is left; it counts the runtime's own threads, which never
// end. So the program's are counted here. Each carries a thread-specific value, whose destructor comes
// last: after those of thread_local objects and all but one round of the program's own values.
#pragma once

namespace spill {

// Counts the calling thread, the first one.
void count_first_thread();
// Counts a thread that is about to be created; uncount_thread() if it could not be.
void count_thread();
void uncount_thread();
// To be called in a thread that count_thread() has counted.
void enter_counted_thread();
// Counts, once for all of them, the C library's own threads that never end and call the program (timers, message queues): as natively, they
// keep the process alive.
void count_endless_thread();
// In a child of fork.
void count_only_this_thread();
// Whether the calling thread of the program is its only one.
bool is_only_thread();

}  // namespace spill
