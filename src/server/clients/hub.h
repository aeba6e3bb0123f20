// Hub: what all connections of a server share, what is known of each of them, and what a client may ask the server to do.
//
// Thread contract: any thread, except as noted. Each connection is entered, and leaves, by its own task.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/probe.h"
#include "base/single_writer.h"
#include "server/clients/accounts.h"
#include "server/clients/prefix_counts.h"
#include "server/clients/resp_scans.h"
#include "server/clients/watchers.h"
#include "server/items/shared_items.h"
#include "server/net/stream.h"
#include "sys/lock.h"
#include "task/scheduler.h"

namespace server {

// Fixed while the server runs.
struct Settings {
  std::string version = {};  // as clients are told
  uint32_t worker_count = 1;
  uint32_t connections_max = 1024;            // of clients, at a time
  uint64_t memory_bytes = 0;                  // bound on the process (front/memory_bound.h); 0: none
  uint64_t item_bytes_max = 1 << 20;          // for memcached: value, key and memcached's overhead
  uint64_t value_bytes_max = 1 << 20;         // for Redis: a value
  uint16_t memcache_port = 0, resp_port = 0;  // 0: no listener of this kind, or none with a port
  Accounts accounts = {};                     // empty: clients need not say who they are
  std::string interface = {};                 // what memcached's -l said
  bool takes_shutdown = false;                // any client may end the server
  bool takes_watch = true;                    // clients of memcached may watch
  bool takes_flush = true;                    // any client may flush
  kv::Clock* movable_clock = nullptr;  // the store's clock, if clients may move it (debugtime, for tests)
  StreamOptions stream = {};
};

enum class Speech : uint8_t { kMemcache, kResp, kMetrics };
// "memcache", "resp", "metrics": static strings.
const char* name_of(Speech speech);

// An open connection. It lies on its task's stack.
struct Connection {
  // Its task sets these before enter(), except the links, which are the hub's.
  Connection* next = nullptr;
  Connection* previous = nullptr;
  uint64_t number = 0;  // given by the hub, from 1 on, never reused
  Speech speech = Speech::kMemcache;
  Stream* stream = nullptr;
  task::Task* task = nullptr;
  uint32_t worker = 0;
  std::string peer, own;  // addresses of both ends: "127.0.0.1:4711", or "unix" and a path
  uint64_t begun_ms = 0;  // since 1970
  // Its task changes these, and any thread reads them; is_killed is set by the hub.
  std::atomic<uint64_t> used_ms{0};  // when the last request came; until one does, when the connection began
  std::atomic<uint64_t> requests{0};
  std::atomic<const char*> command{""};  // the name of the last request, a static string
  std::atomic<int64_t> queued{-1};       // for a Redis client: requests since MULTI; -1: there was none
  std::atomic<bool> is_killed{false};    // its waits fail from now on, and its client is sent nothing more
  // A request has come. `asked` is a static string. Called by its task.
  void note_request(const char* asked) {
    base::increase(requests, uint64_t{1});
    command.store(asked, std::memory_order_relaxed);
    base::probes::request(number, reinterpret_cast<uintptr_t>(asked));
  }
  // What the client has said of itself, changed by Hub::change() only.
  std::string name, library, library_version;
  std::string user{Accounts::kDefaultUser};  // for a Redis client: the user it acts as
};

// Of clients; connections that ask for metrics are not counted.
struct ConnectionCounts {
  uint64_t now = 0;
  uint64_t total = 0;
  uint64_t refused = 0;                                       // because there were too many
  uint64_t idle = 0;                                          // ended because nothing came
  uint64_t received_bytes = 0, sent_bytes = 0, requests = 0;  // also those of connections that have ended
};

// Counts of the store that clients are told as if they had begun with the server's own.
struct StoreUse {
  uint64_t dropped_records = 0, expired_records = 0;
  uint64_t get_reads = 0;  // of the device, for gets
};

class Hub {
 public:
  // Both outlive it.
  Hub(const Settings& settings, SharedItems& items);
  const Settings& settings() const { return settings_; }
  SharedItems& items() { return items_; }
  uint64_t started_ms() const { return started_ms_; }

  // --- connections ---

