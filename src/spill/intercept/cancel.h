// Asynchronous cancellation (cancel.cc): what fork needs of it.
#pragma once

namespace spill {

// In a child of fork: no other thread is about to replace the C library's handler.
void forget_cancel_lock();

}  // namespace spill
