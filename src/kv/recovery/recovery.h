// Recovery: from what is on the device to index and log, as they were. (uDepot, section 4.4)
//
//  1 every segment's header, and of those in use the footer
//  2 the index as the newest whole checkpoint has it (checkpoint.h), if there is one, but for addresses in newer segments. To be replayed
//    are all newer segments, and those that were not sealed when it began: of these what had a higher sequence, and pieces. Without one
//    everything is replayed, and so it is if it would leave the collector no segment to begin with
//  3 replayed segments are listed: by their summaries; one that was open when the process ended is read whole. If everything is replayed,
//    an open one that holds only copies of what others hold is given back (recovery_copies.cc)
//  4 each such record goes to the index; of two with the same hash of 128 bits the higher sequence counts, tombstones like values.
//    What the index knew of the key before is told apart by the summary of that segment, which is read when it is needed
//  5 tombstones leave the index
//  6 a segment without summary gets one, when a header has said that the sequences of what a power cut may have taken are not given out
//    again. If the medium does not take the summary, the segment is left: not collected, and scanned by the next start, for whose sake
//    tombstones do not end
//  7 pieces of large values leave the index if no head there names them
//
// A segment that the medium cannot read, or that is damaged at both ends, or parts of one without a summary, are left as they are: not written
// to, not collected, not sealed, and until all can be read again there are no new checkpoints, tombstones do not end and pieces without
// heads stay; so that a later start that can read them has all that they hold, and each start until then says that it has not. Meanwhile
// what a checkpoint knows there cannot be read, and what is only there is not known: of a key an older value may be.
//
// Each step does many segments at a time, on several threads. Memory, while it runs: 32 bytes for each record of replayed segments, and of
// those with pieces; 10 more for each that is replayed, up to 40 MiB.
#pragma once
#include "kv/index/index.h"
#include "kv/log/log.h"
#include "kv/recovery/recovery_reader.h"

namespace kv {

// One that does not count, as it is on the medium.
struct RejectedCheckpoint {
  uint64_t number = 0;
  std::vector<uint32_t> segments;  // in their order
  bool has_gaps = false;           // some of them are of something else: it is being given back
  int error = 0;                   // EBADMSG: damaged, or not whole; else of the medium
};

struct RecoveredStore {
  RecoveryReport report;
  std::vector<uint32_t> checkpoint_segments;             // of the one that was used
  uint64_t floor = 0;                                    // of a cache: what has a lower sequence is gone
  uint64_t last_checkpoint = 0;                          // the highest number of any
  std::vector<RejectedCheckpoint> rejected_checkpoints;  // newer than that
};

// Opens the index, which is the caller's to close, also after an error. Errors: those of I/O, ENOMEM. REQUIRES: the log is empty;
// nobody else uses it.
base::Expected<RecoveredStore> recover(storage::Device& device, const Identity& identity, Log& log,
                                       Index*& index);

}  // namespace kv
