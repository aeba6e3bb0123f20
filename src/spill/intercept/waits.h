// The functions by which threads wait for each other (waits.cc).
#pragma once

namespace spill {

// To be called once, at the start: looks up the C library's functions for them, as LIBC() would on the first call. That call may
// come while another thread is in dlopen, where it has the dynamic linker's lock, which a lookup takes, and runs a constructor that
// waits for the caller.
void find_waits();

}  // namespace spill
