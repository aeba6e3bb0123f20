// Ours: a page cache on a device. By threads: a session each. By tasks: one worker, whose tasks share a session.
#include "pagecache/session.h"
#include "side.h"
#include "task/scheduler.h"

namespace load {
namespace {

class Client {
 public:
  static constexpr bool kWrites = true;

  Client(pagecache::PageCache& cache, pagecache::File& file) : file_(file) { session_.open(cache); }
  void read(uint64_t offset, std::span<std::byte> to) { check(session_.read(file_, offset, to)); }
  void write(uint64_t offset, std::span<const std::byte> from) { check(session_.write(file_, offset, from)); }

 private:
  static void check(const base::Expected<void>& done) {
    if (!done) fail(1, done.error().message);
  }

  pagecache::File& file_;
  pagecache::Session session_;
};

template <class T>
T require(base::Expected<T>&& made) {
  if (!made) fail(2, made.error().message);
  if constexpr (!std::is_void_v<T>) return *made;
}

class Cache final : public Side {
 public:
  explicit Cache(const Plan& plan)
      : device_(open_device(plan)),
        cache_(require(pagecache::PageCache::open({.memory_bytes = plan.memory_bytes}))) {
    file_ = require(cache_->add(device_));
  }
  ~Cache() override {
    cache_->close();
    device_.close();
  }

  void work(Turn& turn, uint64_t index) override {
    if (turn.by_tasks) return work_by_tasks(turn);
    Client client(*cache_, *file_);
    ask(turn, index, client);
  }
  DevicePages device_pages() const override { return counted_pages(); }

 private:
  template <class F>
  static task::TaskParameters calls(const F& f) {
    return {.name = "bench",
            .entry = [](void* function) { (*static_cast<const F*>(function))(); },
            .argument = const_cast<F*>(&f)};
  }

  void work_by_tasks(Turn& turn) {
    task::Scheduler scheduler;
    require(scheduler.open({}));
    const auto all = [&] {
      Client client(*cache_, *file_);
      uint64_t next = 0;
      const auto one = [&] { ask(turn, 0, client, next++); };
      std::vector<task::Task*> tasks;
      for (uint64_t i = 0; i < turn.depth; ++i) tasks.push_back(require(task::spawn(calls(one))));
      for (task::Task* task : tasks) static_cast<void>(task::join(*task));
    };
    require(scheduler.run(calls(all)));
    scheduler.close();
  }

  storage::Device& device_;
  pagecache::PageCache* const cache_;
  pagecache::File* file_;
};

}  // namespace

std::unique_ptr<Side> make_cache(const Plan& plan) { return std::make_unique<Cache>(plan); }

}  // namespace load
