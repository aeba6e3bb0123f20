// Modules: writes to a log which code of which files is mapped where, as sites in it turn up: once the process has ended, addresses alone would say nothing.
//
// Thread contract: as LogWriter's. Cost of a site in code that is known: a search of a short list; of any other a read of the process's mappings.
#pragma once
#include "persist/check/log_writer.h"

namespace persist {

class Modules {
 public:
  // The log has a kModule record of the site's code when this returns, if that is from a file.
  void note(const void* site, LogWriter& log);

 private:
  static constexpr uint32_t kMaxCount = 512;
  static constexpr uint32_t kMaxScans = 256;  // code that is made at run time is never found

  struct Range {
    uint64_t begin = 0, end = 0;
  };
  bool knows(uint64_t site);
  void scan(LogWriter& log);

  Range ranges_[kMaxCount];
  uint32_t count_ = 0;
  uint32_t last_ = 0;  // where a site was found
  uint32_t scans_ = 0;
};

}  // namespace persist
