// Check: verifies a store that nobody uses. Reads only.
//
//  1 Both superblocks are read, and every segment's two headers, or its header, footer and summary. No two segments in use may have the same generation
//  2 Every record of every segment in use is read: its check must be right, and its entry in the summary must match it. In a segment without a
//    summary, as a killed process leaves it, each record that can be read counts, as for recovery
//  3 These records tell which of them are live: the newest of each key, unless it is a tombstone, and the pieces that live heads name, none of which
//    may be missing. Then recovery makes index and log, on a device that forgets what is written. The index must have exactly the live records, and
//    the log must count for each segment the grains of its live records and of all of its tombstones
//  4 For that, recovery reads the whole of the newest checkpoint. A damaged one is a finding, although the log has all that it had. One without an end
//    was being written when the process ended, and one that lacks segments was being given back: neither is a finding
//
// Memory: 40 bytes for each record in the log, 32 more for each large value and each segment, and what recovery takes. A checkpoint is read some MiB at a
// time; a segment of it is read again, to look for the end, only if recovery has rejected the checkpoint.
#pragma once
#include <cstdint>

#include "base/error.h"
#include "storage/device.h"

namespace kv {

struct CheckReport {
  uint64_t segments = 0;           // in use
  uint64_t unsealed_segments = 0;  // those of them without a summary: the store was not closed
  uint64_t records = 0;            // in segments in use, including dead ones and tombstones
  uint64_t live_records = 0;       // that should be in the index; a large value has several
  uint64_t entries = 0;            // in the index
  uint64_t damaged_superblocks = 0;
  uint64_t damaged_segments = 0;  // headers, footer or summary
  uint64_t damaged_records = 0;   // and large values that lack a piece
  uint64_t damaged_checkpoints = 0;
  uint64_t wrong_entries = 0;   // of the index: missing, or of no live record
  uint64_t wrong_counters = 0;  // of live grains, for segments
  uint64_t read_bytes = 0;      // in steps 1 and 2

  bool is_clean() const {
    return damaged_superblocks + damaged_segments + damaged_records + damaged_checkpoints + wrong_entries +
               wrong_counters ==
           0;
  }
};

// `finding` is called with one line for each finding, `progress` again and again with how many bytes of all segments are done. What cannot be read is
// a finding, too. Errors: as of Store::open if there is no store; EOPNOTSUPP: it is a cache; what the process lacks: ENOMEM, EMFILE, ENFILE, EAGAIN.
// REQUIRES: nobody writes to the device meanwhile.
base::Expected<CheckReport> check(storage::Device& device, void (*finding)(void* context, const char* line),
                                  void (*progress)(void* context, uint64_t done_bytes, uint64_t all_bytes),
                                  void* context);

}  // namespace kv
