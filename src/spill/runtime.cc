#include "spill/runtime.h"

#include <cpuid.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/log.h"
#include "spill/address_space.h"
#include "spill/ahead/prefetch.h"
#include "spill/budget.h"
#include "spill/caller.h"
#include "spill/fault.h"
#include "spill/file_maps.h"
#include "spill/fork.h"
#include "spill/heap.h"
#include "spill/holders.h"
#include "spill/intercept/waits.h"
#include "spill/last_thread.h"
#include "spill/leases.h"
#include "spill/mapped_pages.h"
#include "spill/native.h"
#include "spill/protection.h"
#include "spill/published.h"
#include "spill/report.h"
#include "spill/satc.h"
#include "spill/seldom.h"
#include "spill/settings.h"
#include "spill/shared_maps.h"
#include "spill/signals.h"
#include "sys/barrier.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "sys/nap.h"
#include "sys/threads.h"

namespace spill {

constinit Runtime runtime;

namespace {

template <class T>
T require(base::Expected<T>&& value) {
  if (!value) end_process(value.error());
  if constexpr (!std::is_void_v<T>) return *std::move(value);
}

void require_cpu() {
  unsigned a, b, c, d;
  constexpr unsigned kOsXsave = 1u << 27;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0 && (c & kOsXsave) != 0) return;
  end_process(base::Error::of(ENOTSUP, "this CPU or kernel offers no XSAVE, which the slow path needs"));
}

// How much of the heap's metadata has been charged to the budget. Only for the background thread; in a child of fork, for the child's.
constinit uint64_t charged_heap_bytes = 0;

void charge_heap() {
  const uint64_t now = heap_metadata_bytes();
  if (now > charged_heap_bytes) runtime.cache->charge(now - charged_heap_bytes);
  if (now < charged_heap_bytes) runtime.cache->uncharge(charged_heap_bytes - now);
  charged_heap_bytes = now;
}

// Keeps frames free ahead of need, so that a thread that misses finds one; in chaos mode, evicts at
// random all the time.
void run_background(void* opened_workspace) {
  InRuntime inside;
  cache::Workspace& workspace = *static_cast<cache::Workspace*>(opened_workspace);
  inside.thread().workspace = &workspace;
  watch_leases();
  begin_budget();
  constexpr uint64_t kIdleNs = 1'000'000;
  // Between two rounds of chaos. Larger pages take longer to come back, at 2 bytes per nanosecond: the program must
  // get as far as with small ones.
  constexpr uint64_t kChaosPauseNs = 20'000;
  const uint64_t chaos_page_pause_ns = (runtime.cache->page_bytes() - base::kOsPageBytes) / 2;
  constexpr uint32_t kQuietRounds = 2;
  uint32_t quiet_rounds = 0;
  constexpr uint32_t kRoundsPerCount = 64;
  Seldom heap_charges;
  for (uint32_t round = 0;; ++round) {
    // The heap's metadata comes out of the same budget. And spillway top shows all of this.
    if (round % kRoundsPerCount == 0) {
      if (const uint64_t now_ns = sys::monotonic_ns(); heap_charges.is_due(now_ns)) {
        charge_heap();
        heap_charges.done(now_ns, sys::monotonic_ns());
      }
      count_memory();
      count_satc();
      // Others get what these had, and their share of what may be loaded ahead.
      reap_finished_threads();
    }
    budget_step();
    runtime.cache->share_step(workspace);
    file_maps_step(workspace, round);
    serve_shared_maps();
    choose_whether_to_look_ahead();
    offer_queue();
    // Ends loads that threads have begun before they turned to something else.
    runtime.cache->poll_loads();
    const uint32_t freed = runtime.cache->background_step(workspace);
    if (runtime.options.chaos != 0) {
      runtime.cache->idle_step(workspace);
      sys::nap(kChaosPauseNs + freed * chaos_page_pause_ns);
      continue;
    }
    if (freed > 0) {
      quiet_rounds = 0;
      continue;
    }
    // Cleaning while threads miss takes the CPU and the locks that they need: it waits for quiet.
    const bool did_something = quiet_rounds >= kQuietRounds && runtime.cache->idle_step(workspace);
    ++quiet_rounds;
    if (!did_something) runtime.cache->wait_for_background(kIdleNs);
  }
}

}  // namespace

base::Expected<void> start_background() {
  auto workspace = runtime.cache->open_workspace();
  if (!workspace) return std::unexpected(workspace.error());
  will_watch_leases();
  auto started = sys::start_thread(run_background, *workspace, "spillway");
  if (started) return {};
  cannot_watch_leases();
  (*workspace)->destroy();
  return std::unexpected(started.error());
}

