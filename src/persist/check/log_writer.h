// LogWriter: writes a log (log_format.h) through mappings of it, a window at a time: what was committed is in the file even if the
// process is killed.
//
// 1 behind the last record there is room for one without a payload in its window: for kPad or kFull
// 2 a record counts once its `bytes` is stored, which is the last store to it
//
// Thread contract: one thread at a time. Never calls what the runtime intercepts.
#pragma once
#include <string_view>

#include "base/error.h"
#include "persist/check/log_format.h"

namespace persist {

class LogWriter {
 public:
  // Makes the file, which must not be there. `bytes_max` bounds it, to a window or two. Errors: EEXIST, and what else the system says.
  base::Expected<void> open(const char* path, uint64_t bytes_max);

  // Where the payload of the next record is to be written, which may have `bytes` of it; null: the log is full, or is not open. REQUIRES:
  // at most kStoreBytesMax + kTextBytesMax.
  char* begin(uint64_t bytes);
  // The record after begin(), with so much of the payload. `bytes` and `check` are filled in.
  void commit(Record record, uint64_t payload_bytes);
  // The same of a text, which is cut off at kTextBytesMax, behind `prefix_bytes` that begin() was given room for.
  void write(Record record, const void* prefix, uint64_t prefix_bytes, std::string_view text);

  // Cuts the file off behind its last record. Nothing can be written any more.
  void close();

 private:
  char* map(uint64_t offset_bytes) const;
  void next_window();
  void put(Record record, uint64_t payload_bytes);

  int descriptor_ = -1;
  uint64_t bytes_max_ = 0;
  char* window_ = nullptr;      // null: none can be written
  uint64_t window_offset_ = 0;  // in the file
  uint64_t used_bytes_ = 0;     // of the window
};

}  // namespace persist
