// Staging: changes wait until many changes in one region of the table can be made together.
//
// A region is a run of neighbouring homes; a Spread says which keys belong to which region. Changes of a key are made in the order in which they were
// staged. Before a call reads keys or asks for outcomes, it makes all staged changes of these keys.
#pragma once
#include "base/error.h"
#include "batch/job.h"
#include "batch/shape.h"

namespace batch {

class Session;

// A session's own part of a staging, if it has one.
class StagingArea {
 public:
  virtual ~StagingArea() = default;
};

// The result of a call of a staging.
enum class Staged : uint8_t {
  kDone,
  kNoRoom,  // a staged change has no room in the table: the table has to grow
  kWait,  // the call waits for others, while somebody shuts its gate: the caller has to leave the gate and come back
};

class Staging {
 public:
  virtual ~Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // The caller of the next three is inside its session's gate (table.h). If the result is not kDone, it calls again later, and the call goes on where it
  // stopped.

  // Stages the job's changes from number job.done_count on, and advances done_count. REQUIRES: the job's strides are set.
  virtual Staged put(Session& session, Job& job) = 0;
  // Makes all changes of the job's keys, and maybe of other keys, that were staged when it was called.
  virtual Staged settle(Session& session, const Job& job) = 0;
  // Makes all changes that were staged when it was called.
  virtual Staged flush(Session& session) = 0;
  // The same, while nobody else is inside a gate. False: a change has no room.
  virtual bool flush_alone(Session& session) { return flush(session) == Staged::kDone; }

  // Is called before a session's first put(), and close_area() after its last. Null: sessions need no areas. Errors: ENOMEM.
  virtual base::Expected<StagingArea*> open_area() { return nullptr; }
  virtual void close_area(StagingArea*) {}

  // How many changes are staged. REQUIRES: nobody else is inside a gate.
  virtual uint64_t staged_count() const = 0;
  // Any thread.
  virtual uint64_t memory_bytes() const = 0;

 protected:
  Staging() = default;
};

}  // namespace batch
