// A cache whose pages are asked for at random, as the slow path of a translation asks for them: by several threads, with
// servers or without, at the pace of the driver.
//   delegation-load DEVICE PAGES FRAMES SERVERS ALWAYS
// fills PAGES pages, all of which go to storage once, and answers "ready"; then on standard input, answered on standard output:
//   run THREADS SECONDS   "ACCESSES MISSES SECONDS"
//   count ACCESSES        "ACCESSES MISSES"             by the first thread alone
//   entries               "RESIDENT STORED"             bytes of table and map for each page, in memory and on storage
//
// Nobody uses the pages, so nothing is held: what is measured is the cache.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/mix.h"
#include "base/statistics.h"
#include "cache/cache.h"
#include "storage/opening/open.h"
#include "sys/barrier.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace {

using base::PageId;

class NoHolders final : public cache::Holders {
 public:
  void barrier() override { sys::process_barrier(); }
  void visit(void (*)(void*, PageId), void*) override {}
};

class Load {
 public:
  Load(const char* device, uint64_t pages, uint32_t frames, uint32_t servers, bool always) : pages_(pages) {
    unsigned char secrets[base::kFingerprintSecretBytes];
    sys::random_bytes(secrets);
    base::set_fingerprint_secrets(secrets, sizeof secrets);
    require(sys::register_barrier());
    cache::CacheParameters parameters;
    parameters.range_begin = 0;  // below all that is mapped, also under valgrind
    parameters.range_bytes = base::round_up(pages * base::kOsPageBytes, uint64_t{2} << 20);
    const uint64_t entries = parameters.range_bytes / base::kOsPageBytes;
    parameters.table_entries = reinterpret_cast<cache::Table::Entry*>(
        require(sys::map_anonymous(entries * sizeof(cache::Table::Entry), "entries")));
    parameters.frame_count = frames;
    parameters.memory_bytes = uint64_t{1} << 40;  // frames are the limit
    cache_ = require(
        cache::Cache::create(parameters, *require(storage::open_device(device, {.spill = true})), holders_));
    background_ = std::thread([this] { evict_ahead(); });
    fill();
    if (servers > 0) {
      require(cache_->open_servers(servers, always));
      for (uint32_t i = 0; i < servers; ++i) servers_.emplace_back([this, i] { cache_->run_server(i); });
      cache_->start_servers(servers);
    }
  }

  // Ends without taking anything down: the process does.
  [[noreturn]] void end() {
    std::fflush(stdout);
    _exit(0);
  }

  void run(uint32_t threads, double seconds) {
    const uint64_t misses = base::statistics.cache_misses.get();
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> accesses{0};
    const uint64_t begin_ns = sys::monotonic_ns();
    std::vector<std::thread> running;
    for (uint32_t i = 0; i < threads; ++i) {
      running.emplace_back([&, seed = ++seed_] {
        cache::Workspace& workspace = *require(cache_->open_workspace());
        uint64_t own = 0;
        for (uint64_t state = base::mix(seed); !stop.load(std::memory_order_relaxed); ++own)
          access(state, workspace);
        accesses += own;
        workspace.destroy();
      });
    }
    usleep(static_cast<useconds_t>(seconds * 1e6));
    stop = true;
    for (std::thread& thread : running) thread.join();
    std::printf("%llu %llu %.6f\n", number(accesses), number(base::statistics.cache_misses.get() - misses),
                1e-9 * static_cast<double>(sys::monotonic_ns() - begin_ns));
  }

  void count(uint64_t accesses) {
    const uint64_t misses = base::statistics.cache_misses.get();
    cache::Workspace& workspace = *require(cache_->open_workspace());
    uint64_t state = 1;
    for (uint64_t i = 0; i < accesses; ++i) access(state, workspace);
    std::printf("%llu %llu\n", number(accesses), number(base::statistics.cache_misses.get() - misses));
  }

  void entries() {
    const double resident = metadata_bytes() / static_cast<double>(cache_->resident_count());
    cache::Workspace& workspace = *require(cache_->open_workspace());
    for (int calm = 0; calm < 100 && cache_->resident_count() > 0;)
      calm = cache_->evict(workspace) > 0 ? 0 : calm + 1;
    std::printf("%.2f %.2f\n", resident, metadata_bytes() / static_cast<double>(pages_));
  }

 private:
  template <class T>
  static T require(base::Expected<T>&& value) {
    if (!value) {
      std::fprintf(stderr, "delegation-load: %s\n", value.error().message);
      std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return *value;
  }
  static unsigned long long number(uint64_t value) { return value; }

  void access(uint64_t& state, cache::Workspace& workspace) {
    state += base::kMixStep;
    // The high half of a product spreads a random number over [0, pages_) without a division.
    const auto page =
        static_cast<uint64_t>((static_cast<unsigned __int128>(base::mix(state)) * pages_) >> 64);
    require(cache_->load(PageId{page}, workspace));
  }

  void fill() {
    before_bytes_ = cache_->budget().used_bytes();
    cache::Workspace& workspace = *require(cache_->open_workspace());
    for (uint64_t page = 0; page < pages_; ++page) {
      char* bytes = require(cache_->pin(PageId{page}, workspace));
      for (uint64_t i = 0; i < base::kOsPageBytes; i += sizeof(uint64_t))
        *reinterpret_cast<uint64_t*>(bytes + i) = base::mix(page * base::kOsPageBytes + i);
      cache_->unpin(PageId{page});
    }
    for (int calm = 0; calm < 100 && cache_->resident_count() > 0;)
      calm = cache_->evict(workspace) > 0 ? 0 : calm + 1;
    for (uint64_t page = 0; page < pages_; ++page) require(cache_->load(PageId{page}, workspace));
    workspace.destroy();
  }

  // Of table and map, since the cache was made; the directory, which is not counted in the budget, by what it takes.
  double metadata_bytes() {
    const uint64_t charged = cache_->budget().used_bytes() - cache_->frames_bytes() - before_bytes_;
    return static_cast<double>(charged) + static_cast<double>(pages_) / cache::kGroupPages * sizeof(uint32_t);
  }

  void evict_ahead() {
    cache::Workspace& workspace = *require(cache_->open_workspace());
    for (;;)
      if (cache_->background_step(workspace) == 0) cache_->wait_for_background(1'000'000);
  }

  uint64_t pages_;
  uint64_t before_bytes_ = 0;
  uint64_t seed_ = 0;
  NoHolders holders_;
  cache::Cache* cache_ = nullptr;
  std::thread background_;
  std::vector<std::thread> servers_;
};

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 6) return 2;
  // Of all threads to come: a modelled device wakes those that wait at its time, not up to 50 us later.
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  const auto argument = [&](int i) { return std::strtoull(arguments[i], nullptr, 10); };
  auto& load = *new Load(arguments[1], argument(2), static_cast<uint32_t>(argument(3)),
                         static_cast<uint32_t>(argument(4)), argument(5) != 0);
  std::printf("ready\n");
  std::fflush(stdout);
  char line[100];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    uint32_t threads;
    unsigned long long accesses;
    double seconds;
    if (std::sscanf(line, "run %u %lf", &threads, &seconds) == 2)
      load.run(threads, seconds);
    else if (std::sscanf(line, "count %llu", &accesses) == 1)
      load.count(accesses);
    else
      load.entries();
    std::fflush(stdout);
  }
  load.end();
}
