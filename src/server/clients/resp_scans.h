// RespScans: the scans (SCAN) that clients have under way, and their cursors, which any connection may come with: clients take whichever of their
// connections is free.
//
// A scan is a Walk that stays open between its calls: it lists the keys as they were when it began, each once. Some keys are read ahead: a
// scan of few keeps no Walk open, of which the store has room for some only. Each call has a new cursor,
// which tells of what is left, and is never used again; they have at most 53 bits, since some clients keep numbers as doubles. A cursor is known until the
// next call with it, or until nobody has come with it for kIdleMs; where a worker has kMost scans, or the store no room for another Walk, the one
// that was not used for longest goes. The store
// ends a scan itself when it would have to keep too much for it. Who comes with a cursor that is not known is told so: to answer that
// nothing is left would hide keys.
//
// A scan lives on the worker that began it, whose memory it has: a call that comes to another one is carried out there, by a task.
//
// Thread contract: as each call says. Tables change only before connections come, and when none is left.
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
  static constexpr size_t kMost = 32;            // of a worker, at a time
  static constexpr uint64_t kIdleMs = 60'000;    // since the last call
  static constexpr uint64_t kUsedMs = 5'000;     // who needs a Walk does not end one that was used so lately
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
  // In a task of that worker. Errors: ESRCH for a cursor that is not known; EBUSY: others scan too; ENOMEM; as Walk::open and Walk::next, after
  // which the scan has ended.
  base::Expected<Step> step(uint32_t worker, const resp::ScanRequest& request);

 private:
  class Table;
  std::array<std::unique_ptr<Table>, kWorkersMost> tables_;
};

}  // namespace server
