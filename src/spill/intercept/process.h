// What fork needs of starting programs.
#pragma once

namespace spill {

// In a child of fork: no call is under way that needs a plain environment.
void forget_plain_environment();

}  // namespace spill
