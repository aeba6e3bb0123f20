// Server: workers that accept connections and answer them, until it is told to end.
//
//   Server server;
//   server.listen({.memcache = {"11211"}});
//   server.open(store);
//   server.run();       returns when it has ended
//   server.close();
//
// A worker is a thread with a task for each of its connections. Worker 0 accepts connections, and gives them to all workers in turn.
//
//   end() ──► no more connections are accepted, and the listening sockets are closed
//         ──► on each worker connections end as soon as no request of theirs is under way (Stream::drain)
//         ──► those that are left after drain_ns, or when the server is to end at once, are cut off
//         ──► run() returns; what was acknowledged is in the store, which its owner closes
//
// Thread contract: listen(), open(), run() and close() by one thread; end() by any.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kv/store.h"
#include "server/clients/hub.h"
#include "server/front/address.h"
#include "server/front/memory_bound.h"
#include "task/future.h"
#include "task/scheduler.h"

namespace server {

struct ServerOptions {
  Settings settings = {};  // listen() sets its ports
  // The addresses at which it listens for each kind of client (address.h); those that begin with "tls:" speak TLS.
  std::vector<std::string> memcache = {}, resp = {}, metrics = {};
  TlsOptions tls = {};  // without a certificate there is no TLS
  // Sockets that listen already. The server takes them over.
  struct Given {
    Speech speech = Speech::kMemcache;
    bool is_tls = false;
    int descriptor = -1;
  };
  std::vector<Given> given = {};
  unsigned unix_mode = 0700;  // of sockets in the file system
  uint64_t drain_ns = 10'000'000'000;
  // A connection that asks for metrics ends when no request has come, and been answered, for this long: browsers, or a client that sends a byte now
  // and then, would otherwise hold a place for good (Hub::kMaxMetricsConnections).
  uint64_t metrics_exchange_ns = 60'000'000'000;
  // The server takes SIGTERM, SIGINT and SIGHUP, which the caller has blocked in all threads. The first two end it, and at once if it is ending
  // already. After SIGHUP it opens the log and reads the files of TLS and of passwords again, and logs what it has done.
  bool takes_signals = false;
  std::string password_file = {};  // where settings.accounts are from; "": from no file
  std::string log_file = {};       // where the caller has sent the log (log_file.h); "": to no file
};

// A socket that listens.
struct Listening {
  Address address;
  Speech speech = Speech::kMemcache;
  int descriptor = -1;
  bool is_tls = false;
  bool is_given = false;  // somebody else has made it, and removes its file
};

class Server {
 public:
  Server();
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Clients that connect from now on are answered when the server runs. Errors: those of addresses and of Tls::open; EINVAL if it would listen
  // nowhere, if a certificate is missing, or if it is of no use since no address begins with "tls:".
  base::Expected<void> listen(ServerOptions options);
  // Errors: those of SharedItems and MemoryBound, ENOMEM. The store, which was opened with Settings::memory_bytes, stays until close(), also after an
  // error.
  base::Expected<void> open(kv::Store& store);
  // Also closes a server that only listens, or could not be opened; does nothing to one that is closed. The destructor does the same.
  void close();

  const std::vector<Listening>& listening() const { return listening_; }
  Hub& hub() { return *hub_; }

  // Returns when the server has ended. Errors: EAGAIN, EMFILE, ENOMEM, those of task::Socket::take: it could not begin.
  base::Expected<void> run();
  void end(Hub::End how) { hub_->end(how, "it was told to"); }

 private:
  struct Worker;

  void add(const Listening& listening);
  base::Expected<void> listen_at_all(std::string_view text, Speech speech);
  base::Expected<void> open_tls();
  void lead();
  base::Expected<void> begin_workers();
  void keep_worker(Worker& worker);
  void drain(Worker& worker);
  void give_up(const base::Error& error);
  void accept_from(Listening& listening);
  void tell_that_connections_wait(const Listening& listening, const base::Error& error);
  void take_signals();
  void reload();
  void reopen_log();
  void renew_tls();
  void read_passwords();
  void give(const Listening& listening, int descriptor);
  void serve(Worker& worker, const Listening& listening, int descriptor);
  int answer(Worker& worker, Connection& connection);
  void tell_end(const Connection& connection, const base::Expected<void>& served);

  ServerOptions options_;
  Tls tls_;
  SharedItems items_;
  MemoryBound memory_;
  std::unique_ptr<Hub> hub_;
  std::vector<Listening> listening_;
  std::vector<std::unique_ptr<Worker>> workers_;
  task::Scheduler scheduler_;
  task::Future ended_;  // somebody has called end()
  std::atomic<bool> has_ended_{false};
  task::Future accepts_none_;  // workers are given no more connections
  task::Future closes_;        // no worker has any connections left
  size_t next_worker_ = 0;
  uint64_t told_ns_ = 0;  // when it was last logged that connections have to wait
  base::Expected<void> outcome_;
};

}  // namespace server
