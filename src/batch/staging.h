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

class Staging {
 public:
  virtual ~Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // False of these three: something that is staged has no room in the table, which has to grow; then they go on where they were. The caller is in
  // its session's gate (table.h), and has the job's strides set.

  // Stages changes, from job.done_count on, which says how many are.
  virtual bool put(Session& session, Job& job) = 0;
  // Of the job's keys, and maybe of others, nothing is staged that was when it was called.
  virtual bool settle(Session& session, const Job& job) = 0;
  // Nothing is staged that was when it was called.
  virtual bool flush(Session& session) = 0;

  // Before a session's first put(), and after its last. Null: it needs none. Errors: ENOMEM.
  virtual base::Expected<StagingLane*> open_lane() { return nullptr; }
  virtual void close_lane(StagingLane*) {}

  // Any thread.
  virtual uint64_t memory_bytes() const = 0;

 protected:
  Staging() = default;
};

}  // namespace batch
