// Recorder: writes down what a program does to its persistence domains, for the checker, which looks in another process at what a crash
// could have left (log_format.h; `spillway persist check`).
//
// 1 one total order: whoever tells of something is under one lock until it is in the log
// 2 a domain's shadow is its content as far as the log tells of it
// 3 what differs from the shadow when a line is flushed was stored by code that told nobody: it is written down first, as found.
//   So is what differs anywhere in a domain at a fence, unless `are_stores_told`, and at its end
//
// A store that nobody told of is known as of then, not as of when it was: what is found in one line counts as one store.
//
// Thread contract: any thread, but for start() and finish(), which come before and after all else. In a child of fork, and in a signal
// handler that interrupts a call of the same thread, calls do nothing. Never calls what the runtime intercepts, never allocates from a heap.
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
  const char* path = nullptr;                       // of the log, which must not be there
  bool are_stores_told = false;                     // nearly all: domains are compared only as they end
  uint64_t compare_bytes_max = uint64_t{64} << 20;  // larger domains are not compared at fences
  uint64_t log_bytes_max = uint64_t{64} << 30;
};

class Recorder {
 public:
  constexpr Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Errors: EEXIST: there is such a log, of another process maybe; ENOSPC, and what else the system says. REQUIRES: not started.
  base::Expected<void> start(const RecorderOptions& options);
  bool is_started() const { return process_.load(std::memory_order_acquire) != 0; }

  // A domain: `bytes` at `address`, a multiple of 64, that are those of the file at `path` from `offset` on; path "" without a file.
  // `bytes` is rounded up to whole lines, which must be readable. The file may be one that was mapped before: it is known by its path's text. `file_bytes` is how
  // long it is. Memory: `bytes` again; and a copy beside the log of what is not zero. Errors: EINVAL: not aligned, or
  // another domain is there; ENFILE: too many; ENOMEM, ENOSPC.
  base::Expected<void> map(const void* address, uint64_t bytes, const char* path, uint64_t offset,
                           uint64_t file_bytes);
  // The domains of which anything lies in the range end, as a whole: what is left of one is not looked at any more. They must still be readable.
  void unmap(const void* address, uint64_t bytes);

  // After the store. What lies in no domain is left out, here and below.
  void store(const void* address, uint64_t bytes, const void* site, bool is_past_caches = false);
  // Before the flush of the lines that have these bytes. `is_ordered`: it waits by itself, as clflush does.
  void flush(const void* address, uint64_t bytes, bool is_ordered, const void* site);
  // After the fence: what this thread flushed is durable now.
  void fence(const void* site);
  // The program says how far it has come: what comes before it in the order, and is durable, must be found by a recovery.
  void marker(std::string_view text);

  // All domains end, and the log.
  void finish();

 private:
  static constexpr uint32_t kDomainsMax = 64;

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
  // Calls function(domain, begin, end) for the parts of the range that lie in domains.
  template <class Function>
  void for_domains(const void* address, uint64_t bytes, uint64_t unit, Function function);

  std::atomic<uint32_t> process_{0};  // that records; 0: none does
  sys::Mutex lock_;
  // Under lock_:
  LogWriter log_;
  Modules modules_;
  Domain domains_[kDomainsMax];
  uint32_t domain_count_ = 0;   // of places in domains_ that were used
  uint32_t domain_number_ = 0;  // of the newest one
  // As of start():
  char path_[kTextBytesMax] = {};
  bool are_stores_told_ = false;
  uint64_t compare_bytes_max_ = 0;
};

}  // namespace persist
