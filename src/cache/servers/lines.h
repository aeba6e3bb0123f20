// Lines: the message lines between one client and one server, a pair of CPU cache lines; each side writes one of them.
// (TriCache, section 3.2)
//
//   request line   message | sleeps | 7 requests of 8 bytes     written by the client
//   reply line     message | -      | 7 replies of 8 bytes      written by the server
//
//   message        number of the message << 3 | how many requests it has. The lines are free when both have the same `message`
//
// Client   1 waits until the lines are free   2 stores the requests, then `message` (release)   3 polls until the lines are free again; to sleep
//            instead, it sets sleeps = 1, looks once more, and waits on the reply line's `message`   4 reads the replies
// Server   1 finds a `message` that it has not taken (acquire)   2 reads the requests, stores the replies   3 stores the same `message` in the reply
//            line (release)   4 wakes the client if it sleeps. Each side has a fence between its store and its load: at least one sees the other's
//
// Zeroed memory is a free pair of lines.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/ids.h"
#include "sys/lock.h"

namespace cache {

class Lines {
 public:
  static constexpr uint32_t kMax = 7;  // requests in a message

  // Of the client.
  bool is_free() const {
    // Acquire: pairs with answer(), so that the replies are visible.
    return reply_.message.load(std::memory_order_acquire) == request_.message.load(std::memory_order_relaxed);
  }
  // REQUIRES: is_free(), 1 <= count <= kMax.
  void send(const uint64_t* requests, uint32_t count) {
    CHECK_GE(count, 1u);
    CHECK_LE(count, kMax);
    for (uint32_t i = 0; i < count; ++i) request_.words[i] = requests[i];
    const uint32_t number = (request_.message.load(std::memory_order_relaxed) >> kCountBits) + 1;
    request_.message.store(number << kCountBits | count, std::memory_order_release);  // pairs with take()
  }
  // REQUIRES: is_free() after send().
  uint64_t reply(uint32_t i) const { return reply_.words[i]; }
  // Sleeps until the lines may be free. lie_down() is its first half, so that tests can try all interleavings with the server's steps.
  void sleep() {
    const uint32_t seen = lie_down();
    if (!is_free()) sys::futex_wait(reply_.message, seen);
    get_up();
  }
  uint32_t lie_down() {
    const uint32_t seen = reply_.message.load(std::memory_order_relaxed);
    request_.sleeps.store(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with answer()'s
    return seen;
  }
  void get_up() { request_.sleeps.store(0, std::memory_order_relaxed); }

  // Of the server. Takes the message if it is not `taken`, which is set to it; returns how many requests it has. 0: there is none.
  uint32_t take(uint32_t& taken) {
    const uint32_t message = request_.message.load(std::memory_order_acquire);
    if (message == taken) return 0;
    taken = message;
    return message & ((1u << kCountBits) - 1);
  }
  bool has_message(uint32_t taken) const { return request_.message.load(std::memory_order_relaxed) != taken; }
  uint64_t request(uint32_t i) const { return request_.words[i]; }
  void set_reply(uint32_t i, uint64_t reply) { reply_.words[i] = reply; }
  // Tells the client that all replies to the message are set.
  void answer(uint32_t taken) {
    if (publish_replies(taken)) sys::futex_wake(reply_.message, 1);
  }
  // The first half of answer(): must the client be woken?
  bool publish_replies(uint32_t taken) {
    reply_.message.store(taken, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return request_.sleeps.load(std::memory_order_relaxed) != 0;
  }

 private:
  static constexpr unsigned kCountBits = 3;
  static_assert(kMax < 1u << kCountBits);

  struct alignas(base::kLineBytes) RequestLine {
    std::atomic<uint32_t> message;
    std::atomic<uint32_t> sleeps;
    uint64_t words[kMax];
  };
  struct alignas(base::kLineBytes) ReplyLine {
    std::atomic<uint32_t> message;
    uint64_t words[kMax];
  };
  static_assert(sizeof(RequestLine) == base::kLineBytes && sizeof(ReplyLine) == base::kLineBytes);

  RequestLine request_;
  ReplyLine reply_;
};

}  // namespace cache
