// Leases: read leases on files that the program maps (file_maps.h). While there is one, nobody has the file open for writing. When somebody wants to,
// the kernel tells the thread that watches leases, and makes them wait until the lease has been given back.
//
// Thread contract: any thread.
#pragma once

namespace spill {

// Is it a file on a file system of this machine, where nobody can change it behind the kernel's back? Not true of files
// in memory, which would gain nothing.
bool is_disk_file(int descriptor);
// Does anybody have a record lock on the file? Those of this process would end when any of its descriptors of the file is closed,
// and behind another process's lock the kernel does not show them.
bool has_record_locks(int descriptor);

// Opens the file of `descriptor` once more, to be read. Returns one of the runtime's own descriptors, or -1.
int open_again(int descriptor);
// The same, under a read lease; -1 also if somebody has it open for writing, or a record lock on it, or it is another user's.
int open_leased(int descriptor);
// `descriptor`: of open_leased. (The kernel also ends a lease by itself, if somebody has waited for it long enough.)
void give_lease_back(int descriptor);
// Does somebody wait for the lease, or is there none any more?
bool is_lease_asked_back(int descriptor);

// The thread that the kernel notifies (by a signal, which it blocks) is about to be started, and whoever maps a file waits for it; could
// not be started, and no more files are mapped through the cache; is the caller.
void will_watch_leases();
void cannot_watch_leases();
void watch_leases();

}  // namespace spill
