// Files and descriptors of the runtime.
//
// The runtime's own descriptors are close-on-exec and have high numbers (kFirstOwnDescriptor and up), so that the program's numbering, close loops and
// targets of dup2 stay what they would be without the runtime. Interceptors of spill refuse to close them (is_own_descriptor).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

namespace sys {

inline constexpr size_t kMaxOwnDescriptors = 512;

// Moves `descriptor` to a high number, close-on-exec, and remembers it as the runtime's own; the old
// number is closed. Errors: EMFILE. The original stays open on error.
base::Expected<int> own_descriptor(int descriptor);
// The same for a descriptor that has just been made: on an error it is closed.
base::Expected<int> own_new_descriptor(long descriptor);
// The same for both of `pair`, which are replaced. On an error both are closed.
base::Expected<void> own_descriptor_pair(int (&pair)[2]);
// Closes a descriptor of the runtime's own.
void close_own_descriptor(int descriptor);
bool is_own_descriptor(int descriptor);
// Copies the runtime's own descriptors, ascending, to `to`; returns how many there are.
size_t own_descriptors(std::span<int> to);

// Where messages go: to the standard error that the process had when keep_error_output() ran. The runtime keeps a duplicate of descriptor 2, so that
// messages reach the user even after the program has closed it. But the reader of a pipe sees its end only when all that hold it have closed it, so a
// daemon gives the duplicate up; from then on this is descriptor 2, as long as that is still the same file, and -1 otherwise.
int error_output();
void keep_error_output();
// Gives the duplicate up.
void leave_error_output();
// To be called when descriptor 2 may have been closed or replaced. If it was, and led to a pipe or a socket, whose reader may wait for the end, gives the
// duplicate up.
void error_output_replaced();
// For a thread with a descriptor table of its own: its descriptor 2 becomes that of the process.
void borrow_error_output();

// write(2) to what may be a pipe or a socket. It is repeated when a signal handler of the program interrupts the wait for a slow reader, and raises
// neither SIGPIPE if the reader has left (-EPIPE), nor SIGXFSZ if a file may not become longer (-EFBIG). Returns how many bytes were written, or -errno.
// Async-signal-safe.
long write_quietly(int descriptor, const char* from, size_t bytes);

// How large this process may make a file (RLIMIT_FSIZE). Writing beyond that, or truncating a file to more, raises SIGXFSZ.
uint64_t file_size_limit();
// Allocates these bytes of a file, which becomes longer if they lie behind its end. Returns 0 or -errno. Signals do not interrupt it; their handlers may
// have to wait until it has ended.
long allocate_file(int descriptor, uint64_t offset, uint64_t bytes);

// Fills `to` with random bytes from the kernel.
void random_bytes(std::span<unsigned char> to);

// The folder of the file at `path`, part of `path` or a literal: "a/b" of "a/b/store", "/" of "/store", "." of "store".
std::string_view folder_of(std::string_view path);
// Makes the directory entry of the file at `path`, which has just been created, durable: without that a power cut may take the file, with all that was
// written to it. Returns 0 or -errno. 0, too, where it cannot be done: in a folder that may be searched but not read (EACCES), and on a file system that
// syncs no folders (EINVAL). Cost: a sync of the folder.
long sync_name(std::string_view path);

// Reads the file at `path` into `to`, at most to.size() - 1 bytes, and ends it with 0. Returns the
// bytes read, or -errno. For /proc and /sys.
long read_small_file(const char* path, std::span<char> to);
// The number that follows `key` and blanks in a file of /proc, however far into the file (one line of /proc/self/status lists all groups of the user,
// which may be thousands); 0 if there is none. Cost: a system call for each 4 KiB of the file, up to there.
uint64_t number_in_file(int descriptor, std::string_view key);

}  // namespace sys
