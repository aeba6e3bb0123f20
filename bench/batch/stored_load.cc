// Updates of random records of a table that is larger than memory: made in batches, as they wait for others, or each in its page.
//
//   PROGRAM staged|in_place PLACE records=N memory=BYTES [cache=BYTES] [threads=1] [log=PLACE] [slot=PAGES] [makers=8]
//
// Records are a number of 8 bytes, the key, and another one, which updates add to. `memory` is for all: the page cache's frames, of staged ones `cache` bytes of
// it, a MiB for each maker, and what is staged. PLACE is a file of that many records, or larger, or a device; it is written to. Answers a line when the table is full:
//
//   {"store_bytes": N}
//
// and then each line "run SECONDS" by
//
//   {"updates": N, "seconds": S, "cpu_seconds": S, "read_bytes": N, "write_bytes": N}
//
// updates that were done in the time, by all threads, while as many waited at its end as at its begin: before the first line so many were done that the
// table is as it will be. With a log the last one of a run ends with a sync. At the end of its input the sum of all records has to be the number of all updates.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../measure.h"
#include "../random.h"
#include "../words.h"
#include "base/statistics.h"
#include "batch/stored/stored_table.h"
#include "pagecache/page_cache.h"
#include "pagecache/page_store.h"
#include "storage/opening/open.h"

namespace {

constexpr size_t kGroup = 256;
constexpr batch::Shape kShape = {.key_bytes = 8, .value_bytes = 8};

struct Settings {
  std::string side, place, log;
  std::map<std::string, uint64_t> numbers = {
      {"records", 0}, {"memory", 0}, {"cache", 0}, {"threads", 1}, {"slot", batch::kMaxSlotPages},
      {"makers", 8},  {"seed", 1}};

  uint64_t operator[](const char* name) const { return numbers.at(name); }
  // Of a staged side: what is left beside pages and makers, whose buffers have four slots each.
  uint64_t other_bytes() const {
    return numbers.at("cache") + numbers.at("makers") * 4 * numbers.at("slot") * 4096;
  }
  uint64_t staging_bytes() const { return numbers.at("memory") - other_bytes(); }
};

Settings settings_of(int count, char** words) {
  load::program_name = "batch-stored-load";
  if (count < 3) load::fail(2, "give staged or in_place, and a file or device");
  Settings settings;
  settings.side = load::word_of("the side", words[1], {"staged", "in_place"});
  settings.place = words[2];
  for (int i = 3; i < count; ++i) {
    const auto [word, name, text] = load::Word(words[i]);
    if (name == "log")
      settings.log = text;
    else if (settings.numbers.contains(name))
      settings.numbers[name] = load::count_of(name, text, uint64_t{1} << 44);
    else
      load::fail(2, "no such word: " + word);
  }
  if (settings["records"] == 0 || settings["memory"] == 0 || settings["threads"] == 0)
    load::fail(2, "records, memory and threads are needed");
  if (settings.side == "staged" && settings["memory"] <= settings.other_bytes())
    load::fail(2, "memory is for cache, makers, and what waits: more than " +
                      std::to_string(settings.other_bytes()));
  if (settings["records"] % kGroup != 0) load::fail(2, "records is a multiple of " + std::to_string(kGroup));
  return settings;
}

template <class T>
T require(base::Expected<T>&& made) {
  if (!made) load::fail(1, made.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*made);
}

storage::Device* open(const std::string& place) {
  auto device = storage::open_device(place, {.store = true, .whole = true});
  if (!device) load::fail(2, device.error().message);
  return *device;
}

// What updates a table: one for each thread.
class Client {
 public:
  virtual ~Client() = default;
  // Adds one to each.
  virtual void update(const uint64_t (&keys)[kGroup]) = 0;
  virtual void sync() = 0;
};

class Side {
 public:
  virtual ~Side() = default;
  virtual std::unique_ptr<Client> new_client() = 0;
  virtual uint64_t store_bytes() const = 0;
  // Updates until the table is as it will be, of all threads.
  virtual uint64_t settling_updates() const = 0;
  virtual uint64_t sum() = 0;
};

class Staged final : public Side {
 public:
  explicit Staged(const Settings& settings) : settings_(settings), device_(open(settings.place)) {
    cache_ = require(pagecache::PageCache::open({.memory_bytes = settings["cache"]}));
    file_ = require(cache_->add(*device_));
    store_ = std::make_unique<pagecache::PageStore>(*cache_, *file_);
    batch::StoredOptions options = {.shape = kShape,
                                    .records = settings["records"],
                                    .staging_bytes = settings.staging_bytes(),
                                    .makers = static_cast<uint32_t>(settings["makers"]),
                                    .slot_pages = static_cast<uint32_t>(settings["slot"])};
    if (!settings.log.empty()) options.log = log_ = open(settings.log);
    require(table_.open(*store_, options));
    table_.add_function({.function = [](void*, void* value, const void* given) {
      uint64_t sum = 0, more = 0;
      memcpy(&sum, value, 8);
      memcpy(&more, given, 8);
      sum += more;
      memcpy(value, &sum, 8);
    }});
    StagedClient client(*this);
    uint64_t keys[kGroup];
    for (uint64_t key = 0; key < settings["records"]; key += kGroup) {
      for (uint64_t i = 0; i < kGroup; ++i) keys[i] = std::min(key + i, settings["records"] - 1);
      client.run(batch::Action::kUpsert, keys, 0);
    }
  }
  ~Staged() override {
    require(table_.close());
    store_.reset();
    cache_->close();
    if (log_ != nullptr) log_->close();
    device_->close();
  }

