// The batched update table for C++ (C++17, with exceptions): keys and values are types, functions are lambdas, errors are exceptions. The options'
// names in the example need C++20; in C++17, set the members of a BatchOptions.
// (spillway/batch.h says what each call does and costs; docs/batch.md)
//
//   spillway::BatchTable<uint64_t, uint64_t> table({.records = 10'000'000});
//   auto add = table.add_function([](uint64_t &value, uint64_t given) { value += given; });
//   auto session = table.session();                       // one for each thread
//   session.upsert(keys, values);                         // many keys in a call: their misses of the cache overlap
//   session.merge(keys, add, values);                     // each value becomes what add() makes of it and of what is given
//   std::optional<uint64_t> value = session.read(7);
//
// Functions that throw. A value changes only when its function returns: a function that throws has changed nothing. The table keeps the first
// exception of its functions, and the next call of any session that changes, flushes or syncs throws it; where changes are staged, that may be later
// and in another thread. Changes that follow the one that threw are made as usual.
#ifndef SPILLWAY_BATCH_HPP
#define SPILLWAY_BATCH_HPP
#include <atomic>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "spillway/batch.h"

namespace spillway {

// status(): SPILLWAY_BATCH_INVALID, _NO_MEMORY, _FULL, _IN_USE; of tables in files also _IO, _NOT_FOUND, _DENIED, _DAMAGED.
class BatchError : public std::runtime_error {
 public:
  BatchError(int status, const char *line) : std::runtime_error(line), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// The members of spillway_batch_options that the types do not imply, with the same meaning.
struct BatchOptions {
  uint64_t records = 0;  // required
  uint64_t key_space = 0;
  uint32_t bucket_bytes = 0;
  bool grows = true;
  const char *engine = "auto";
  uint64_t staging_bytes = 0;
  uint64_t cache_bytes = 0;
  uint64_t stale_changes_max = 0;
  uint32_t stale_ms_max = 0;
  uint32_t threads = 0;
  // Of a table in a file.
  const char *file = nullptr;
  uint64_t file_bytes = 0;
  uint64_t memory_bytes = 0;
  const char *log = nullptr;
  uint64_t log_bytes = 0;
};

// How many of a call's keys had no record, got a new one, lost theirs; all 0 if changes were staged.
struct BatchCounts {
  size_t absent = 0, inserted = 0, removed = 0;
};

// A table, which owns its functions; any thread may use it, each through a session of its own. Keys are compared, and keys and values stored, as bytes.
template <class Key, class Value>
class BatchTable {
  static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>);
  static_assert(std::has_unique_object_representations_v<Key>, "the bytes of equal keys are the same");
  static_assert(sizeof(Key) >= 4 && sizeof(Key) <= 16 && sizeof(Key) + sizeof(Value) >= 8 &&
                sizeof(Key) + sizeof(Value) <= 64);

 public:
  // A function that the table has, for changes and merges; it is valid for the table that returned it, as long as that lives.
  class Function {
    friend class BatchTable;
    uint32_t number = 0;
  };

  class Session {
   public:
    Session(Session &&other) noexcept
        : table_(other.table_), session_(std::exchange(other.session_, nullptr)) {}
    Session &operator=(Session &&) = delete;
    ~Session() { spillway_batch_session_close(session_); }

    // `count` keys, with the new value of each, or with what the function is given for it. The arrays stay the caller's. Throws BatchError, and what
    // functions have thrown.
    BatchCounts update(const Key *keys, const Value *values, size_t count) {
      return run(SPILLWAY_BATCH_UPDATE, keys, values, count);
    }
    BatchCounts update(const Key *keys, Function function, const Value *given, size_t count) {
      return run(SPILLWAY_BATCH_CHANGE, keys, given, count, function.number);
    }
    // As update() with a function; if a key has no record, it gets one with the given value.
    BatchCounts merge(const Key *keys, Function function, const Value *given, size_t count) {
      return run(SPILLWAY_BATCH_MERGE, keys, given, count, function.number);
    }
    BatchCounts upsert(const Key *keys, const Value *values, size_t count) {
      return run(SPILLWAY_BATCH_UPSERT, keys, values, count);
    }
    BatchCounts remove(const Key *keys, size_t count) {
      return run(SPILLWAY_BATCH_REMOVE, keys, nullptr, count);
    }
    // Copies the values of `keys` to `values`; where a key has no record, the value there stays as it was. `found` tells for each key whether it has one.
    BatchCounts read(const Key *keys, Value *values, size_t count, std::vector<bool> *found = nullptr) {
      std::vector<uint8_t> outcomes(found != nullptr ? count : 0);
      spillway_batch_job job = job_of(SPILLWAY_BATCH_READ, keys, nullptr, count);
      job.read = values;
      job.outcomes = found != nullptr ? outcomes.data() : nullptr;
      const BatchCounts counts = run(job);
      if (found != nullptr) {
        found->assign(count, false);
        for (size_t i = 0; i < count; ++i) (*found)[i] = outcomes[i] == SPILLWAY_BATCH_DONE;
      }
      return counts;
    }

