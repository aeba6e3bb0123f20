// StatisticsFile: the file to which a program writes its statistics when it ends.
//
// It is written under another name beside its own, which has the process id, and renamed when it is whole: nobody reads half of it, and if several
// processes write it at the same time, it becomes that of the last. Only files are replaced: a pipe or a terminal is written to as it is, and so is what
// a link in /dev or /proc leads to; a disk or a socket is refused.
//
// Thread contract: used by one thread.
#pragma once
#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace sys {

class StatisticsFile {
 public:
  static constexpr size_t kMaxPathBytes = 1023;

  // Begins it: in `name` each %p becomes the process id.
  explicit StatisticsFile(std::string_view name);
  StatisticsFile(const StatisticsFile&) = delete;
  StatisticsFile& operator=(const StatisticsFile&) = delete;

  std::string_view path() const { return path_.view(); }
  // Appends the text; after an error it does nothing.
  void put(const base::TextRef& text);
  // Ends it: the file now has all that was put, or after an error is what it was before. Called once. Errors: the first that occurred: ENAMETOOLONG;
  // EINVAL, a disk; ENXIO, a socket, or a pipe that nobody reads; EPIPE, a pipe whose reader has left, and EFBIG, a file that may not become longer
  // (RLIMIT_FSIZE), neither of which raises a signal; ENOSPC, less was written than was put; others as the kernel says. The message is the reason,
  // without the path.
  base::Expected<void> finish();

 private:
  base::Text<kMaxPathBytes + 2> path_;     // with room for one byte too many, which shows that it is too long
  base::Text<kMaxPathBytes + 17> beside_;  // path_, .PROCESS.new; empty: path_ itself is written to
  long file_ = -1;
  long error_ = 0;  // 0 or -errno
};

}  // namespace sys
