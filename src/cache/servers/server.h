// Server: a thread that makes the pages of some of a cache's regions resident for other threads. (TriCache, section 3.2)
//
// Clients (delegation.h) ask through message lines. The server begins the loads of all requests that it finds, so that the reads of
// many clients are under way together, finishes those whose reads are done, and answers a message when all of its requests are done.
//
// Turn    1 finishes loads whose reads are done   2 answers requests whose load has ended, or begins them again   3 takes messages that clients have
//         sent, and begins their requests   4 after a while without any of that: sleeps until a client rings or a read is done
//
// Invariants
//  1 it waits for nothing that a client may hold up. What it cannot have at once (a page that another thread loads, a frame while all are pinned or
//    held, a read that fails) it refuses, and the client loads the page itself, as without servers. So clients get the errors, and report them as usual
//  2 it works in partitions under their locks, as every thread does: others work in them, too
//  3 a request belongs to the server from take() until its message is answered; a load that was begun for it may be finished by any
//    thread (load_queue.h), which puts it on the list ended_
//
// Thread contract: run() is the server's thread; any thread may call ring() and stop().
#pragma once
#include "base/idle.h"
#include "cache/partition/load_queue.h"
#include "cache/partition/partition.h"
#include "cache/servers/bell.h"
#include "cache/servers/lines.h"

namespace cache {

// What a client asks for: 8 bytes of a message. The reply is kRefused, or, to a pin, the address of the page's memory, and, to a load, kThere.
struct Request {
  static constexpr uint64_t kRefused = 0;
  static constexpr uint64_t kThere = 1;

  PageId page{};
  bool pin = false;  // false: the page only becomes resident, with open entries

  uint64_t word() const { return index(page) << 1 | pin; }
  static Request of(uint64_t word) { return {.page = PageId{word >> 1}, .pin = (word & 1) != 0}; }
};

class Server {
 public:
  static constexpr uint32_t kMaxClients = 256;

  // Errors: as Workspace::create, LoadQueues::open, Bell::open; ENOMEM. close() closes what was opened before the error.
  base::Expected<void> open(Shared& shared);
  // REQUIRES: run() has returned, or its thread is not in this process.
  void close();
  // In a child of fork, for a server of the parent's: releases all but the memory. REQUIRES: LoadQueues::forget().
  void forget();

  // Serves until stop(). REQUIRES: no client waits for an answer when stop() is called.
  void run();
  void stop();
  void ring() { bell_.ring(); }

  Lines& lines(uint32_t client);
  // Serves clients below `end`: those from `end` on have never sent anything. It only grows.
  void look_at_clients(uint32_t end) {
    uint32_t before = client_end_.load(std::memory_order_relaxed);
    while (before < end && !client_end_.compare_exchange_weak(before, end, std::memory_order_relaxed)) {
    }
  }

 private:
  // How often the server loads a page to pin it, only to find it evicted again, before it leaves that to the client.
  static constexpr uint32_t kMaxTries = 4;

  struct Desk;
  struct Asked {
    Server* server;
    Desk* desk;
    Request request;
    uint32_t number;  // in the message
    uint32_t tries;
    Asked* next;  // in the list of those whose load has ended
  };
  // The server's state for one client.
  struct Desk {
    Lines lines;
    uint32_t taken;  // the last message
    uint32_t left;   // how many of its requests are not done
    Stream stream;   // of the client's misses
    Asked asked[Lines::kMax];
  };

  size_t take_messages();
  size_t settle_ended();
  void begin(Asked& asked);
  void refuse(Asked& asked);
  void settle(Asked& asked, uint64_t reply);
  bool has_work() const;
  static void load_ended(void* asked);

  Shared* shared_ = nullptr;
  Workspace* workspace_ = nullptr;
  LoadQueue* loads_ = nullptr;
  Desk* desks_ = nullptr;  // kMaxClients of them; zeroed memory is an unused desk
  base::Idle idle_;
  // Other threads store to these.
  alignas(base::kLineBytes) std::atomic<Asked*> ended_{nullptr};  // the list of those whose load has ended
  std::atomic<uint32_t> client_end_{0};
  std::atomic<bool> stop_{false};
  Bell bell_;
};

}  // namespace cache
