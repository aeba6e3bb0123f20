// What fork needs of starting programs.
#pragma once

namespace spill {

// In a child of fork: no call of another thread needs the plain environment any more, and what this thread has mapped now belongs to the child.
void forget_copies();

}  // namespace spill
