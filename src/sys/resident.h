// ResidentFiles: how much of its mapped files this process has in its page tables, and how to take it out of them.
//
// What is taken out of a shared mapping stays in the kernel's page cache, dirty or not, until the kernel needs the memory. The next access finds it
// unchanged.
//
// A child of fork has to close and open again, since the kernel answers for the process that opened the files of /proc.
//
// Thread contract: open and close while nobody else calls; the rest from any thread.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace sys {

// How many bytes of [address, address + bytes), whole OS pages of private memory, are in memory; all of them if the kernel does not tell. Cost: a
// system call for 16 MiB, 10 ns for an OS page.
uint64_t resident_bytes_of(const void* address, uint64_t bytes);

class ResidentFiles {
 public:
  // Errors: ENOENT, EMFILE and others of opening files of /proc.
  base::Expected<void> open();
  void close();
  bool is_open() const { return own_.status >= 0; }
  // Does the kernel tell whether an address is in a shared mapping (Linux 6.11)?
  bool knows_shared() const { return knows_shared_; }

  // How many bytes of all of the process's mapped files, except memory files, are resident; 0 if the kernel does not tell.
  // Cost: about 5 us.
  uint64_t all_bytes() const;
  // How many bytes of [begin, end), whole OS pages, are resident; `unknown` if the kernel does not tell (before Linux 6.7). Cost:
  // 1 us for 2 MiB.
  uint64_t count_bytes(uint64_t begin, uint64_t end, uint64_t unknown) const;
  // The first OS page of [begin, end) that is resident; `end` if none is, `begin` if the kernel does not tell.
  uint64_t find(uint64_t begin, uint64_t end) const;

  // From now on a fault in this mapping brings in one OS page, instead of up to 2 MiB that are in the page cache around it.
  // For a shared mapping of a file; where the kernel refuses (before Linux 6.7, and in containers) faults bring in 64 KiB and
  // more. Ends with the mapping; children of fork do not inherit it. Cost: reading what is in the page cache from one end to
  // the other takes 20 times as long.
  void bring_single_pages(uint64_t begin, uint64_t end) const;

  // Undoes bring_single_pages, so that mremap of [begin, end) does what it does otherwise.
  void let_move(uint64_t begin, uint64_t end) const;

  // Takes the shared mappings of [begin, end) out of the page tables, except what is locked in memory. Private memory and
  // what is not mapped are left alone. REQUIRES: knows_shared; until this returns nobody replaces a shared mapping there by
  // private memory, which would lose what has been stored to it. Cost: 1 us for each mapping, 0.1 to 0.3 us for each OS page.
  void take_out(uint64_t begin, uint64_t end) const;
  // The same by advice that is harmless to any memory. It also leaves alone what other processes have in their page tables,
  // and parts of larger units of the page cache that are dirty. Cost: 1 to 4 us for each OS page.
  static void advise_out(uint64_t begin, uint64_t end);

 private:
  struct Descriptors {
    int status = -1, page_map = -1, maps = -1;
    int faults = -1;  // the kernel may refuse it
  };
  Descriptors own_;
  bool knows_shared_ = false;
};

}  // namespace sys
