// Many more threads than cores, started and ended again and again, with thread-local objects whose
// destructors touch spilled memory, and many objects freed by other threads than allocated them.
// flags: -pthread
// memory: 3M
// pages: 4K 8K
// expect: cache.evictions>=2000 spill.threads>=640
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include "e2e.h"

static std::atomic<long> destroyed{0};

struct Local {
  Local() : words(500) {
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<long>(i);
  }
  ~Local() {
    long sum = 0;
    for (long word : words) sum += word;
    if (sum == base + 499 * 500 / 2) destroyed.fetch_add(1);
  }
  long base = 0;
  std::vector<long> words;
};

static thread_local std::unique_ptr<Local> local;
static thread_local std::string name;

int main() {
  constexpr int kThreads = 64, kRounds = 10;
  std::vector<std::unique_ptr<std::vector<unsigned>>> blocks(kThreads);
  std::map<std::string, long> totals;
  std::mutex mutex;
  std::atomic<long> sum{0};
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t, round] {
        local = std::make_unique<Local>();
        local->base = t;
        local->words[0] += t;
        name = "thread number " + std::to_string(t % 7) + " with a long name";
        // The block of the thread before, in the round before.
        auto taken = std::move(blocks[t]);
        if (taken)
          for (size_t i = 0; i < taken->size(); ++i)
            if ((*taken)[i] != (t + (round - 1)) * 1000u + i) abort();
        taken = std::make_unique<std::vector<unsigned>>(14000);
        for (size_t i = 0; i < taken->size(); ++i) (*taken)[i] = ((t + 1) % kThreads + round) * 1000u + i;
        {
          std::lock_guard guard(mutex);
          totals[name] += t;
        }
        sum += t;
        std::lock_guard guard(mutex);
        blocks[t] = nullptr;
        local->words.push_back(0);
        static std::vector<std::unique_ptr<std::vector<unsigned>>> next(kThreads);
        next[(t + 1) % kThreads] = std::move(taken);
        static int finished = 0;
        if (++finished == kThreads) {
          finished = 0;
          blocks.swap(next);
          next.clear();
          next.resize(kThreads);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  printf("%ld %ld\n", sum.load(), destroyed.load());
  for (auto& [key, value] : totals) printf("%s: %ld\n", key.c_str(), value);
  return 0;
}