    // The same for containers whose elements lie side by side.
    template <class Keys, class Values, class = decltype(std::data(std::declval<const Keys &>()))>
    BatchCounts update(const Keys &keys, const Values &values) {
      return update(std::data(keys), std::data(values), same_size(keys, values));
    }
    template <class Keys, class Values, class = decltype(std::data(std::declval<const Keys &>()))>
    BatchCounts update(const Keys &keys, Function function, const Values &given) {
      return update(std::data(keys), function, std::data(given), same_size(keys, given));
    }
    template <class Keys, class Values, class = decltype(std::data(std::declval<const Keys &>()))>
    BatchCounts merge(const Keys &keys, Function function, const Values &given) {
      return merge(std::data(keys), function, std::data(given), same_size(keys, given));
    }
    template <class Keys, class Values, class = decltype(std::data(std::declval<const Keys &>()))>
    BatchCounts upsert(const Keys &keys, const Values &values) {
      return upsert(std::data(keys), std::data(values), same_size(keys, values));
    }

    // The same for one key. read() returns nothing if there is no such record.
    std::optional<Value> read(const Key &key) {
      Value value;
      if (read(&key, &value, 1).absent == 1) return std::nullopt;
      return value;
    }
    void update(const Key &key, const Value &value) { update(&key, &value, 1); }
    void update(const Key &key, Function function, const Value &given) { update(&key, function, &given, 1); }
    void merge(const Key &key, Function function, const Value &given) { merge(&key, function, &given, 1); }
    void upsert(const Key &key, const Value &value) { upsert(&key, &value, 1); }
    void remove(const Key &key) { remove(&key, 1); }
    // Calls change(value) at once, in this thread, after whatever is staged for the key has been made. Returns whether there is such a record. What
    // change() throws is thrown here, and the value stays as it was.
    template <class F>
    bool modify(const Key &key, F &&change) {
      struct Once {
        F *change;
        std::exception_ptr thrown;
      } once{&change, nullptr};
      Value unused{};
      spillway_batch_job job = job_of(SPILLWAY_BATCH_CHANGE, &key, &unused, 1);
      job.own_context = &once;
      job.own_function = [](void *context, void *at, const void *) {
        Once &own = *static_cast<Once *>(context);
        own.thrown = change_at(at, [&](Value &value) { (*own.change)(value); });
      };
      const bool is_there = run(job).absent == 0;
      if (once.thrown) std::rethrow_exception(once.thrown);
      table_->rethrow();
      return is_there;
    }

    // Makes all staged changes, as spillway_batch_flush() does. Throws as update().
    void flush() {
      check(spillway_batch_flush(session_));
      table_->rethrow();
    }
    // Of a table in a file: makes changes durable, as spillway_batch_sync() does. Throws as update().
    void sync() {
      check(spillway_batch_sync(session_));
      table_->rethrow();
    }
    // Calls visit(key, value) for each record as spillway_batch_for_each() does; visit() returns whether to go on. Returns whether it always did.
    // What visit() throws is thrown here.
    template <class F>
    bool for_each(F &&visit) {
      struct All {
        F *visit;
        std::exception_ptr thrown;
      } all{&visit, nullptr};
      const int status = spillway_batch_for_each(
          session_,
          [](void *context, const void *key_at, const void *value_at) {
            All &own = *static_cast<All *>(context);
            Key key;
            Value value;
            std::memcpy(&key, key_at, sizeof key);
            std::memcpy(&value, value_at, sizeof value);
            try {
              return (*own.visit)(std::as_const(key), std::as_const(value)) ? 0 : 1;
            } catch (...) {
              own.thrown = std::current_exception();
              return 1;
            }
          },
          &all);
      if (all.thrown) std::rethrow_exception(all.thrown);
      check(status);
      return status == SPILLWAY_BATCH_OK;
    }

   private:
    friend class BatchTable;
    Session(BatchTable &table, spillway_batch_session *session) : table_(&table), session_(session) {}

    template <class Keys, class Values>
    static size_t same_size(const Keys &keys, const Values &values) {
      if (std::size(keys) != std::size(values))
        throw BatchError(SPILLWAY_BATCH_INVALID, "table: there are not as many values as keys");
      return std::size(keys);
    }
    static spillway_batch_job job_of(uint32_t action, const Key *keys, const Value *values, size_t count) {
      spillway_batch_job job = {};
      job.struct_bytes = sizeof job;
      job.action = action;
      job.count = count;
      job.keys = keys;
      job.values = values;
      return job;
    }
    BatchCounts run(uint32_t action, const Key *keys, const Value *values, size_t count,
                    uint32_t function = 0) {
      spillway_batch_job job = job_of(action, keys, values, count);
      job.function = function;
      const BatchCounts counts = run(job);
      table_->rethrow();
      return counts;
    }
    BatchCounts run(spillway_batch_job &job) {
      check(spillway_batch_run(session_, &job));
      return {job.absent_count, job.inserted_count, job.removed_count};
    }
    void check(int status) const {
      if (status < 0) throw BatchError(status, spillway_batch_error_text(session_));
    }