  std::unique_ptr<Client> new_client() override { return std::make_unique<StagedClient>(*this); }
  uint64_t store_bytes() const override { return file_->bytes(); }
  // Twice what there is room for.
  uint64_t settling_updates() const override {
    return 2 * (settings_["memory"] - settings_["cache"]) / kShape.record_bytes();
  }
  uint64_t sum() override {
    uint64_t sum = 0;
    batch::StoredSession session;
    require(session.open(table_));
    require(session.for_each([&](const std::byte*, const std::byte* value) {
      uint64_t one = 0;
      memcpy(&one, value, 8);
      sum += one;
      return true;
    }));
    return sum;
  }

 private:
  class StagedClient final : public Client {
   public:
    explicit StagedClient(Staged& side) { require(session_.open(side.table_)); }
    void update(const uint64_t (&keys)[kGroup]) override { run(batch::Action::kChange, keys, 1); }
    void sync() override { require(session_.sync()); }
    void run(batch::Action action, const uint64_t (&keys)[kGroup], uint64_t given) {
      std::fill_n(given_, kGroup, given);
      batch::Job job{.code = {.action = action},
                     .count = kGroup,
                     .keys = reinterpret_cast<const std::byte*>(keys),
                     .given = reinterpret_cast<const std::byte*>(given_)};
      require(session_.run(job));
    }

   private:
    batch::StoredSession session_;
    uint64_t given_[kGroup];
  };

  const Settings& settings_;
  storage::Device* const device_;
  storage::Device* log_ = nullptr;
  pagecache::PageCache* cache_ = nullptr;
  pagecache::File* file_ = nullptr;
  std::unique_ptr<pagecache::PageStore> store_;
  batch::StoredTable table_;
};

// Records lie where their numbers say, so that nothing is looked for.
class InPlace final : public Side {
 public:
  explicit InPlace(const Settings& settings) : settings_(settings), device_(open(settings.place)) {
    cache_ = require(pagecache::PageCache::open({.memory_bytes = settings["memory"]}));
    file_ = require(cache_->add(*device_));
    pagecache::Session session;
    session.open(*cache_);
    std::vector<uint64_t> page(512);
    for (uint64_t key = 0; key < settings["records"]; key += 256) {
      for (uint64_t i = 0; i < 256; ++i) page[2 * i] = key + i, page[2 * i + 1] = 0;
      require(session.write(*file_, key * kShape.record_bytes(), std::as_bytes(std::span(page))));
    }
    require(session.sync(*file_));
  }
  ~InPlace() override {
    cache_->close();
    device_->close();
  }

  std::unique_ptr<Client> new_client() override { return std::make_unique<InPlaceClient>(*this); }
  uint64_t store_bytes() const override { return settings_["records"] * kShape.record_bytes(); }
  // Until evictions meet pages that are changed.
  uint64_t settling_updates() const override { return settings_["memory"] / 4096; }
  uint64_t sum() override {
    pagecache::Session session;
    session.open(*cache_);
    std::vector<uint64_t> page(512);
    uint64_t sum = 0;
    for (uint64_t key = 0; key < settings_["records"]; key += 256) {
      require(session.read(*file_, key * kShape.record_bytes(), std::as_writable_bytes(std::span(page))));
      for (uint64_t i = 0; i < 256; ++i) sum += page[2 * i + 1];
    }
    return sum;
  }

