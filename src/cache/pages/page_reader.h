// Reads what a page of another process's cache holds, while that process runs, without leaving a trace in it.
//
// The other process does not cooperate and takes no lock; what is read is accepted only if the page was found
// in the same place before and after:
//
//   1 where is it?      the directory's word, the leaf's, and for a page in a frame the Frame
//   2 its bytes         from the frame; from its place on storage, read until two readings agree; zeros if it is nowhere
//   3 where is it now?  if not as in 1: again from 1
//
// Why that suffices
//  frame  every edge of its life raises its version, and only RESIDENT, EVICTING and WRITING frames hold their page;
//         what the program itself stores meanwhile may be seen or not, as with any memory
//  place  it is written only while its page is in a frame. A page that went to a frame and back between 1 and 3 may
//         have been written while it was read: two readings then differ. One case remains undetected: the place was
//         another page's during both readings, and is this one's again at 3; nothing in the process shows that
//  leaf   the directory's word, or the page that the Frame names, shows that a leaf has become another group's
//
// A frame that is LOADING holds nothing yet: its page is still at the place that the Frame names.
#pragma once
#include <cstddef>

#include "cache/pages/layout.h"

namespace cache {

// How the other process is reached. Each returns whether all bytes were read.
class Outside {
 public:
  virtual bool read_memory(uint64_t address, void* to, size_t bytes) = 0;
  // `to` and `offset_bytes` are multiples of the OS page.
  virtual bool read_storage(uint64_t offset_bytes, void* to, size_t bytes) = 0;

 protected:
  ~Outside() = default;
};

enum class ReadResult {
  kDone,
  kUnreadable,  // memory or storage cannot be read: the process has ended, or storage fails
  kUnsettled,   // the page was moving at every attempt
};

// Reads the OS page at `address` into `to`. REQUIRES: address in the layout's range, a multiple of the OS page; `to` and
// `scratch` hold an OS page each and are aligned to it. Cost: some system calls, one or two reads of storage.
ReadResult read_os_page(const Layout& layout, uint64_t address, char* to, char* scratch, Outside& outside);

}  // namespace cache
