// Watchers: connections that are told what others do, a line for each event, as memcached's `watch` has it.
//
//   Watchers::Watcher watcher(watchers, Watchers::kFetches | Watchers::kStores);
//   watcher.take();                                     the lines since the last time
//
//   ts=1700000000.123456 gid=7 type=item_get key=KEY status=found clsid=0 cfd=3 size=5
//   ts=1700000000.123460 gid=8 type=item_store key=KEY status=stored cmd=set ttl=0 clsid=0 cfd=3 size=5
//   ts=1700000000.123470 gid=9 type=conn_new rip=127.0.0.1 rport=4711 transport=tcp cfd=4
//
// cfd is the number of the connection, as `stats conns` tells it; clsid is always 0, since there are no slab classes. Keys are percent-encoded, as
// in URLs.
//
//  1 a connection that is watched never waits: lines for which a watcher has no room are left out, and it is told how many they were (skipped=N)
//  2 an event that nobody watches costs a call and one load
//
// Thread contract: any thread; Watcher::take() by the watcher's own task.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sys/lock.h"

namespace server {

class Watchers {
 public:
  enum Kind : uint8_t { kFetches = 1, kStores = 2, kConnections = 4 };
  static constexpr size_t kMaxBytes = 256 << 10;  // of lines that wait for one watcher

  class Watcher {
   public:
    // It is told of these kinds of events, a sum of Kind, for as long as it lives.
    Watcher(Watchers& watchers, unsigned kinds);
    ~Watcher();
    Watcher(const Watcher&) = delete;
    Watcher& operator=(const Watcher&) = delete;
    // The lines since the last call.
    std::string take();

   private:
    friend class Watchers;
    Watchers& watchers_;
    const unsigned kinds_;
    std::string lines_;
    uint64_t skipped_ = 0;
  };

  bool wants(Kind kind) const { return (wanted_.load(std::memory_order_relaxed) & kind) != 0; }
  void tell_fetched(std::string_view key, bool is_found, uint64_t value_bytes, uint64_t connection);
  // `status` and `command` are memcached's words.
  void tell_stored(std::string_view key, std::string_view status, std::string_view command, int64_t exptime,
                   uint64_t value_bytes, uint64_t connection);
  // `peer` is HOST:PORT, or a text without a colon for a local socket. `reason` says why the connection has ended; "": it has begun.
  void tell_connection(std::string_view peer, std::string_view reason, uint64_t connection);

  struct Counts {
    uint64_t watchers = 0;
    uint64_t sent = 0, skipped = 0;  // lines, since the start or the last reset_counts()
  };
  Counts counts();
  // Lines are counted from 0 again.
  void reset_counts();

 private:
  void tell(Kind kind, std::string_view event);
  void set_wanted();

  std::atomic<unsigned> wanted_{0};  // the kinds that any watcher wants
  sys::Mutex lock_;                  // guards what follows, and the watchers' lines
  std::vector<Watcher*> watchers_;
  uint64_t next_number_ = 1;
  Counts counts_;
};

}  // namespace server
