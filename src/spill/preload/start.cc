#include "spill/preload/start.h"

#include <pthread.h>
#include <unistd.h>

#include "base/fingerprint.h"
#include "spill/address_space.h"
#include "spill/preload/last_thread.h"
#include "spill/preload/service.h"
#include "spill/report.h"
#include "spill/runtime.h"
#include "spill/settings.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "sys/signals.h"

// Defined by the runtime for compiled code (abi.inc), which programs compiled by spillcc need.
#define SPILLWAY_SYMBOL(name, symbol, doc) \
  extern "C" __attribute__((weak)) const char spillway_##name[] asm(symbol);
#include "spillway/abi.inc"

// Only compiled code has any.
constinit std::atomic<bool> spillway_has_globals{false};

namespace spill {

constinit Runtime runtime;

namespace preload {
namespace {

//   kUnborn ──► kIdle ──spills()──► kStarting ──► kOn ──fork──► kOff in the child
//   spillway_preload_start: kOff with --preload=0
enum class Phase : uint32_t { kUnborn, kIdle, kStarting, kOn, kOff };

constinit std::atomic<Phase> phase{Phase::kUnborn};
constinit std::atomic<uint64_t> large_bytes{0};  // large allocations so far, in plain memory
constinit std::atomic<long> process{0};

void require(base::Expected<void>&& done) {
  if (!done) end_process(done.error());
}

void start() {
  const sys::BlockedSignals blocked(sys::kAllSignals);
  sys::keep_error_output();
  base::Options& options = runtime.options;
  if (options.memory == 0) options.memory = base::default_memory_bytes(options, sys::free_memory_bytes());
  base::statistics.memory_budget_bytes.set(options.memory);
  draw_fingerprint_secrets();
  require(open_address_space());
  open_storage();
  // The serving thread has a descriptor table of its own.
  if (runtime.device->opens_descriptors())
    end_process(base::Error::of(
        ENOTSUP, "storage: spdk: only programs compiled by spillcc can spill there; spill elsewhere, ",
        "or pass --preload=0 to run others natively"));
  require(start_service());
  note_own_threads();
  runtime.started.store(true, std::memory_order_release);
}

// pthread_atfork's handler in the child. Registered before all others, so it runs before them.
void become_child() {
  process.store(sys::syscall(SYS_getpid), std::memory_order_relaxed);
  become_main_thread();
  // Only if its parent spills, or is such a child itself: a daemon forks twice.
  if (phase.load(std::memory_order_relaxed) != Phase::kOn &&
      !runtime.is_fork_child.load(std::memory_order_relaxed))
    return;
  phase.store(Phase::kOff, std::memory_order_relaxed);
  runtime.is_fork_child.store(true, std::memory_order_relaxed);
  const sys::BlockedSignals blocked(sys::kAllSignals);
  sys::leave_error_output();  // it may be a daemon
  // Without it, touching the parent's memory is a segmentation fault.
  if (start_child_service()) note_own_threads();
}

}  // namespace

bool is_passive() { return spillway_AbiTable != nullptr; }

bool is_on() { return phase.load(std::memory_order_acquire) == Phase::kOn; }

bool stay_plain() {
  Phase now = Phase::kIdle;
  return phase.compare_exchange_strong(now, Phase::kOff) || now == Phase::kOff || now == Phase::kUnborn;
}

bool spills(size_t bytes) {
  if (bytes < kLargeBytes || bytes < runtime.options.min_alloc) return false;
  Phase now = phase.load(std::memory_order_acquire);
  if (now == Phase::kOn) return true;
  if (now != Phase::kIdle) return false;
  const uint64_t before = large_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= runtime.plain_limit_bytes) return false;
  // A child of vfork runs in its parent's memory: the thread would be the child's, and end with it.
  if (process.load(std::memory_order_relaxed) != sys::syscall(SYS_getpid)) return false;
  // What others allocate meanwhile, and what starting the thread allocates, is plain.
  if (!phase.compare_exchange_strong(now, Phase::kStarting)) return false;
  start();
  phase.store(Phase::kOn, std::memory_order_release);
  return true;
}

// Called through DT_INIT and DT_FINI.
extern "C" void spillway_preload_start(int argument_count, char** arguments, char** environment);
extern "C" void spillway_preload_start(int, char**, char** environment) {
  if (is_passive()) return;
  runtime.environment = environment;
  require(read_settings());
  set_plain_limit();
  process.store(sys::syscall(SYS_getpid), std::memory_order_relaxed);
  watch_main_thread();
  pthread_atfork(nullptr, nullptr, become_child);
  phase.store(runtime.options.preload != 0 ? Phase::kIdle : Phase::kOff, std::memory_order_release);
}

extern "C" void spillway_preload_end();
extern "C" void spillway_preload_end() {
  if (is_on()) write_report();
}

}  // namespace preload
}  // namespace spill
