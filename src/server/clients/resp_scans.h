// RespScans: the scans (SCAN) that clients have under way, and their cursors, which any connection may come with: clients take whichever of their
// connections is free.
//
// A scan is a Walk that stays open between its calls: it lists the keys as they were when it began, each once. Some keys are read ahead: a
// scan of few keeps no Walk open, of which the store has room for some only. Each call has a new cursor,
// which tells of what is left, and is never used again; they have at most 53 bits, since some clients keep numbers as doubles. A cursor is known until the
// next call with it, or until nobody has come with it for kIdleMs. Where a worker has kMost scans, or the store no room for another Walk, one goes that
// nobody seems to go on with: whose last connection has gone, or has come to two others since, or that was not used for kUsedMs. If there is none,
// who comes is refused. The store
// ends a scan itself when it would have to keep too much for it. Who comes with a cursor that is not known is told so: to answer that
// nothing is left would hide keys.
//
// A scan lives on the worker that began it, whose memory it has: a call that comes to another one is carried out there, by a task.
//
// Thread contract: as each call says; a Caller is its connection's task's. Tables change only before connections come, and when none is left.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/items/walk.h"
#include "server/resp/arguments.h"

namespace server {

class RespScans {
 public:
  static constexpr uint32_t kWorkersMost = 256;
  static constexpr size_t kMost = 256;           // of a worker, at a time
  static constexpr uint64_t kIdleMs = 60'000;    // since the last call
  static constexpr uint64_t kUsedMs = 5'000;     // likewise, when others need the room
  static constexpr uint64_t kKeysMost = 4096;    // that are looked at in a call, whatever its count is
  static constexpr size_t kBytesMost = 1 << 20;  // of a call's keys, but for the last one
  static constexpr size_t kAheadMost = 512;      // keys that are read ahead
  static constexpr size_t kAheadBytesMost = 64 << 10;

  RespScans();
  ~RespScans();
  RespScans(const RespScans&) = delete;
  RespScans& operator=(const RespScans&) = delete;

  // A worker's connections may scan from now on. On that worker, before any of them does. The items outlive end().
  void begin(uint32_t worker, Items& items);
  // Ends the scans that nobody has come to for too long. On that worker.
  void end_idle(uint32_t worker);
  // Ends them all. On that worker. REQUIRES: no step is under way, on any worker, nor will be.
  void end(uint32_t worker);

  struct Step {
    uint64_t cursor = 0;  // of the next call; 0: there is none
    std::vector<std::string> keys;
  };
  // A connection of a worker.
  class Caller {
   public:
    // The items are the worker's. All that follows in tasks of that.
    Caller(RespScans& scans, uint32_t worker, Items& items) : scans_(scans), worker_(worker), items_(items) {}
    ~Caller() { leave(); }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
    // Errors: ESRCH for a cursor that is not known; EBUSY: others scan too; ENOMEM; as Walk::open and Walk::next, after which the scan has ended.
    base::Expected<Step> step(const resp::ScanRequest& request);
    // Opens a walk for something else; as Walk::open, but scans that nobody seems to go on with end before it is refused.
    base::Expected<void> open(Walk& walk);
    // It will not go on with any.
    void leave();

   private:
    static constexpr size_t kMostKept = 2;
    RespScans& scans_;
    const uint32_t worker_;
    Items& items_;
    std::vector<uint64_t> cursors_;  // that it has been told and has not come with again, the oldest first
  };

 private:
  class Table;
  template <class Function>
  base::Expected<void> run_at(uint32_t home, uint32_t worker, Function function);
  void disown(uint32_t worker, uint64_t cursor);

  std::array<std::unique_ptr<Table>, kWorkersMost> tables_;
};

}  // namespace server
