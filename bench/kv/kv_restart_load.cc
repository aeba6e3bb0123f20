// What `spillway bench kv-restart` opens, kills and opens again. PLACE is a device string.
//
//   PLACE write|end|open [NAME=VALUE]...
//
// | operation | does                                                                                                        |
// |-----------|-------------------------------------------------------------------------------------------------------------|
// | write     | makes a store with KEYS keys, or opens the one that is there; replaces values at random until it is killed. |
// |           | Prints a line when it has replaced UPDATES of them                                                          |
// | end       | opens the store and closes it                                                                               |
// | open      | opens it for reading only, looks for some of its keys and ends: each time the medium is as the last `write` |
// |           | or `end` left it                                                                                            |
//
// | name        | is                                                                    | default |
// |-------------|-----------------------------------------------------------------------|---------|
// | make        | 1: a new store                                                        | 0       |
// | capacity    | bytes of it                                                           | the place's |
// | grain       | of it                                                                 | 512     |
// | keys        | in it, or to be put into it                                           |         |
// | value       | bytes of a value                                                      | 100     |
// | updates     | of write                                                              | 0       |
// | checkpoints | 0: of write, none is taken                                            | 1       |
// | depth       | puts at a time, by tasks of one worker, at durability none            | 128     |
//
// A line is one object of JSON: seconds, cpu_seconds and what is counted. Wrong words: one line and status 2. What fails, and a key that
// is not there or has another's value: one line and status 1.
#include <sys/resource.h>

#include "../measure.h"
#include "base/statistics.h"
#include "kv/store.h"
#include "load.h"
#include "storage/opening/open.h"
#include "task/scheduler.h"
#include "task/sync.h"

namespace {

using load::fail;

constexpr uint64_t kLookups = 1000;

struct Words {
  std::string place, operation;
  bool make = false, checkpoints = true;
  uint64_t capacity_bytes = 0, grain_bytes = 512, keys = 0, value_bytes = 100, updates = 0, depth = 128;
};

template <class T>
T take(base::Expected<T> got, int status = 1) {
  if (!got) fail(status, got.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*got);
}

Words parse(int count, char** all) {
  if (count < 3) fail(2, "usage: PLACE write|end|open [NAME=VALUE]... (bench/kv/kv_restart_load.cc)");
  Words words;
  words.place = all[1];
  words.operation = load::word_of("the operation", all[2], {"write", "end", "open"});
  for (int i = 3; i < count; ++i) {
    const char* const sign = std::strchr(all[i], '=');
    if (sign == nullptr) fail(2, std::string("a setting is NAME=VALUE, not '") + all[i] + "'");
    const std::string name(all[i], static_cast<size_t>(sign - all[i]));
    const auto number = [&](uint64_t most) { return load::count_of(name, sign + 1, most); };
    if (name == "make")
      words.make = number(1) == 1;
    else if (name == "capacity")
      words.capacity_bytes = number(load::kMaxCount);
    else if (name == "grain")
      words.grain_bytes = number(4096);
    else if (name == "keys")
      words.keys = number(load::kMaxCount);
    else if (name == "value")
      words.value_bytes = number(load::kMaxValueBytes);
    else if (name == "updates")
      words.updates = number(load::kMaxCount);
    else if (name == "checkpoints")
      words.checkpoints = number(1) == 1;
    else if (name == "depth")
      words.depth = number(load::kMaxDepth);
    else
      fail(2, "there is no setting '" + name + "'");
  }
  if (words.keys == 0) fail(2, words.operation + " needs keys=N");
  if (words.depth == 0) fail(2, "a depth of 0 does nothing");
  if (words.value_bytes < load::kMinValueBytes)
    fail(2,
         "values have at least " + std::to_string(load::kMinValueBytes) + " bytes, which tell what they are");
  return words;
}

class Restart {
 public:
  explicit Restart(const Words& words)
      : words_(words), device_(take(storage::open_device(words.place, {.store = true}), 2)) {}

  void run() {
    if (words_.operation == "write") return write();
    if (words_.operation == "open") return look();
    end();
  }

 private:
  static uint64_t written_bytes() { return base::statistics.storage_write_bytes.get(); }
  static uint64_t read_bytes() { return base::statistics.storage_read_bytes.get(); }
  static void print_time(const char* name, const cases::Stopwatch& watch) {
    std::printf("\"%sseconds\": %.6f, \"%scpu_seconds\": %.6f", name,
                static_cast<double>(watch.wall_ns()) * 1e-9, name,
                static_cast<double>(watch.cpu_ns()) * 1e-9);
  }

  kv::Store* open(bool read_only = false) {
    return take(kv::Store::open(*device_, {.durability = kv::Durability::kNone,
                                           .checkpoint_records = words_.checkpoints ? 0 : load::kMaxCount,
                                           .read_only = read_only}));
  }

