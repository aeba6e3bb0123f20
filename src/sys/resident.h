// ResidentFiles: how much of mapped files is in this process's page tables, and taking it out of them.
//
// What is taken out of a shared mapping stays in the kernel's page cache, written to or not, until the kernel needs the memory. Whoever touches it again
// finds it as it was.
//
// A child of fork closes and opens again, since the kernel answers for the process that opened the files.
//
// Thread contract: open and close while nobody else calls; the rest from any thread.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace sys {

// Bytes of the OS pages [address, address + bytes), private memory, that are in memory; all of them if the kernel does not tell. Cost: a
// system call for 16 MiB, 10 ns for an OS page.
uint64_t resident_bytes_of(const void* address, uint64_t bytes);

class ResidentFiles {
 public:
  // Errors: ENOENT, EMFILE and others of opening files of /proc.
  base::Expected<void> open();
  void close();
  bool is_open() const { return own_.status >= 0; }
  // Does the kernel say of an address whether it is shared (Linux 6.11)?
  bool knows_shared() const { return knows_shared_; }

  // Bytes of all of the process's mapped files, but files in memory, that are resident; 0 if that cannot be told. Cost:
  // about 5 us.
  uint64_t all_bytes() const;
  // Bytes of [begin, end) that are resident; `unknown` if the kernel does not tell (before 6.7). Whole OS pages. Cost: 1 us for
  // 2 MiB.
  uint64_t count_bytes(uint64_t begin, uint64_t end, uint64_t unknown) const;
  // The first OS page of [begin, end) that is resident; `end` if none is, `begin` if the kernel does not tell.
  uint64_t find(uint64_t begin, uint64_t end) const;

  // From now on a fault in this mapping brings one OS page, and not up to 2 MiB that are in the page cache around it. For a
  // shared mapping of a file; where the kernel refuses (before Linux 6.7, and containers) faults bring 64 KiB and more.
  // Ends with the mapping, and in children of fork. Cost: reading what is in the page cache from one end to the other takes
  // 20 times as long.
  void bring_single_pages(uint64_t begin, uint64_t end) const;

  // Ends what bring_single_pages began, so that mremap of [begin, end) does what it does otherwise.
  void let_move(uint64_t begin, uint64_t end) const;

  // Takes what [begin, end) shows by shared mappings out of the page tables, but for what is locked in memory. Private
  // memory and what is not mapped are left alone. REQUIRES: knows_shared; until it returns nobody maps private memory there
  // where a shared mapping was, which would lose what was stored to it since. Cost: 1 us for each mapping,
  // 0.1 to 0.3 us for each OS page.
  void take_out(uint64_t begin, uint64_t end) const;
  // The same by advice that is harmless to any memory, and leaves alone too what other processes have in their page tables
  // or what is a part of a larger unit of the kernel's with stores in it. Cost: 1 to 4 us for each OS page.
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
