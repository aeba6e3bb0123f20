// Asynchronous I/O (aio.cc): what fork needs of it.
#pragma once

namespace spill {

// In a child of fork: the threads that serve requests are its parent's.
void forget_requests();

}  // namespace spill
