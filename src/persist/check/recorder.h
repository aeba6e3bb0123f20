// Recorder: writes down what a program does to its persistence domains. The checker, another process, works out what a crash could have left of them
// (log_format.h; `spillway persist check`).
//
// 1 there is one total order: whoever reports something holds one lock until it is in the log
// 2 a domain has a shadow: its content according to the log
// 3 if a line differs from the shadow when it is flushed, code that reports no stores has stored to it. Such stores are written down before the
//   flush, as found. So are those anywhere in a domain, at each fence unless `are_stores_told`, and when the domain ends
//
// A store that was found is known from then on, not from when it happened, and all that is found in one line counts as one store.
//
// Thread contract: any thread; start() and finish() come before and after all other calls. In a child of fork, and in a signal handler that
// interrupts a call of the same thread, calls do nothing. Never calls what the runtime intercepts, never allocates from a heap.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "persist/check/log_writer.h"
#include "persist/check/modules.h"
#include "sys/lock.h"

namespace persist {

struct RecorderOptions {
  const char* path = nullptr;    // of the log, which must not exist
  bool are_stores_told = false;  // nearly all are, so that domains are compared only when they end
  uint64_t compare_bytes_max = uint64_t{64} << 20;  // larger domains are not compared at fences
  uint64_t log_bytes_max = uint64_t{64} << 30;
};

class Recorder {
 public:
  constexpr Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Errors: EEXIST: there is such a log, maybe another process's; ENOSPC, and others of the system. REQUIRES: not started.
  base::Expected<void> start(const RecorderOptions& options);
  bool is_started() const { return process_.load(std::memory_order_acquire) != 0; }

  // A domain begins: `bytes` at `address`, a multiple of 64, of the file at `path` from `offset` on; path "": it is no file's. `bytes` is rounded up
  // to whole lines, which must be readable. A file that was mapped before is known by the text of its path. `file_bytes`: how long the file is. Cost:
  // as much memory again, and a copy beside the log of what is not zero. Errors: EINVAL: it is not aligned, cannot be read, or another domain is
  // there; ENFILE: there are too many; ENOMEM, ENOSPC.
  base::Expected<void> map(const void* address, uint64_t bytes, const char* path, uint64_t offset,
                           uint64_t file_bytes);
  // Domains that overlap the range end as a whole: the rest of them is not recorded any more. What was stored there and not reported is found now,
  // if all of the domain is still mapped.
  void unmap(const void* address, uint64_t bytes);

  // Comes after the store. What lies in no domain is left out, here and below.
  void store(const void* address, uint64_t bytes, const void* site, bool is_past_caches = false);
  // Comes before a flush of the lines that have these bytes. `is_ordered`: the flush needs no fence, like clflush.
  void flush(const void* address, uint64_t bytes, bool is_ordered, const void* site);
  // Comes after a fence: what this thread has flushed is durable now.
  void fence(const void* site);
  // Notes a text by which the program says how far it has come; a recovery from a later crash is told the last one.
  void marker(std::string_view text);

  // Ends all domains, and the log.
  void finish();

 private:
  static constexpr uint32_t kMaxDomains = 64;

  struct Domain {
    const char* address = nullptr;
    uint64_t bytes = 0;  // 0: there is none
    char* shadow = nullptr;
    uint32_t number = 0;

    uint64_t begin() const { return reinterpret_cast<uint64_t>(address); }
    uint64_t end() const { return begin() + bytes; }
  };
  class Turn;

  base::Expected<void> save_content(const Domain& domain) const;
  Domain* free_domain(uint64_t begin, uint64_t end, int& error);
  void end_domain(Domain& domain);
  void write_store(Domain& domain, uint64_t begin, uint64_t end, uint8_t flags, const void* site);
  void find_stores(Domain& domain, uint64_t begin, uint64_t end, const void* site);
  void find_all_stores(Domain& domain, const void* site);
  // Calls function(domain, begin, end) for the parts of the range that lie in domains.
  template <class Function>
  void for_domains(const void* address, uint64_t bytes, uint64_t unit, Function function);

  std::atomic<uint32_t> process_{0};  // the one that records; 0: none does
  sys::Mutex lock_;
  // Under lock_:
  LogWriter log_;
  Modules modules_;
  Domain domains_[kMaxDomains];
  uint32_t domain_count_ = 0;   // places in domains_ that have been used
  uint32_t domain_number_ = 0;  // of the newest domain
  // As of start():
  char path_[kMaxTextBytes] = {};
  bool are_stores_told_ = false;
  uint64_t compare_bytes_max_ = 0;
};

}  // namespace persist
