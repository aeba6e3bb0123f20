// The functions by which threads wait for each other (waits.cc).
#pragma once

namespace spill {

// Finds the C library's functions behind them, as LIBC() would on their first calls: such a call may come while another thread is in
// dlopen, with the dynamic linker's lock, which finding takes, and a constructor there waits for the caller. Once, at the start.
void find_waits();

}  // namespace spill
