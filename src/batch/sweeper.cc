#include "batch/sweeper.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "batch/table.h"
#include "sys/kernel.h"

namespace batch {

base::Expected<std::unique_ptr<Sweeper>> Sweeper::start(Table& table, uint32_t stale_ms_max) {
  std::unique_ptr<Sweeper> made(new (std::nothrow) Sweeper(table, stale_ms_max));
  if (made == nullptr) return base::failure(ENOMEM, "no memory for a table's thread");
  auto started = sys::start_thread(&Sweeper::run, made.get(), "batch-sweeper");
  if (!started) return std::unexpected(started.error());
  made->thread_ = *started;
  return made;
}

Sweeper::~Sweeper() {
  if (thread_.handle == 0) return;
  ends_.store(true, std::memory_order_release);
  event_.notify_all();
  sys::join_thread(thread_);
}

void Sweeper::run(void* argument) {
  Sweeper& self = *static_cast<Sweeper*>(argument);
  Session session(self.table_, Session::Whose::kTables);
  // Half of the time: a change that is staged just after a flush has begun is made by the next flush, which itself takes a while.
  const uint64_t turn_ns = uint64_t{self.stale_ms_max_} * 1'000'000 / 2;
  uint64_t flush_ns = 0;
  for (;;) {
    const uint32_t key = self.event_.prepare();
    if (self.ends_.load(std::memory_order_acquire)) return self.event_.cancel();
    self.event_.wait(key, turn_ns > flush_ns ? turn_ns - flush_ns : 1);
    const uint64_t begin = sys::monotonic_ns();
    // Changes that have no room are dropped, and counted.
    if (is_staging(self.table_.engine())) static_cast<void>(session.flush());
    flush_ns = sys::monotonic_ns() - begin;
  }
}

}  // namespace batch
