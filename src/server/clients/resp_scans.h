// RespScans: the scans (SCAN) that a connection has under way, and their cursors.
//
// A scan is a Walk that stays open between its calls: it lists the keys as they were when it began, each once. Some keys are read ahead: a
// scan of few keeps no Walk open, of which the store has room for some only. Each call has a new cursor,
// which tells of what is left; none is ever used again, by any connection. A cursor is known until the next call with it; until kMost later
// scans of the connection have begun; until kIdleMs have passed when another call comes; and to the connection that began it. The store
// ends a scan itself when it would have to keep too much for it. Who comes with a cursor that is not known is told so: to answer that
// nothing is left would hide keys.
//
// Thread contract: as of the Items, which outlive it.
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
  static constexpr size_t kMost = 2;             // at a time
  static constexpr uint64_t kIdleMs = 60'000;    // since the last call
  static constexpr uint64_t kKeysMost = 4096;    // that are looked at in a call, whatever its count is
  static constexpr size_t kBytesMost = 1 << 20;  // of a call's keys, but for the last one
  static constexpr size_t kAheadMost = 512;      // keys that are read ahead
  static constexpr size_t kAheadBytesMost = 64 << 10;

  // The connection's number begins its cursors.
  RespScans(Items& items, uint64_t connection_number)
      : items_(items), next_cursor_((connection_number << kCursorBits) + 1) {}

  struct Step {
    uint64_t cursor = 0;  // of the next call; 0: there is none
    std::vector<std::string> keys;
  };
  // Errors: ESRCH for a cursor that is not known; EBUSY: others scan too; as Walk::open and Walk::next, after which the scan has ended.
  base::Expected<Step> step(const resp::ScanRequest& request);
  void close();

 private:
  static constexpr unsigned kCursorBits = 24;
  struct Scan {
    uint64_t cursor = 0;
    uint64_t used_ms = 0;
    std::unique_ptr<Walk> walk;      // null: there are no more keys than those ahead
    std::vector<std::string> ahead;  // the next one last

    bool has_more() const { return walk != nullptr || !ahead.empty(); }
    void end() { *this = {}; }
  };

  void close_idle();
  base::Expected<Scan*> begin();
  static base::Expected<void> read_ahead(Scan& scan);
  static base::Expected<void> fill(Scan& scan, const resp::ScanRequest& request, Step& step);

  Items& items_;
  uint64_t next_cursor_;
  std::array<Scan, kMost> scans_;
};

}  // namespace server