  // The most connections of this kind at a time. Those for metrics have places of their own, so that monitoring works even when clients have taken
  // all of theirs.
  static constexpr uint32_t kMaxMetricsConnections = 16;
  uint32_t connections_max(Speech speech) const {
    return speech == Speech::kMetrics ? kMaxMetricsConnections : settings_.connections_max;
  }
  // Enters the connection, and gives it a number. False: there are too many, and it is not entered.
  bool enter(Connection& connection);
  // Removes the connection, and adds what it has counted to the totals. REQUIRES: its stream is still there.
  void leave(Connection& connection);
  // Calls the function under the lock: it must neither call the hub nor wait.
  void change(Connection& connection, const std::function<void(Connection&)>& change);
  // Calls `look` for all connections, oldest first, under the lock as change() does.
  void for_each(const std::function<void(const Connection&)>& look);
  // Ends the connections for which `is_meant` holds, whatever they wait for, and returns how many there were. Under the lock as above. The
  // caller's own connection ends when it next waits.
  size_t kill(const std::function<bool(const Connection&)>& is_meant);
  // Lets the connections of a worker end as soon as no request is under way (Stream::drain). REQUIRES: called on that worker.
  void drain(uint32_t worker);
  // Since the start or the last reset_counts().
  ConnectionCounts counts();
  ItemCounts item_counts();
  // `store` is what the store counts now.
  StoreUse store_use(const kv::StoreCounts& store);
  ConnectionCounts counts_since_start();
  // counts(), item_counts(), store_use(), and the counts of prefixes, watchers and admissions begin at 0 again.
  void reset_counts();

  // --- who may use the server ---

  // Is this the user's password?
  bool admits(std::string_view user, std::string_view password);
  bool knows(std::string_view user);
  // Replaces the settings' accounts. Clients that were admitted before stay admitted. REQUIRES: neither the old nor the new ones are empty.
  void change_accounts(Accounts accounts);
  // A client has given a name and a password, and was admitted or not.
  void note_admission(bool is_admitted) {
    admissions_.fetch_add(1, std::memory_order_relaxed);
    if (!is_admitted) rejections_.fetch_add(1, std::memory_order_relaxed);
  }
  // How often that happened, and how often the client was turned away.
  uint64_t admissions() const { return admissions_.load(std::memory_order_relaxed); }
  uint64_t rejections() const { return rejections_.load(std::memory_order_relaxed); }

  // --- the server ---

  // Tells the server to end, and logs why. The server finds out by on_end and end_wanted(). A call no more urgent than an earlier one does
  // nothing.
  enum class End : uint8_t { kNo, kDrained, kAtOnce };
  void end(End how, std::string_view why);
  End end_wanted() const { return end_.load(std::memory_order_acquire); }
  // Called by end(), by any thread. Set before there are connections.
  std::function<void()> on_end;

  std::atomic<int> verbosity{0};
  PrefixCounts prefixes;  // counts what clients of memcached ask for
  Watchers watchers;      // of what clients of memcached fetch and store, and of all connections
  RespScans scans;        // of clients of Redis

 private:
  static void add(const Connection& connection, ConnectionCounts& to);
  ConnectionCounts sum() const;
  // REQUIRES: accounts_lock_.
  const Accounts& accounts() const { return newer_accounts_ ? *newer_accounts_ : settings_.accounts; }
  ConnectionCounts& ended_of(Speech speech) { return speech == Speech::kMetrics ? metrics_ended_ : ended_; }

  const Settings& settings_;
  SharedItems& items_;
  const uint64_t started_ms_;
  std::atomic<End> end_{End::kNo};
  std::atomic<uint64_t> admissions_{0}, rejections_{0};
  sys::Mutex accounts_lock_;
  std::optional<Accounts> newer_accounts_;  // under accounts_lock_
  sys::Mutex lock_;                         // guards what follows
  Connection* first_ = nullptr;
  Connection* last_ = nullptr;
  uint64_t next_number_ = 1;
  ConnectionCounts ended_;          // of connections that have left; but now, total and refused are of all
  ConnectionCounts metrics_ended_;  // the same for connections that ask for metrics; not reported
  ConnectionCounts before_;         // at the last reset
  ItemCounts items_before_;
  StoreUse store_before_;
};

}  // namespace server
