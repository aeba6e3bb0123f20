// Stacks that the program makes itself (stack.cc): what starting threads needs of them.
#pragma once
#include <pthread.h>

namespace spill {

// Keeps the stack in its place that the attributes of a new thread give it, if they do. False if there is no room.
bool keep_stack_of(const pthread_attr_t& attributes);

}  // namespace spill
