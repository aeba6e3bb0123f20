// Check: is all that a store keeps as it should be? Reads only.
//
//  1 both superblocks, every segment's headers or header and footer, and each summary; no two segments in use are of one generation
//  2 every record of every segment in use: its check, and that the summary's entry is the record's. Of a segment without a summary, as
//    a process that was killed leaves it, each record that can be read counts, as for recovery
//  3 which records are live follows from these: the newest of their keys, but tombstones, and the pieces that a live head names, of which
//    none may be missing. Recovery makes index and log, on a device that forgets what is written: the index has to have exactly the live
//    records, and each segment as many live grains, with those of all tombstones
//  4 recovery reads the newest checkpoint for that, whole. If it was damaged, the log has all that it had. One that was being written when the
//    process ended has no end, and one that was being given back not all of its segments: these are as they should be
//
// Memory: 40 bytes for each record in the log, 32 more for each large value and each segment, and what recovery takes. What step 4 reads is some MiB at a
// time, and it reads a segment again, for the end, only of a checkpoint that recovery has rejected.
#pragma once
#include <cstdint>

#include "base/error.h"
#include "storage/device.h"

namespace kv {

struct CheckReport {
  uint64_t segments = 0;           // in use
  uint64_t unsealed_segments = 0;  // of them; without a summary: the store was not closed
  uint64_t records = 0;            // in them, dead ones and tombstones too
  uint64_t live_records = 0;       // what is to be in the index; a large value is some
  uint64_t entries = 0;            // of the index
  uint64_t damaged_superblocks = 0;
  uint64_t damaged_segments = 0;  // headers, footer or summary
  uint64_t damaged_records = 0;   // and large values that lack a piece
  uint64_t damaged_checkpoints = 0;
  uint64_t wrong_entries = 0;   // of the index: missing, or of no live record
  uint64_t wrong_counters = 0;  // of segments
  uint64_t read_bytes = 0;      // by 1 and 2

  bool is_clean() const {
    return damaged_superblocks + damaged_segments + damaged_records + damaged_checkpoints + wrong_entries +
               wrong_counters ==
           0;
  }
};

// Each finding is one line for `finding`; `progress` is told bytes of the segments, again and again. Errors: there is no store, as
// Store::open says it; EOPNOTSUPP: it is a cache; what the process lacks: ENOMEM, EMFILE, ENFILE, EAGAIN. What cannot be read is a finding. REQUIRES: nobody
// writes to the device meanwhile.
base::Expected<CheckReport> check(storage::Device& device, void (*finding)(void* context, const char* line),
                                  void (*progress)(void* context, uint64_t done_bytes, uint64_t all_bytes),
                                  void* context);

}  // namespace kv
