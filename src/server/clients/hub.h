// Hub: what all connections of a server share, what is known of each, and what a client may ask of the server.
//
// Thread contract: by any, but where it says otherwise. Connections are entered and left by their own task.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

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
  uint32_t connections_most = 1024;    // of clients, at a time
  uint64_t memory_bytes = 0;           // that the process may use (front/memory_bound.h); 0: any
  uint64_t item_bytes_most = 1 << 20;  // memcached's: a value with its key and what memcached keeps beside it
  uint64_t value_bytes_most = 1 << 20;        // Redis's: a value
  uint16_t memcache_port = 0, resp_port = 0;  // 0: none
  Accounts accounts = {};                     // of clients; none: nobody says who he is
  std::string interface = {};                 // that it listens on, as memcached's -l
  bool takes_shutdown = false;                // from any client
  bool takes_watch = true;                    // from clients of memcached's protocol
  bool takes_flush = true;                    // from any client
  kv::Clock* movable_clock = nullptr;  // the store's: clients may move it (debugtime), for tests; null: not
  StreamOptions stream = {};
};

enum class Speech : uint8_t { kMemcache, kResp, kMetrics };
// "memcache", "resp", "metrics": texts that stay.
const char* name_of(Speech speech);

// One that is there. It is on its task's stack.
struct Connection {
  // Its own, and the hub's that link it.
  Connection* next = nullptr;
  Connection* previous = nullptr;
  uint64_t number = 0;  // from 1 on, never again
  Speech speech = Speech::kMemcache;
  Stream* stream = nullptr;
  task::Task* task = nullptr;
  uint32_t worker = 0;
  std::string peer, own;  // addresses: "127.0.0.1:4711", or "unix" and a path
  uint64_t begun_ms = 0;  // since 1970
  // Its task changes these; anybody looks.
  std::atomic<uint64_t> used_ms{0};  // when the last request came
  std::atomic<uint64_t> requests{0};
  std::atomic<const char*> command{""};  // the last one's name: a text that stays
  std::atomic<bool> is_killed{false};    // its next wait fails, and it is to say nothing more
  // A request has come; the text stays. Of its task.
  void note_request(const char* asked) {
    base::increase(requests, uint64_t{1});
    command.store(asked, std::memory_order_relaxed);
    base::probes::request(number, reinterpret_cast<uintptr_t>(asked));
  }
  // Under the hub's lock (Hub::change): what the client has said of itself.
  std::string name, library, library_version;
  std::string user{Accounts::kDefaultUser};  // who it is, of Redis' clients
};

// Of clients: who asks for metrics is none.
struct ConnectionCounts {
  uint64_t now = 0;
  uint64_t total = 0;
  uint64_t refused = 0;                                       // there were too many
  uint64_t idle = 0;                                          // have ended since nothing came
  uint64_t received_bytes = 0, sent_bytes = 0, requests = 0;  // of all, since the start or reset_counts()
};

class Hub {
 public:
  // Both outlive it.
  Hub(const Settings& settings, SharedItems& items);
  const Settings& settings() const { return settings_; }
  SharedItems& items() { return items_; }
  uint64_t started_ms() const { return started_ms_; }

  // --- connections ---

  // How many there may be that speak so, at a time. Those for metrics have places of their own: who looks after the server is answered when clients
  // have taken all of theirs, and takes none of them.
  static constexpr uint32_t kMetricsConnectionsMost = 16;
  uint32_t connections_most(Speech speech) const {
    return speech == Speech::kMetrics ? kMetricsConnectionsMost : settings_.connections_most;
  }
  // Gives it a number. False: there are too many; it is not entered.
  bool enter(Connection& connection);
  // What it has counted goes to the counts. REQUIRES: its stream is still there.
  void leave(Connection& connection);
  // Its client has said something of itself.
  void change(Connection& connection, const std::function<void(Connection&)>& change);
  // Of all, oldest first, under the lock: `look` calls nothing of this, and does not wait.
  void for_each(const std::function<void(const Connection&)>& look);
  // Ends those for which it holds, likewise, whatever they wait for; how many. The caller's own too: when it next waits.
  size_t kill(const std::function<bool(const Connection&)>& is_meant);
  // Those of a worker end when no request is under way (stream.h). REQUIRES: on that worker.
  void drain(uint32_t worker);
  ConnectionCounts counts();
  ConnectionCounts counts_since_start();
  // Both those, the prefixes', and what clients are told of items begin at 0 again.
  void reset_counts();
  // Of items, since the start or reset_counts().
  ItemCounts item_counts();

  // A client has said who it is.
  void note_admission(bool is_admitted) {
    admissions_.fetch_add(1, std::memory_order_relaxed);
    if (!is_admitted) rejections_.fetch_add(1, std::memory_order_relaxed);
  }
  // How many did, and how many of them were turned away.
  uint64_t admissions() const { return admissions_.load(std::memory_order_relaxed); }
  uint64_t rejections() const { return rejections_.load(std::memory_order_relaxed); }

  // --- the server ---

  // It is to end, and why is logged. Who runs it finds out by end_wanted(). A number that is greater counts: more haste.
  enum class End : uint8_t { kNo, kDrained, kAtOnce };
  void end(End how, std::string_view why);
  End end_wanted() const { return end_.load(std::memory_order_acquire); }
  // Called by end(), if set; of the server's start.
  std::function<void()> on_end;

  std::atomic<int> verbosity{0};
  PrefixCounts prefixes;  // of memcached's clients
  Watchers watchers;      // what those fetch and store, and the connections of all
  RespScans scans;        // of Redis' clients

 private:
  static void add(const Connection& connection, ConnectionCounts& to);
  ConnectionCounts sum() const;
  ConnectionCounts& ended_of(Speech speech) { return speech == Speech::kMetrics ? metrics_ended_ : ended_; }

  const Settings& settings_;
  SharedItems& items_;
  const uint64_t started_ms_;
  std::atomic<End> end_{End::kNo};
  std::atomic<uint64_t> admissions_{0}, rejections_{0};
  sys::Mutex lock_;  // of what follows
  Connection* first_ = nullptr;
  Connection* last_ = nullptr;
  uint64_t next_number_ = 1;
  ConnectionCounts ended_;          // of those that have left; `now` and `total` of all
  ConnectionCounts metrics_ended_;  // likewise of those for metrics, of which nobody is told
  ConnectionCounts before_;         // at the last reset
  ItemCounts items_before_;
};

}  // namespace server
