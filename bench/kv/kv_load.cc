// The key-value store under load (load.h, run.h). PLACE is a device string.
//
// By tasks: those of a worker share a session. By threads: a session each. The store's own keeper thread comes on top, and is in the
// figures of the process.
//
// A record is 40 bytes, the key, the value and what is left of its last grain; `record_bytes` of the answer is that of the longest key.
// The defaults make it 4,096 bytes: one grain, one I/O. More in the answer: grain_bytes, segment_bytes, segments, slots (as many records as
// fit into all segments).
#include <sys/prctl.h>

#include <functional>
#include <vector>

#include "base/statistics.h"
#include "kv/store.h"
#include "run.h"
#include "storage/opening/open.h"
#include "task/scheduler.h"
#include "task/sync.h"

namespace {

using load::fail;

std::string text_of(const base::Error& error) { return error.message; }

class Client {
 public:
  void open(kv::Store& store, uint64_t depth) {
    auto opened = session_.open(store, depth);
    if (!opened) fail(1, text_of(opened.error()));
  }
  void close() { session_.close(); }

  template <class Take>
  bool get(std::string_view key, const Take& take) {
    const auto found = session_.get(key);
    if (!found) fail(1, text_of(found.error()));
    if (!found->found()) return false;
    take(kv::text_of(found->value()), found->version());
    return true;
  }
  uint64_t put(std::string_view key, std::string_view value) {
    const auto changed = session_.put(key, kv::bytes_of(value));
    if (changed) return changed->version;
    if (changed.error().number == ENOSPC) return load::kFull;
    fail(1, text_of(changed.error()));
  }