    BatchTable *table_;
    spillway_batch_session *session_;
  };

  // Opens the table, as spillway_batch_open() does. Throws BatchError.
  explicit BatchTable(const BatchOptions &options) {
    spillway_batch_options all = {};
    all.struct_bytes = sizeof all;
    all.key_bytes = sizeof(Key);
    all.value_bytes = sizeof(Value);
    all.records = options.records;
    all.key_space = options.key_space;
    all.bucket_bytes = options.bucket_bytes;
    all.no_growth = options.grows ? 0 : 1;
    all.engine = options.engine;
    all.staging_bytes = options.staging_bytes;
    all.cache_bytes = options.cache_bytes;
    all.stale_changes_max = options.stale_changes_max;
    all.stale_ms_max = options.stale_ms_max;
    all.threads = options.threads;
    all.file = options.file;
    all.file_bytes = options.file_bytes;
    all.memory_bytes = options.memory_bytes;
    all.log = options.log;
    all.log_bytes = options.log_bytes;
    check(spillway_batch_open(&all, &table_));
  }
  BatchTable(const BatchTable &) = delete;
  BatchTable &operator=(const BatchTable &) = delete;
  // REQUIRES: its sessions are gone.
  ~BatchTable() { spillway_batch_close(table_); }
  // Closes the table before its destructor does, and throws if a table in a file could not be made durable. Nothing else may be called afterwards.
  void close() {
    const int status = spillway_batch_close(table_);
    if (status != SPILLWAY_BATCH_IN_USE) table_ = nullptr;
    check(status);
  }

  // Adds function(value, given), which changes the value: up to 32 of them, before the first session. Any thread that has a session may call it, and
  // the table's own threads.
  template <class F>
  Function add_function(F function) {
    struct Own final : Kept {
      Own(BatchTable &of, F f) : table(of), function(std::move(f)) {}
      BatchTable &table;
      F function;
    };
    auto own = std::make_unique<Own>(*this, std::move(function));
    Function added;
    check(spillway_batch_add_function(
        table_,
        [](void *context, void *at, const void *given_at) {
          Own &self = *static_cast<Own *>(context);
          Value given;
          std::memcpy(&given, given_at, sizeof given);
          if (auto thrown = change_at(at, [&](Value &value) { self.function(value, std::as_const(given)); }))
            self.table.keep(std::move(thrown));
        },
        own.get(), &added.number));
    functions_.push_back(std::move(own));
    return added;
  }

  // A session for one thread at a time, which must not outlive the table. Throws BatchError.
  Session session() {
    spillway_batch_session *session = nullptr;
    check(spillway_batch_session_open(table_, &session));
    return Session(*this, session);
  }

  // One JSON object (docs/batch.md, "Statistics").
  std::string statistics() {
    std::string text(4096, 0);
    size_t needed = 0;
    check(spillway_batch_stats(table_, text.data(), text.size(), &needed));
    text.resize(needed - 1);
    return text;
  }

 private:
  struct Kept {
    virtual ~Kept() = default;
  };

  // Calls change() with a copy of the value at `at`, and stores the copy unless it throws; returns what it threw.
  template <class F>
  static std::exception_ptr change_at(void *at, F change) noexcept {
    Value value;
    std::memcpy(&value, at, sizeof value);
    try {
      change(value);
    } catch (...) {
      return std::current_exception();
    }
    std::memcpy(at, &value, sizeof value);
    return nullptr;
  }
  static void check(int status) {
    if (status < 0) throw BatchError(status, spillway_batch_error_text(nullptr));
  }
  void keep(std::exception_ptr thrown) {
    std::lock_guard<std::mutex> scope(lock_);
    if (!thrown_) thrown_ = std::move(thrown);
    has_thrown_.store(true, std::memory_order_release);
  }
  void rethrow() {
    if (!has_thrown_.load(std::memory_order_acquire)) return;
    std::unique_lock<std::mutex> scope(lock_);
    has_thrown_.store(false, std::memory_order_relaxed);
    if (std::exception_ptr thrown = std::exchange(thrown_, nullptr)) {
      scope.unlock();
      std::rethrow_exception(thrown);
    }
  }

  spillway_batch *table_ = nullptr;
  std::vector<std::unique_ptr<Kept>> functions_;
  std::mutex lock_;
  std::exception_ptr thrown_;
  std::atomic<bool> has_thrown_{false};
};

}  // namespace spillway
#endif
