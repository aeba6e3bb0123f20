// Delegation: the servers of a cache and the clients that ask them. (TriCache, section 3.2)
//
//   thread ── hit: compiled code reads the entry; the slow path finds the page in memory, under the partition's lock
//      │ miss
//   Client ──► Lines ──► Server ──► Partition::begin_load ──► LoadQueue ──► storage
//      ▲                   │ all requests of the message are done
//      └──── Lines ◄───────┘
//
// The paper's clients tell their servers in batches which pages come into and go out of use. Ours need not: the entry says whether a page was used
// since it was cooled, and the frame's state word how often it is pinned. So a hit sends nothing.
//
// Each region of pages (cache.h) has one server; if there are fewer partitions than servers, several servers work in one partition. Any thread can
// still do everything itself. It does so without a client (all are taken, or there are no servers, as in a child of fork), for pages of mapped files,
// and when a server has refused.
//
// Thread contract: a Client is for one thread; the rest as stated.
#pragma once
#include "cache/servers/server.h"

namespace cache {

class Delegation;

class Client {
 public:
  // Asks the server for `count` pages at once, and waits until it has loaded or refused all of them. Cost: transfers of two CPU
  // lines; sleeps when the server takes long. REQUIRES: 1 <= count <= Lines::kMax.
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

  // `always`: clients ask even for pages that are in memory; for comparison. Errors: as Server::open; ENOMEM.
  static base::Expected<Delegation*> create(Shared& shared, uint32_t server_count, bool always);
  // REQUIRES: all run() have returned; no client is taken.
  void destroy();
  // In a child of fork: releases what the parent's servers had, except their memory, to which inherited workspaces still refer.
  void forget();

  // `running_count`: how many of the servers have a thread; clients ask these from now on. Called once. 0: none.
  void start(uint32_t running_count) { running_count_.store(running_count, std::memory_order_release); }
  void run(uint32_t server) { servers_[server].run(); }
  void stop();

  bool is_running() const { return running_count_.load(std::memory_order_relaxed) != 0; }
  bool always() const { return always_; }
  // A client for the calling thread; null if all are taken, which costs only a load. REQUIRES: is_running().
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
  std::atomic<uint32_t> free_count_{Server::kMaxClients};  // roughly how many clients are free
  Client clients_[Server::kMaxClients];
  Server servers_[];
};

}  // namespace cache
