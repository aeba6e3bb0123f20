// Delegation: the servers of a cache and the clients that ask them. (TriCache, section 3.2)
//
//   thread ── hit: compiled code reads the entry; the slow path finds the page in memory, under the partition's lock
//      │ miss
//   Client ──► Lines ──► Server ──► Partition::begin_load ──► LoadQueue ──► storage
//      ▲                   │ all requests of the message are done
//      └──── Lines ◄───────┘
//
// The paper's clients tell their servers in batches which pages are used now, and which are not any more. Ours need not: the entry says whether a page
// was used since it was cooled, and the frame's word how often it is pinned. So a hit sends nothing.
//
// A region of pages (cache.h) has one server; where there are fewer partitions than servers, these share them. Any thread may still do everything by
// itself. It does so without a client (all are taken, or there are no servers, as in a child of fork), for pages of mapped files, and when a server has
// refused.
//
// Thread contract: a Client is for one thread; the rest as said.
#pragma once
#include "cache/servers/server.h"

namespace cache {

class Delegation;

class Client {
 public:
  // Asks the server for `count` pages at once, and waits until it has done or refused all of them. Cost: two CPU lines that
  // change hands; sleeps when the server takes long. REQUIRES: 1 <= count <= Lines::kMax.
  void ask(Server& server, const Request* requests, uint32_t count, uint64_t* replies);
  void give_back();

 private:
  friend class Delegation;
  Delegation* delegation_ = nullptr;
  uint32_t number_ = 0;
  base::Idle idle_;
  std::atomic<bool> is_taken_{false};
};

class Delegation {
 public:
  static constexpr uint32_t kMaxServers = kMaxPartitions;

  // `always`: clients ask for pages that are in memory, too; for comparison. Errors: as Server::open; ENOMEM.
  static base::Expected<Delegation*> create(Shared& shared, uint32_t server_count, bool always);
  // REQUIRES: all run() have returned; no client is taken.
  void destroy();
  // In a child of fork: lets go of what the parent's servers had, but for their memory, to which inherited lanes still refer.
  void forget();

  // How many of the servers have a thread; clients ask them from now on. Called once. 0: there are none.
  void start(uint32_t running_count) { running_count_.store(running_count, std::memory_order_release); }
  void run(uint32_t server) { servers_[server].run(); }
  void stop();

  bool is_running() const { return running_count_.load(std::memory_order_relaxed) != 0; }
  bool always() const { return always_; }
  // A client for the calling thread; null if all are taken, which costs a load. REQUIRES: is_running().
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
  std::atomic<uint32_t> free_count_{Server::kMaxClients};  // clients that nobody has, about
  Client clients_[Server::kMaxClients];
  Server servers_[];
};

}  // namespace cache
