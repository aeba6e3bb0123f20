// Stacks that the program makes itself (stack.cc): what the start of threads needs.
#pragma once
#include <pthread.h>

namespace spill {

// Keeps the stack that a new thread's attributes give it, if any, in its place. False if there is no room.
bool keep_stack_of(const pthread_attr_t& attributes);

}  // namespace spill
