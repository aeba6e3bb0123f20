// Recovery: makes index and log, as they were, from what is on the device. (uDepot, section 4.4)
//
//  1 Every segment's header is read, and the footer of those in use
//  2 The index is restored from the newest whole checkpoint (checkpoint.h), if there is one, except for addresses in newer segments. What is replayed
//    is all newer segments; and, of those that were not sealed when the checkpoint began, the records with a higher sequence, and pieces. Everything
//    is replayed if there is no checkpoint, or if it would leave the collector no segment to begin with
//  3 The records of replayed segments are listed by their summaries; a segment that was open when the process ended is read whole. If everything
//    is replayed, an open segment that holds only copies of what others hold is given back (recovery_copies.cc)
//  4 Each of these records goes to the index. Of two with the same 128-bit hash the higher sequence counts, for tombstones as for values. A record
//    that the index already has of the key is identified by the summary of that record's segment, which is read when it is needed
//  5 Tombstones leave the index
//  6 Each segment without a summary gets one. Before that, a header says durably that sequences which a power cut may have taken are not given
//    out again. If the medium does not accept a summary, or if the checkpoint knows a record of the segment that is damaged, that segment is
//    not sealed: the next start scans it, too, and until then tombstones do not end
//  7 Pieces of large values leave the index if no head there names them
//
// A segment stays as it is if the medium cannot read it, or parts of one without a summary, or if it is damaged at both ends: it is not written to,
// collected or sealed. Until all can be read again there are no new checkpoints, tombstones do not end, and pieces without heads stay, so that a
// later start that can read such a segment gets all that it holds; each start until then says that something could not be read. Meanwhile records
// there that a checkpoint knows cannot be read, and records that are only there are not known: an older value of a key may be found.
//
// Each step handles many segments at a time, on several threads. Memory while it runs: 32 bytes for each record of replayed segments, and of those
// with pieces; 10 more for each record that is replayed, up to 40 MiB.
#pragma once
#include "kv/index/index.h"
#include "kv/log/log.h"
#include "kv/recovery/recovery_reader.h"

namespace kv {

// A checkpoint on the medium that does not count.
struct RejectedCheckpoint {
  uint64_t number = 0;
  std::vector<uint32_t> segments;  // in their order
  bool has_gaps = false;           // some of its segments have been given back already
  int error = 0;                   // EBADMSG: it is damaged or not whole; else that of reading it
};

struct RecoveredStore {
  RecoveryReport report;
  std::vector<uint32_t> checkpoint_segments;             // of the checkpoint that was used
  uint64_t floor = 0;                                    // a cache's: records of lower sequences are gone
  uint64_t last_checkpoint = 0;                          // the highest number of any checkpoint
  std::vector<RejectedCheckpoint> rejected_checkpoints;  // those newer than the one that was used
};

// Opens the index, which the caller closes, also after an error. Errors: those of I/O, ENOMEM. REQUIRES: the log was opened and is empty; nobody
// else uses it.
base::Expected<RecoveredStore> recover(storage::Device& device, const Identity& identity, Log& log,
                                       Index*& index);

}  // namespace kv