  void write() {
    if (words_.make)
      take(kv::Store::make(*device_, {.grain_bytes = static_cast<uint32_t>(words_.grain_bytes),
                                      .capacity_bytes = words_.capacity_bytes}));
    kv::Store* const store = open();
    cases::Stopwatch watch;
    watch.start();
    if (words_.make) put_all(*store, words_.keys, false);
    const uint64_t before = written_bytes();
    put_all(*store, words_.updates, true);
    watch.stop();
    const kv::StoreCounts counts = store->counts();
    std::printf("{\"operation\": \"write\", ");
    print_time("", watch);
    std::printf(
        ", \"entries\": %lu, \"update_write_bytes\": %lu, \"checkpoints\": %lu, \"checkpoint_bytes\": %lu}\n",
        counts.index.entries, written_bytes() - before, counts.collected.checkpoints,
        counts.collected.checkpoint_bytes);
    std::fflush(stdout);
    for (;;) put_all(*store, load::kMaxCount, true);
  }

  void end() {
    cases::Stopwatch opening, closing;
    opening.start();
    kv::Store* const store = open();
    opening.stop();
    const uint64_t written = written_bytes();
    closing.start();
    take(store->close());
    closing.stop();
    std::printf("{\"operation\": \"end\", ");
    print_time("open_", opening);
    std::printf(", ");
    print_time("close_", closing);
    std::printf(", \"close_write_bytes\": %lu}\n", written_bytes() - written);
  }

  void look() {
    cases::Stopwatch watch;
    watch.start();
    kv::Store* const store = open(true);
    watch.stop();
    const uint64_t peak_bytes = cases::bytes_of("/proc/self/status", "VmHWM:"), bytes = read_bytes();
    const kv::RecoveryReport& report = store->recovery();
    const kv::StoreCounts counts = store->counts();
    look_for_keys(*store);
    std::printf("{\"operation\": \"open\", ");
    print_time("", watch);
    std::printf(
        ", \"read_bytes\": %lu, \"peak_bytes\": %lu, \"index_bytes\": %lu, \"entries\": %lu, \"records\": "
        "%lu, "
        "\"segments\": %lu, \"checkpoint\": %lu, \"replayed_records\": %lu, \"scanned_segments\": %lu}\n",
        bytes, peak_bytes, counts.index.memory_bytes, counts.index.entries, report.records,
        store->identity().geometry.segment_count, report.checkpoint, report.replayed_records,
        report.scanned_segments);
    take(store->close());
  }

  void look_for_keys(kv::Store& store) {
    kv::Session session;
    take(session.open(store));
    load::Random random(cases::clock_ns(CLOCK_MONOTONIC));
    for (uint64_t i = 0; i < kLookups; ++i) {
      const uint64_t number = random.below(words_.keys);
      const kv::Found found = take(session.get(load::Key(number).view()));
      if (!found.found()) fail(1, "key " + std::to_string(number) + " is not there");
      const std::string_view value = kv::text_of(found.value());
      if (!load::Value::is_of(number, value) || value.size() != words_.value_bytes)
        fail(1, "key " + std::to_string(number) + " has a value that is not its own");
    }
    session.close();
  }

  // Of all keys once, or of any of them.
  void put_all(kv::Store& store, uint64_t most, bool at_random) {
    if (most == 0) return;
    struct Puts {
      Restart& restart;
      kv::Store& store;
      const uint64_t most;
      const bool at_random;
      uint64_t taken = 0;
      kv::Session session = {};
      load::Random random{cases::clock_ns(CLOCK_MONOTONIC)};
      load::Value value{restart.words_.value_bytes, 0};
    } puts{*this, store, most, at_random};
    task::Scheduler scheduler;
    take(scheduler.open({}));
    take(scheduler.run({.name = "bench",
                        .entry = [](void* all) { put_by_tasks(*static_cast<Puts*>(all)); },
                        .argument = &puts}));
    scheduler.close();
  }

  template <class Puts>
  static void put_by_tasks(Puts& puts) {
    const uint64_t depth = puts.restart.words_.depth;
    take(puts.session.open(puts.store, depth));
    std::vector<task::Task*> tasks;
    for (uint64_t i = 0; i < depth; ++i)
      tasks.push_back(take(task::spawn(
          {.name = "bench", .entry = [](void* all) { put(*static_cast<Puts*>(all)); }, .argument = &puts})));
    for (task::Task* task : tasks) static_cast<void>(task::join(*task));
    puts.session.close();
  }

  template <class Puts>
  static void put(Puts& puts) {
    load::Value own = puts.value;  // which must stay as it is while it is written
    while (puts.taken < puts.most) {
      const uint64_t ticket = puts.taken++;
      const uint64_t number = puts.at_random ? puts.random.below(puts.restart.words_.keys) : ticket;
      const load::Key key(number);
      take(puts.session.put(key.view(), kv::bytes_of(own.of(number, ticket + 1))));
    }
  }

  const Words& words_;
  storage::Device* device_;
};

}  // namespace

int main(int count, char** all) {
  load::program_name = "kv-restart-load";
  const Words words = parse(count, all);
  Restart(words).run();
  return 0;
}
