// Server: a thread that makes pages resident for others, those of some of a cache's regions. (TriCache, section 3.2)
//
// Clients (delegation.h) ask by message lines. The server begins the loads of all requests that it finds, so that the reads of
// many clients are under way together, ends those whose reads are done, and answers a message when all of its requests are.
//
// Turn    1 loads whose reads are done are ended   2 requests whose load has ended are answered, or begun again   3 messages
//         that clients sent are taken, and their requests begun   4 nothing of all that for a while: it sleeps, until a client
//         rings, or a read is done
//
// Invariants
//  1 it waits for nothing that a client may hold up: what it cannot have at once (a page that another thread loads, frames that
//    are all pinned or held, a read that fails) it refuses, and the client does that by itself, as without servers. So the
//    errors are the client's, and told as ever
//  2 what it does to partitions it does under their locks, as every thread: others work in them, too
//  3 a request belongs to the server from take() until its message is answered; a load that was begun for it may be ended by any
//    thread (load_queue.h), which puts it on the list of those that have ended
//
// Thread contract: run() is the server's thread; ring() and stop() are for all.
#pragma once
#include "base/idle.h"
#include "cache/partition/load_queue.h"
#include "cache/partition/partition.h"
#include "cache/servers/bell.h"
#include "cache/servers/lines.h"

namespace cache {

// What a client asks for, 8 bytes of a message. The reply is the address of the page's memory for a pin; kThere for a load;
// kRefused.
struct Request {
  static constexpr uint64_t kRefused = 0;
  static constexpr uint64_t kThere = 1;

  PageId page{};
  bool pin = false;  // else the page only becomes resident, with open entries

  uint64_t word() const { return index(page) << 1 | pin; }
  static Request of(uint64_t word) { return {.page = PageId{word >> 1}, .pin = (word & 1) != 0}; }
};

class Server {
 public:
  static constexpr uint32_t kMaxClients = 256;

  // Errors: as Lane::create, LoadQueues::open, Bell::open; ENOMEM. What was opened is closed by close().
  base::Expected<void> open(Shared& shared);
  // REQUIRES: run() has returned, or its thread is not in this process.
  void close();
  // In a child of fork, whose servers are its parent's: what is left of this one that is not memory. REQUIRES:
  // LoadQueues::forget().
  void forget();

  // Serves until stop(). REQUIRES: no client waits for an answer then.
  void run();
  void stop();
  void ring() { bell_.ring(); }

  Lines& lines(uint32_t client);
  // Clients from `end` on have never sent anything; it only grows.
  void look_at_clients(uint32_t end) {
    uint32_t before = client_end_.load(std::memory_order_relaxed);
    while (before < end && !client_end_.compare_exchange_weak(before, end, std::memory_order_relaxed)) {
    }
  }

 private:
  // How often a page is loaded to be pinned, before that is left to the client.
  static constexpr uint32_t kMostTries = 4;

  struct Desk;
  struct Asked {
    Server* server;
    Desk* desk;
    Request request;
    uint32_t number;  // in the message
    uint32_t tries;
    Asked* next;  // of those whose load has ended
  };
  // What it has of a client.
  struct Desk {
    Lines lines;
    uint32_t taken;  // the last message
    uint32_t left;   // requests of it that are not done
    Stream stream;   // of the client's misses
    Asked asked[Lines::kMost];
  };

  size_t take_messages();
  size_t settle_ended();
  void begin(Asked& asked);
  void refuse(Asked& asked);
  void settle(Asked& asked, uint64_t reply);
  bool has_work() const;
  static void load_ended(void* asked);

  Shared* shared_ = nullptr;
  Lane* lane_ = nullptr;
  LoadQueue* loads_ = nullptr;
  Desk* desks_ = nullptr;  // kMaxClients; zeros are a desk that nobody has used
  base::Idle idle_;
  // What others write.
  alignas(base::kLineBytes) std::atomic<Asked*> ended_{nullptr};  // last in, first
  std::atomic<uint32_t> client_end_{0};
  std::atomic<bool> stop_{false};
  Bell bell_;
};

}  // namespace cache
