// Staging: changes that wait until many of one region of the table can be made together.
//
// A region is a run of neighbouring homes, as Spread deals keys to regions. Changes of a key are made in the order in which they were staged.
// Whoever reads keys, or wants to know how a change ends, has what is staged of them made first.
#pragma once
#include "base/error.h"
#include "batch/job.h"
#include "batch/shape.h"

namespace batch {

class Session;

// What a session has for itself, where it has something.
class StagingLane {
 public:
  virtual ~StagingLane() = default;
};

// How a call of a staging went.
enum class Staged : uint8_t {
  kDone,
  kNoRoom,  // something that is staged has no room in the table, which has to grow
  kWait,    // for others, while somebody shuts the caller's gate: it leaves, and comes back
};

class Staging {
 public:
  virtual ~Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // The caller of these three is in its session's gate (table.h), and has the job's strides set. Where they are not done they go on where they were.

  // Stages changes, from job.done_count on, which says how many are.
  virtual Staged put(Session& session, Job& job) = 0;
  // Of the job's keys, and maybe of others, nothing is staged that was when it was called.
  virtual Staged settle(Session& session, const Job& job) = 0;
  // Nothing is staged that was when it was called.
  virtual Staged flush(Session& session) = 0;
  // The same while nobody else is in a gate. False: no room.
  virtual bool flush_alone(Session& session) { return flush(session) == Staged::kDone; }

  // Before a session's first put(), and after its last. Null: it needs none. Errors: ENOMEM.
  virtual base::Expected<StagingLane*> open_lane() { return nullptr; }
  virtual void close_lane(StagingLane*) {}

  // Changes that are staged. While nobody else is in a gate.
  virtual uint64_t staged_count() const = 0;
  // Any thread.
  virtual uint64_t memory_bytes() const = 0;

 protected:
  Staging() = default;
};

}  // namespace batch
