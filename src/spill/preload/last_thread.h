// The end of a program whose main thread left by pthread_exit, when its last thread ends.
//
// The C library ends the process when no thread is left; it counts those of the runtime, which never end. So when main's thread leaves a
// thread of ours begins to look, some times in a second, whether any is left but ours.
#pragma once

namespace spill::preload {

// In main's thread, once, before all others.
void watch_main_thread();
// The process has threads of the runtime's.
void note_own_threads();
// In a child of fork: its only thread is main's, and it has none of the runtime's yet.
void become_main_thread();

}  // namespace spill::preload
