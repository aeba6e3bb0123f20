// The end of a program whose main thread left by pthread_exit, when its last thread ends.
//
// The C library ends the process when its last thread ends. It counts the runtime's threads too, which never end. So once main's
// thread has left, a thread of the runtime's checks many times a second whether only the runtime's are left.
#pragma once

namespace spill::preload {

// To be called once, in main's thread, before there are others.
void watch_main_thread();
// The runtime has started its threads in this process.
void note_own_threads();
// In a child of fork: the calling thread is its main thread, and the runtime has no threads there yet.
void become_main_thread();

}  // namespace spill::preload
