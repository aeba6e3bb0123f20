#include "cache/servers/delegation.h"

#include <new>

#include "sys/kernel.h"
#include "sys/memory.h"

namespace cache {

void Client::ask(Server& server, const Request* requests, uint32_t count, uint64_t* replies) {
  Lines& lines = server.lines(number_);
  const auto wait = [&] {
    while (!lines.is_free()) {
      __builtin_ia32_pause();
      if (idle_.should_sleep(sys::monotonic_ns)) lines.sleep();
    }
    idle_.end();
  };
  // The last thread that had this client may have ended while it waited for an answer.
  wait();
  uint64_t words[Lines::kMax];
  for (uint32_t i = 0; i < count; ++i) words[i] = requests[i].word();
  lines.send(words, count);
  server.ring();
  wait();
  for (uint32_t i = 0; i < count; ++i) replies[i] = lines.reply(i);
}

void Client::give_back() {
  is_taken_.store(false, std::memory_order_release);
  delegation_->free_count_.fetch_add(1, std::memory_order_relaxed);
}

base::Expected<Delegation*> Delegation::create(Shared& shared, uint32_t server_count, bool always) {
  CHECK_LE(server_count, kMaxServers);
  const uint64_t bytes =
      base::round_up(sizeof(Delegation) + server_count * sizeof(Server), base::kOsPageBytes);
  auto memory = sys::map_anonymous(bytes, "the servers of the cache");
  if (!memory) return std::unexpected(memory.error());
  auto* const delegation = new (*memory) Delegation;
  delegation->bytes_ = bytes;
  delegation->shared_ = &shared;
  delegation->always_ = always;
  for (uint32_t i = 0; i < Server::kMaxClients; ++i) {
    delegation->clients_[i].delegation_ = delegation;
    delegation->clients_[i].number_ = i;
  }
  for (uint32_t i = 0; i < server_count; ++i) {
    Server* const server = new (&delegation->servers_[i]) Server;
    ++delegation->server_count_;
    if (auto opened = server->open(shared); !opened) {
      delegation->destroy();
      return std::unexpected(opened.error());
    }
  }
  return delegation;
}

void Delegation::destroy() {
  for (uint32_t i = 0; i < server_count_; ++i) servers_[i].close();
  sys::unmap(this, bytes_);
}

void Delegation::forget() {
  for (uint32_t i = 0; i < server_count_; ++i) servers_[i].forget();
}

void Delegation::stop() {
  for (uint32_t i = 0; i < server_count_; ++i) servers_[i].stop();
}

Client* Delegation::take_client() {
  // Relaxed: a stale count costs a search in vain, or delays the client until the thread's next miss.
  if (free_count_.load(std::memory_order_relaxed) == 0) return nullptr;
  const uint32_t running = running_count_.load(std::memory_order_acquire);
  for (Client& client : clients_) {
    // Acquire: pairs with give_back(), for what the client's last thread left.
    if (client.is_taken_.load(std::memory_order_relaxed) ||
        client.is_taken_.exchange(true, std::memory_order_acquire))
      continue;
    free_count_.fetch_sub(1, std::memory_order_relaxed);
    for (uint32_t i = 0; i < running; ++i) servers_[i].look_at_clients(client.number_ + 1);
    return &client;
  }
  return nullptr;
}

}  // namespace cache
