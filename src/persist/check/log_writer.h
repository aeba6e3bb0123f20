// LogWriter: writes a log (log_format.h) by mapping it, a window at a time, so that what was committed is in the file even if the process is killed.
//
// 1 after the last record, its window has room for one without a payload: a kPad or a kFull
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
  // Makes the file, which must not exist. It becomes no longer than bytes_max, or two windows if these are longer. Errors: EEXIST, and others of
  // the system.
  base::Expected<void> open(const char* path, uint64_t bytes_max);

  // Begins a record with a payload of up to `bytes`. Returns where that is to be written; null: the log is full, or not open. REQUIRES: at most
  // kMaxStoreBytes + kMaxTextBytes.
  char* begin(uint64_t bytes);
  // Ends the record that begin() has begun, with this many bytes of payload. `bytes` and `check` are filled in.
  void commit(Record record, uint64_t payload_bytes);
  // Writes a record whose payload is `prefix` and a text, which is cut off at kMaxTextBytes.
  void write(Record record, const void* prefix, uint64_t prefix_bytes, std::string_view text);

  // Cuts off the file after its last record, and closes it. Nothing can be written any more.
  void close();

 private:
  char* map(uint64_t offset_bytes) const;
  void next_window();
  void put(Record record, uint64_t payload_bytes);

  int descriptor_ = -1;
  uint64_t bytes_max_ = 0;
  char* window_ = nullptr;      // null: no record can be written
  uint64_t window_offset_ = 0;  // in the file
  uint64_t used_bytes_ = 0;     // of the window
};

}  // namespace persist