 private:
  kv::Session session_;
};

class Store {
 public:
  explicit Store(const load::Plan& plan) : plan_(plan) {
    auto device = storage::open_device(plan.place, {});
    if (!device) fail(2, text_of(device.error()));
    device_ = *device;
  }
  ~Store() { device_->close(); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void make() {
    auto made = kv::Store::make(*device_, {.grain_bytes = static_cast<uint32_t>(plan_.grain_bytes),
                                           .capacity_bytes = plan_.capacity_bytes});
    if (!made) fail(1, text_of(made.error()));
  }
  void open(std::string_view durability) {
    const auto kind = durability == "sync"    ? kv::Durability::kSync
                      : durability == "batch" ? kv::Durability::kBatch
                                              : kv::Durability::kNone;
    auto opened = kv::Store::open(*device_, {.durability = kind});
    if (!opened) fail(1, text_of(opened.error()));
    store_ = *opened;
    geometry_ = store_->identity().geometry;
  }
  void close() {
    auto closed = store_->close();
    if (!closed) fail(1, text_of(closed.error()));
  }

  template <class Enter, class Moments>
  void run(uint64_t depth, const Enter& enter, Moments& moments) {
    if (plan_.by == "tasks") return run_by_tasks(depth, enter, moments);
    load::run_by_threads(
        depth,
        [&] {
          auto client = std::make_unique<Client>();
          client->open(*store_, 1);
          return client;
        },
        [](Client& client) { client.close(); }, enter, moments);
  }

  load::DeviceIo io() const {
    const auto& counts = base::statistics;
    return {.reads = counts.storage_reads.get(),
            .read_bytes = counts.storage_read_bytes.get(),
            .writes = counts.storage_writes.get(),
            .write_bytes = counts.storage_write_bytes.get()};
  }
  uint64_t record_bytes() const { return record_grains() * geometry_.grain_bytes; }
  std::string more_json() const {
    base::Text<300> text;
    text << ", \"grain_bytes\": " << geometry_.grain_bytes
         << ", \"segment_bytes\": " << geometry_.segment_bytes
         << ", \"segments\": " << geometry_.segment_count
         << ", \"slots\": " << slots_of_segment() * geometry_.segment_count;
    return text.c_str();
  }

 private:
  // On the worker of who spawns it if none is given.
  template <class F>
  static task::TaskParameters calls(const F& f, task::Worker* worker = nullptr) {
    return {.name = "bench",
            .entry = [](void* function) { (*static_cast<const F*>(function))(); },
            .argument = const_cast<F*>(&f),
            .worker = worker};
  }
  static task::Task& spawned(const task::TaskParameters& parameters) {
    auto task = task::spawn(parameters);
    if (!task) fail(1, text_of(task.error()));
    return **task;
  }

  // What begins and ends is told to all workers by the first one's task, which is not one of those that do the operations.
  struct Phases {
    task::InterSemaphore are_there{0}, may_begin{0}, have_ended{0}, may_close{0};
  };

  template <class Enter, class Moments>
  void run_by_tasks(uint64_t depth, const Enter& enter, Moments& moments) {
    task::Scheduler scheduler;
    const auto workers = static_cast<uint32_t>(plan_.workers);
    if (auto opened = scheduler.open({.worker_count = workers}); !opened) fail(1, text_of(opened.error()));
    Phases phases;
    const auto all = [&] {
      std::vector<std::function<void()>> homes;
      std::vector<task::Task*> tasks;
      for (uint32_t i = 0; i < workers; ++i)
        homes.emplace_back([&, i] { run_on_worker(i, depth, enter, phases); });
      for (uint32_t i = 0; i < workers; ++i) tasks.push_back(&spawned(calls(homes[i], &scheduler.worker(i))));
      for (uint32_t i = 0; i < workers; ++i) static_cast<void>(phases.are_there.acquire());
      moments.begin();
      phases.may_begin.release(workers);
      for (uint32_t i = 0; i < workers; ++i) static_cast<void>(phases.have_ended.acquire());
      moments.end();
      phases.may_close.release(workers);
      for (task::Task* task : tasks) static_cast<void>(task::join(*task));
    };
    if (auto ran = scheduler.run(calls(all)); !ran) fail(1, text_of(ran.error()));
    scheduler.close();
  }

  // Tasks i, i + WORKERS, i + 2 WORKERS, ... are those of worker i.
  template <class Enter>
  void run_on_worker(uint64_t worker, uint64_t depth, const Enter& enter, Phases& phases) {
    const uint64_t count = (depth - worker - 1) / plan_.workers + 1;
    Client client;
    client.open(*store_, count);
    task::IntraSemaphore gate(0);
    uint64_t next = worker;
    const auto one = [&] {
      const uint64_t index = next;
      next += plan_.workers;
      static_cast<void>(gate.acquire());
      enter(index, client);
    };
    std::vector<task::Task*> tasks;
    for (uint64_t i = 0; i < count; ++i) tasks.push_back(&spawned(calls(one)));
    while (next < depth) task::yield();
    phases.are_there.release();
    static_cast<void>(phases.may_begin.acquire());
    gate.release(static_cast<uint32_t>(count));
    for (task::Task* task : tasks) static_cast<void>(task::join(*task));
    phases.have_ended.release();
    static_cast<void>(phases.may_close.acquire());
    client.close();
  }

  uint64_t record_grains() const {
    return geometry_.grains(kv::record_bytes(load::kMaxKeyBytes, plan_.value_bytes));
  }
  uint64_t slots_of_segment() const {
    uint64_t slots = 0;
    while (1 + (slots + 1) * record_grains() + kv::summary_grains(geometry_, slots + 1) <=
           geometry_.segment_grains())
      ++slots;
    return slots;
  }

  const load::Plan& plan_;
  storage::Device* device_;
  kv::Store* store_ = nullptr;
  kv::Geometry geometry_;
};

}  // namespace

int main(int count, char** words) {
  prctl(PR_SET_TIMERSLACK, 1);  // who sleeps until a modelled drive is done, wakes then, and not 50 us later
  return load::run<Store>("kv-load", count, words);
}
