// Recovery: from what is on the device to index and log, as they were. (papers/udepot.txt, section 4.4)
//
//  1 every segment's header, and of those in use the footer. With a footer: the summary, which lists all records. Without, as of
//    the few that were open when the process ended: all of the segment is read, and each record counts whose check is right; a
//    grain that begins none is passed over
//  2 each record goes to the index; of two with the same hash of 128 bits the higher sequence counts, tombstones like values
//  3 tombstones leave the index
//  4 a segment without summary gets one
//  5 pieces of large values leave the index if no head there names them
// Each step does many segments at a time, on several threads. Memory: 32 bytes for each record in the log, while it runs.
#pragma once
#include "kv/channel.h"
#include "kv/index.h"
#include "kv/log.h"

namespace kv {

struct RecoveryReport {
  uint64_t records = 0;  // in the log, dead ones too
  uint64_t read_bytes = 0;
  uint64_t scanned_segments = 0;  // without a summary
  uint64_t damaged_segments = 0;  // whose first grain was damaged; their records were found nevertheless
  uint64_t lost_segments = 0;     // and those that nothing else was known of
  uint64_t passed_grains = 0;     // of scanned segments, before their last record
  uint64_t headless_pieces = 0;   // of large values that never came to be, or were replaced

  void add(const RecoveryReport& other);
};

// Errors: those of I/O, ENOMEM. REQUIRES: log and index are empty; nobody else uses them.
base::Expected<RecoveryReport> recover(storage::Device& device, const Identity& identity, Log& log,
                                       Index& index);

}  // namespace kv