void start_servers() {
  const auto wanted = static_cast<uint32_t>(base::server_count(runtime.options, sys::cpu_count()));
  if (wanted == 0) return;
  auto opened = runtime.cache->open_servers(wanted, runtime.options.servers_always != 0);
  uint32_t running_count = 0;
  while (opened && running_count < wanted) {
    const auto run = [](void* number) {
      InRuntime inside;
      runtime.cache->run_server(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(number)));
    };
    auto started =
        sys::start_thread(run, reinterpret_cast<void*>(uintptr_t{running_count}), "spillway server");
    if (!started) opened = std::unexpected(started.error());
    running_count += started.has_value();
  }
  if (!opened)
    base::log({.name = "servers_few",
               .fields = {{"servers", running_count}, {"wanted", wanted}, {"error", opened.error().number}}},
              "only ", running_count, " of ", wanted, " servers: ", opened.error().message);
  if (running_count > 0) runtime.cache->start_servers(running_count);
}

cache::Workspace& workspace_of(Thread& thread) {
  if (thread.workspace == nullptr) {
    // A child of vfork leaves the workspace to its parent, but not descriptors that it opens.
    auto workspace = runtime.cache->open_workspace({.by_calls = is_sharing_child()});
    if (!workspace) end_process(workspace.error(), kFatalStatus);
    thread.workspace = *workspace;
  }
  return *thread.workspace;
}

extern "C" uint64_t* spillway_rearm_counter;     // translate_quick.c
extern "C" uint64_t* spillway_crossing_counter;  // cross_quick.c

// Called through DT_INIT or .preinit_array, with main's arguments.
extern "C" void spillway_start(int argument_count, char** arguments, char** environment);
extern "C" void spillway_start(int, char**, char** environment) {
  spillway_rearm_counter = reinterpret_cast<uint64_t*>(&base::statistics.spill_rearms.value);
  spillway_crossing_counter = reinterpret_cast<uint64_t*>(&base::statistics.spill_crossings.value);
  sys::keep_error_output();
  if (getauxval(AT_SECURE) != 0) base::forget_settings(environment);
  runtime.environment = environment;
  base::Options& options = runtime.options;
  find_c_library();
  find_own_operators();
  require(check_search_order(heap_serves_others));
  require(read_settings());
  if (options.memory == 0) options.memory = base::default_memory_bytes(options, sys::free_memory_bytes());
  require_cpu();
  draw_fingerprint_secrets();
  require(sys::register_barrier());
  require(sys::reserve_at(kTableBase, kTableBytes, sys::Access::kReadWrite, "the translation table"));
  require(sys::reserve_at(kUnregisteredSlots, base::kOsPageBytes, sys::Access::kNone,
                          "the slots of new threads"));
  require(sys::reserve_at(kRangeBegin, kRangeEnd - kRangeBegin, sys::Access::kNone, "spilled memory"));
  require(open_native());
  require(open_address_space());
  require(open_protections());
  require(open_file_maps());
  open_storage();

  cache::CacheParameters parameters;
  // All addresses: globals may lie anywhere.
  parameters.range_begin = 0;
  parameters.range_bytes = uint64_t{1} << kAddressBits;
  parameters.table_entries = &entry_of(0);
  parameters.page_bytes = options.page;
  parameters.memory_bytes = options.memory;
  parameters.most_memory_bytes = base::most_memory_bytes(options, sys::machine_memory_bytes());
  parameters.read_ahead_pages = static_cast<uint32_t>(options.read_ahead);
  parameters.chaos_seed = options.chaos;
  parameters.large_pages = options.large_pages;
  const auto asked = base::policy_kind(options);
  parameters.chooses_policy = !asked;
  parameters.policy = asked.value_or(cache::PolicyChoice::kCandidates[0]);
  parameters.origins = &file_origins();
  parameters.closed = &closed_pages();
  base::statistics.memory_budget_bytes.set(options.memory);
  base::statistics.chosen_policy.set(base::name_of(parameters.policy));
  base::statistics.chosen_policy_why.set(asked ? "asked" : "first");
  runtime.cache = require(cache::Cache::create(parameters, *runtime.device, hazard_holders()));

  runtime.cache->keep_from_copies();
  adjust_mapped_pages();
  install_fault_handler();
  begin_native();
  set_plain_limit();
  watch_forks();
  require(open_heap());
  find_waits();
  lock_streams_before_fork();
  start_background_in_children();
  adopt_signal_mask();
  count_first_thread();
  if (options.clean != 0) require(runtime.cache->prepare_cleaning());
  require(publish());
  // If no more threads may be created there is none: then threads that need frames evict.
  static_cast<void>(start_background().has_value());
  start_servers();
  runtime.started.store(true, std::memory_order_release);
}

// Called through DT_FINI or .fini_array.
extern "C" void spillway_end();
extern "C" void spillway_end() {
  if (runtime.is_fork_child.load(std::memory_order_relaxed)) return;
  count_native_time();
  count_satc();
  heap_count_bytes();
  write_report();
}

}  // namespace spill
