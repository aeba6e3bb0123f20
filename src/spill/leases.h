// Leases: read leases on files that the program maps (file_maps.h). While there is one, nobody has the file open for writing. When somebody wants to,
// the kernel tells the thread that watches leases, and makes them wait until the lease has been given back.
//
// Thread contract: any thread.
#pragma once

namespace spill {

// Is it a file of a file system of this machine's own, where no one else can change it behind the kernel's back? Files in
// memory gain nothing, and are none.
bool is_disk_file(int descriptor);
// Has anybody a record lock on the file? Those of this process would end when any of its descriptors of the file is closed, and the
// kernel does not tell whether there are some behind another's.
bool has_record_locks(int descriptor);

// The file of `descriptor`, opened once more to be read, as an own descriptor; -1 if that cannot be.
int open_again(int descriptor);
// The same, under a read lease; -1 also if somebody has it open for writing, or a record lock on it, or it is another user's.
int open_leased(int descriptor);
// Of a descriptor of open_leased. A lease that somebody waits for ends by itself after some time, too.
void give_lease_back(int descriptor);
// Does somebody wait for the lease, or is there none any more?
bool is_lease_asked_back(int descriptor);

// The thread that leases are announced to (by a signal, which it blocks): it is about to be started, so that who maps a file waits for it;
// it could not be started, so that no more files are mapped here; it is the caller.
void will_watch_leases();
void cannot_watch_leases();
void watch_leases();

}  // namespace spill
