// Files and descriptors of the runtime.
//
// Our descriptors are close-on-exec and moved to high numbers (kFirstOwnDescriptor and up), so that
// the program's own numbering, close loops and dup2 targets stay what they would be without us;
// spill's interceptors refuse to close them (is_own_descriptor).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

namespace sys {

inline constexpr size_t kMaxOwnDescriptors = 512;

// Moves `descriptor` to a high number, close-on-exec, and remembers it as the runtime's own; the old
// number is closed. Errors: EMFILE. The original stays open on error.
base::Expected<int> own_descriptor(int descriptor);
// The same for one that has just been made: on an error it is closed.
base::Expected<int> own_new_descriptor(long descriptor);
// Both of `pair`, in place, or an error: then neither is open any more.
base::Expected<void> own_descriptor_pair(int (&pair)[2]);
// Closes a descriptor of the runtime's own.
void close_own_descriptor(int descriptor);
bool is_own_descriptor(int descriptor);
// Copies the runtime's own descriptors, ascending, to `to`; returns how many there are.
size_t own_descriptors(std::span<int> to);

// Where messages go: the standard error that the process had when keep_error_output() ran. That is a duplicate of
// descriptor 2, so that messages still reach the user after the program closed it; once the duplicate is given up it is
// descriptor 2 as long as that is still the same file, and -1 otherwise. Who reads a pipe to its end waits for all that
// hold it: a daemon must not.
int error_output();
void keep_error_output();
// Gives the duplicate up.
void leave_error_output();
// Descriptor 2 may have been closed or replaced: gives the duplicate up if it was, and somebody may wait for the end of
// what it led to.
void error_output_replaced();
// For a thread with a table of descriptors of its own: its 2 is from now on that of the process.
void borrow_error_output();

// How large a file may grow in this process (RLIMIT_FSIZE); writing past it, or making it larger, raises SIGXFSZ.
uint64_t file_size_limit();

// Fills `to` with random bytes of the kernel.
void random_bytes(std::span<unsigned char> to);

// Reads the file at `path` into `to`, at most to.size() - 1 bytes, and ends it with 0. Returns the
// bytes read, or -errno. For /proc and /sys.
long read_small_file(const char* path, std::span<char> to);

}  // namespace sys
