#include "cache/servers/server.h"

#include "base/statistics.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace cache {

base::Expected<void> Server::open(Shared& shared) {
  shared_ = &shared;
  if (auto opened = bell_.open(); !opened) return opened;
  auto desks = sys::map_anonymous(kMaxClients * sizeof(Desk), "a server's message lines");
  if (!desks) return std::unexpected(desks.error());
  desks_ = reinterpret_cast<Desk*>(*desks);
  auto workspace = Workspace::create(*shared.device, shared.page_bytes);
  if (!workspace) return std::unexpected(workspace.error());
  workspace_ = *workspace;
  // Clients load pages with another origin themselves.
  auto loads = shared.loads.open(*shared.device, nullptr);
  if (!loads) return std::unexpected(loads.error());
  loads_ = *loads;
  return {};
}

void Server::close() {
  if (loads_ != nullptr) shared_->loads.close(*loads_);
  if (workspace_ != nullptr) workspace_->destroy();
  sys::unmap(desks_, kMaxClients * sizeof(Desk));
  bell_.close();
}

void Server::forget() {
  // A queue with something in flight cannot be closed, only forgotten.
  if (workspace_ != nullptr && workspace_->queue().in_flight_count() == 0) workspace_->destroy();
  bell_.close();
}

Lines& Server::lines(uint32_t client) { return desks_[client].lines; }

void Server::stop() {
  stop_.store(true, std::memory_order_relaxed);
  ring();
}

void Server::run() {
  while (!stop_.load(std::memory_order_relaxed)) {
    if (loads_->poll() + settle_ended() + take_messages() > 0) {
      idle_.end();
      continue;
    }
    __builtin_ia32_pause();
    if (!idle_.should_sleep(sys::monotonic_ns)) continue;
    bell_.lie_down();
    if (has_work()) {
      bell_.get_up();
      continue;
    }
    if (bell_.sleep(loads_->quiet())) base::statistics.cache_server_sleeps.add();
  }
}

// Looks for work from other threads. Reads that are done wake the server in another way.
bool Server::has_work() const {
  if (stop_.load(std::memory_order_relaxed) || ended_.load(std::memory_order_relaxed) != nullptr) return true;
  const uint32_t end = client_end_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < end; ++i)
    if (desks_[i].lines.has_message(desks_[i].taken)) return true;
  return false;
}

size_t Server::take_messages() {
  size_t taken_count = 0;
  const uint32_t end = client_end_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < end; ++i) {
    Desk& desk = desks_[i];
    const uint32_t count = desk.lines.take(desk.taken);
    if (count == 0) continue;
    ++taken_count;
    base::statistics.cache_server_messages.add();
    base::statistics.cache_server_requests.add(count);
    desk.left = count;
    for (uint32_t number = 0; number < count; ++number) {
      desk.asked[number] = {.server = this,
                            .desk = &desk,
                            .request = Request::of(desk.lines.request(number)),
                            .number = number,
                            .tries = 0,
                            .next = nullptr};
      begin(desk.asked[number]);
    }
  }
  return taken_count;
}

void Server::begin(Asked& asked) {
  const auto [page, pin] = asked.request;
  Partition& partition = shared_->of(page);
  while (asked.tries++ < kMaxTries) {
    char* bytes = nullptr;
    if (pin && partition.look(page, true, bytes) == Partition::Look::kThere) {
      // In later attempts it is there because the server has loaded it.
      if (asked.tries == 1) base::statistics.cache_hits.add();
      return settle(asked, reinterpret_cast<uint64_t>(bytes));
    }
    const auto begun =
        partition.begin_load(page, *workspace_, asked.desk->stream, *loads_, load_ended, &asked);
    if (!begun) break;
    if (*begun == Partition::Begun::kUnderWay) return;
    if (*begun != Partition::Begun::kDone) break;
    if (!pin) return settle(asked, Request::kThere);
  }
  refuse(asked);
}

// Called by the thread that finishes the load, perhaps while the server is in begin().
void Server::load_ended(void* context) {
  Asked& asked = *static_cast<Asked*>(context);
  Server& server = *asked.server;
  asked.next = server.ended_.load(std::memory_order_relaxed);
  // Release: pairs with settle_ended().
  while (!server.ended_.compare_exchange_weak(asked.next, &asked, std::memory_order_release,
                                              std::memory_order_relaxed)) {
  }
  server.ring();
}

size_t Server::settle_ended() {
  size_t ended_count = 0;
  Asked* asked = ended_.exchange(nullptr, std::memory_order_acquire);
  while (asked != nullptr) {
    Asked* const next = asked->next;
    if (asked->request.pin)
      begin(*asked);
    else if (shared_->table->entry(asked->request.page, 0) != Table::kUnknown)
      settle(*asked, Request::kThere);
    else
      refuse(*asked);  // its read failed, or it was evicted again
    asked = next;
    ++ended_count;
  }
  return ended_count;
}

void Server::refuse(Asked& asked) {
  base::statistics.cache_server_refusals.add();
  settle(asked, Request::kRefused);
}

void Server::settle(Asked& asked, uint64_t reply) {
  Desk& desk = *asked.desk;
  desk.lines.set_reply(asked.number, reply);
  if (--desk.left == 0) desk.lines.answer(desk.taken);
}

}  // namespace cache
