// What fork needs of starting programs.
#pragma once

namespace spill {

// In a child of fork: no other thread's call needs a plain environment, and what this thread has mapped is the child's own.
void forget_copies();

}  // namespace spill
