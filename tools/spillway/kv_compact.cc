// spillway kv compact: collects segments until nothing more is gained.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "kv.h"
#include "progress.h"

namespace tools {
namespace {

uint64_t free_bytes(kv::Store& store) {
  return store.counts().log.free_segments * store.identity().geometry.segment_bytes;
}

// Compacts the store in a thread of its own, and shows meanwhile how much has become free.
base::Expected<void> compact(kv::Store& store, uint64_t before_bytes) {
  constexpr auto kLook = std::chrono::milliseconds(20);
  Progress progress("compact", Progress::Unit::kBytes);
  std::atomic<bool> is_over{false};
  base::Expected<void> done;
  std::thread compacting([&] {
    done = store.compact();
    is_over.store(true, std::memory_order_release);
  });
  while (!is_over.load(std::memory_order_acquire)) {
    std::this_thread::sleep_for(kLook);
    const uint64_t now_bytes = free_bytes(store);
    progress.at(now_bytes - std::min(now_bytes, before_bytes), 0);
  }
  compacting.join();
  return done;
}

}  // namespace

int kv_compact(const KvLine& line) {
  KvStore store(line.device);
  const uint64_t before_bytes = free_bytes(*store);
  auto done = compact(*store, before_bytes);
  const uint64_t after_bytes = free_bytes(*store);
  if (done) store.close();
  value_of(std::move(done));
  std::printf("%s are free, of segments without any record; before %s\n", readable_bytes(after_bytes).c_str(),
              readable_bytes(before_bytes).c_str());
  return 0;
}

}  // namespace tools
