// Delegation: the servers of a cache and the clients that ask them. (TriCache, section 3.2)
//
//   thread ── hit: compiled code reads the entry; the slow path finds the page in memory, under the partition's lock
//      │ miss
//   Client ──► Lines ──► Server ──► Partition::begin_load ──► LoadQueue ──► storage
//      ▲                   │ all requests of the message are done
//      └──── Lines ◄───────┘
//
// What the paper tells its servers in batches, that a page is used now or not any more, ours read: the entry says whether a
// page was used since the clock's hand passed, the frame's word how often it is pinned. So a hit sends nothing.
//
// A region of pages (cache.h) has one server; where there are fewer partitions than servers, these share them. Any thread may
// still do everything by itself, and does: without a client (all are taken, the servers are not there yet, as in a child of
// fork), for pages of mapped files, and when it was refused.
//
// Thread contract: of Client, one thread; the rest as said.
#pragma once
#include "cache/servers/server.h"

namespace cache {

class Delegation;

class Client {
 public:
  // Asks the server for `count` pages at once, and waits until it has done or refused all. Cost: two lines of the CPU's cache
  // that change hands; sleeps when the server takes long. False, and nothing was asked: it is asking already, for a child that has
  // the thread's memory and what it has in the runtime (CLONE_VM). REQUIRES: 1 <= count <= Lines::kMost.
  bool ask(Server& server, const Request* requests, uint32_t count, uint64_t* replies);
  void give_back();

 private:
  friend class Delegation;
  Delegation* delegation_ = nullptr;
  uint32_t number_ = 0;
  base::Idle idle_;
  std::atomic<bool> is_taken_{false};
  std::atomic<bool> is_asking_{false};
};

class Delegation {
 public:
  static constexpr uint32_t kMaxServers = kMaxPartitions;

  // `always`: also pages that are in memory are asked for, for comparison. Errors: as Server::open; ENOMEM.
  static base::Expected<Delegation*> create(Shared& shared, uint32_t server_count, bool always);
  // REQUIRES: all run() have returned; no client is taken.
  void destroy();
  // In a child of fork: what its parent's servers had is let go, but for memory, which inherited lanes still refer to.
  void forget();

  // Once, from when on clients find servers: how many of them have a thread. 0: none has.
  void start(uint32_t running_count) { running_count_.store(running_count, std::memory_order_release); }
  void run(uint32_t server) { servers_[server].run(); }
  void stop();

  bool is_running() const { return running_count_.load(std::memory_order_relaxed) != 0; }
  bool always() const { return always_; }
  // A client for the calling thread; null when all are taken, at the cost of a load. REQUIRES: is_running().
  Client* take_client();
  // REQUIRES: is_running().
  Server& server_of(PageId page) {
    return servers_[partition_of(page, shared_->region_shift, kMaxPartitions) %
                    running_count_.load(std::memory_order_acquire)];
  }

 private:
  friend class Client;
  uint64_t bytes_ = 0;
  const Shared* shared_ = nullptr;
  uint32_t server_count_ = 0;
  bool always_ = false;
  std::atomic<uint32_t> running_count_{0};
  std::atomic<uint32_t> free_count_{Server::kMaxClients};  // of clients, about
  Client clients_[Server::kMaxClients];
  Server servers_[];
};

}  // namespace cache