 private:
  class InPlaceClient final : public Client {
   public:
    explicit InPlaceClient(InPlace& side) : file_(*side.file_) { session_.open(*side.cache_); }
    void update(const uint64_t (&keys)[kGroup]) override {
      for (const uint64_t key : keys)
        require(session_.update(file_, key * kShape.record_bytes() + 8, 8,
                                [](std::span<std::byte> bytes, uint64_t) {
                                  uint64_t number = 0;
                                  memcpy(&number, bytes.data(), 8);
                                  ++number;
                                  memcpy(bytes.data(), &number, 8);
                                }));
    }
    void sync() override { require(session_.sync(file_)); }

   private:
    pagecache::File& file_;
    pagecache::Session session_;
  };

  const Settings& settings_;
  storage::Device* const device_;
  pagecache::PageCache* cache_ = nullptr;
  pagecache::File* file_ = nullptr;
};

class Run {
 public:
  Run(const Settings& settings, Side& side) : settings_(settings) {
    for (uint64_t i = 0; i < settings["threads"]; ++i) {
      clients_.push_back(side.new_client());
      randoms_.emplace_back(settings["seed"] + i);
    }
  }

  uint64_t total() const { return total_; }
  // Of all threads, until `ends()` says so.
  template <class Ends>
  uint64_t update(const Ends& ends) {
    std::atomic<uint64_t> updates{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < clients_.size(); ++t)
      threads.emplace_back([&, t] {
        uint64_t keys[kGroup];
        while (!ends(updates.load(std::memory_order_relaxed))) {
          for (uint64_t& key : keys) key = randoms_[t].below(settings_["records"]);
          clients_[t]->update(keys);
          updates.fetch_add(kGroup, std::memory_order_relaxed);
        }
      });
    for (auto& thread : threads) thread.join();
    total_ += updates.load();
    return updates.load();
  }
  void sync() { clients_[0]->sync(); }

 private:
  const Settings& settings_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<load::Random> randoms_;
  uint64_t total_ = 0;
};

uint64_t device_bytes(const base::Statistics::Counter& counter) { return counter.get(); }

void answer(Run& run, const Settings& settings, double seconds) {
  const uint64_t read = device_bytes(base::statistics.storage_read_bytes),
                 written = device_bytes(base::statistics.storage_write_bytes);
  cases::Stopwatch watch;
  watch.start();
  const uint64_t end = cases::clock_ns(CLOCK_MONOTONIC) + static_cast<uint64_t>(seconds * 1e9);
  const uint64_t updates = run.update([&](uint64_t) { return cases::clock_ns(CLOCK_MONOTONIC) >= end; });
  if (!settings.log.empty()) run.sync();
  watch.stop();
  std::printf(
      "{\"updates\": %lu, \"seconds\": %.4f, \"cpu_seconds\": %.4f, \"read_bytes\": %lu, \"write_bytes\": "
      "%lu}\n",
      updates, static_cast<double>(watch.wall_ns()) / 1e9, static_cast<double>(watch.cpu_ns()) / 1e9,
      device_bytes(base::statistics.storage_read_bytes) - read,
      device_bytes(base::statistics.storage_write_bytes) - written);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  const Settings settings = settings_of(count, words);
  std::unique_ptr<Side> side;
  if (settings.side == "staged")
    side = std::make_unique<Staged>(settings);
  else
    side = std::make_unique<InPlace>(settings);
  {
    Run run(settings, *side);
    run.update([&](uint64_t updates) { return updates >= side->settling_updates(); });
    std::printf("{\"store_bytes\": %lu}\n", side->store_bytes());
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
      if (!line.starts_with("run ")) load::fail(2, "run SECONDS, not '" + line + "'");
      answer(run, settings, load::share_of("run", line.c_str() + 4, 1000));
    }
    if (const uint64_t sum = side->sum(); sum != run.total())
      load::fail(1,
                 "the table has " + std::to_string(sum) + " of " + std::to_string(run.total()) + " updates");
  }
  side.reset();
  return 0;
}
