// RespScans: the scans (SCAN) that clients have under way, and their cursors. A cursor may come back on any connection, since clients use whichever
// of theirs is free.
//
// A scan is a Walk that stays open between its calls, so it lists each key that there was when it began once. Some keys are read ahead, so that a
// scan of few keys needs no open Walk: the store has room for only a few of these.
//
// Each call returns a new cursor for what is left; none is used twice. Cursors have at most 53 bits, since some clients keep numbers as doubles. One
// is known until the next call with it, or until nobody has come with it for kIdleMs. A call with an unknown cursor is refused: to answer that
// nothing is left would hide keys.
//
// When a worker has kMax scans, or the store no room for another Walk, a scan ends that seems to be abandoned: its last connection has gone, or has
// been given cursors of two other scans since, or it was not used for kUsedMs. If there is none, the new scan is refused. The store itself ends a
// scan for which it would have to keep too much.
//
// A scan lives on the worker that began it, whose memory it has. A call that comes to another worker is carried out there, by a task.
//
// Thread contract: as each call says; a Caller is used by its connection's task. Tables change only before there are connections, and when none is
// left.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/items/walk.h"
#include "server/resp/arguments.h"

namespace server {

class RespScans {
 public:
  static constexpr uint32_t kMaxWorkers = 256;
  static constexpr size_t kMax = 256;           // scans of a worker at a time
  static constexpr uint64_t kIdleMs = 60'000;   // a scan unused for this long is abandoned for certain
  static constexpr uint64_t kUsedMs = 5'000;    // the same when others need its place
  static constexpr uint64_t kMaxKeys = 4096;    // keys that a call looks at, whatever its COUNT
  static constexpr size_t kMaxBytes = 1 << 20;  // of the keys that a call returns, but for the last one
  static constexpr size_t kMaxAhead = 512;      // keys that are read ahead
  static constexpr size_t kMaxAheadBytes = 64 << 10;
  // When a task compares keys with a pattern, the worker's other tasks run after this many, and after each long one, which may take some time.
  static constexpr uint64_t kKeysInTurn = 64;
  static constexpr size_t kLongKeyBytes = 1024;
  // `key` is the count-th key.
  static bool ends_turn(uint64_t count, std::string_view key) {
    return count % kKeysInTurn == 0 || key.size() >= kLongKeyBytes;
  }

  RespScans();
  ~RespScans();
  RespScans(const RespScans&) = delete;
  RespScans& operator=(const RespScans&) = delete;

  // From now on connections of the worker may scan. Called on that worker. The items stay open until end().
  void begin(uint32_t worker, Items& items);
  // Ends the scans that were not used for kIdleMs. Called on that worker.
  void end_idle(uint32_t worker);
  // Ends all scans of the worker. Called on that worker. REQUIRES: no step is under way on any worker, and none will begin.
  void end(uint32_t worker);

  struct Step {
    uint64_t cursor = 0;  // for the next call; 0: nothing is left
    std::vector<std::string> keys;
  };
  // A connection that scans. Its calls are made by tasks of its worker.
  class Caller {
   public:
    // The items are those of the worker.
    Caller(RespScans& scans, uint32_t worker, Items& items) : scans_(scans), worker_(worker), items_(items) {}
    ~Caller() { leave(); }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
    // Errors: ESRCH for a cursor that is not known; EBUSY when there are too many scans; ENOMEM; those of Walk::open and Walk::next, after which the
    // scan has ended.
    base::Expected<Step> step(const resp::ScanRequest& request);
    // Opens a walk that is none of the scans. As Walk::open, but scans that seem to be abandoned end before it returns EBUSY.
    base::Expected<void> open(Walk& walk);
    // The connection abandons all of its scans.
    void leave();

   private:
    static constexpr size_t kMaxKept = 2;
    RespScans& scans_;
    const uint32_t worker_;
    Items& items_;
    std::vector<uint64_t> cursors_;  // that it was given and has not used yet, the oldest first
  };

 private:
  class Table;
  template <class Function>
  base::Expected<void> run_at(uint32_t home, uint32_t worker, Function function);
  void disown(uint32_t worker, uint64_t cursor);

  std::array<std::unique_ptr<Table>, kMaxWorkers> tables_;
};

}  // namespace server
