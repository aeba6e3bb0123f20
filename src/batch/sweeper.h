// Sweeper: a thread of the table that makes staged changes after a while, if nothing else has made them.
#pragma once
#include <atomic>
#include <memory>

#include "base/error.h"
#include "sys/lock.h"
#include "sys/threads.h"

namespace batch {

class Table;

class Sweeper {
 public:
  // No change stays staged for longer than stale_ms_max milliseconds, if the thread gets enough CPU time. Errors: ENOMEM, EAGAIN. REQUIRES:
  // stale_ms_max > 0.
  static base::Expected<std::unique_ptr<Sweeper>> start(Table& table, uint32_t stale_ms_max);
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;
  // REQUIRES: the table's lock of growth is free.
  ~Sweeper();

 private:
  Sweeper(Table& table, uint32_t stale_ms_max) : table_(table), stale_ms_max_(stale_ms_max) {}
  static void run(void* sweeper);

  Table& table_;
  const uint32_t stale_ms_max_;
  std::atomic<bool> ends_{false};
  sys::EventCount event_;
  sys::Thread thread_;
};

}  // namespace batch
