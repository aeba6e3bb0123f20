// spillway kv load: puts the records of a dump, many at a time.
//
// 1 One task reads the input, takes it apart (kv_dump.h) and collects records in batches. Each batch, as large as kv::MultiPut puts at
//   once, is put by a task of its own while the next one is collected.
// 2 Of two records with the same key, the later one wins: it is put only after the earlier one has been.
// 3 A value that is too large for one record of the store is not collected: the reading task puts it piece by piece as it comes.
// 4 Before the reading task waits for more input, it puts all records that it has read.
// 5 However the load ends, SIGINT and SIGTERM included, it says how many records were put. Those are then on the medium for good, or the
//   error says that they may not be.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "kv.h"
#include "kv/multi_put.h"
#include "kv_dump.h"
#include "progress.h"
#include "server/items/flush_record.h"
#include "task/overflow.h"
#include "task/scheduler.h"
#include "task/sync.h"

namespace tools {
namespace {

constexpr uint32_t kBatches = 4;  // one is being filled while the others are being put
constexpr size_t kReadBytes = 1 << 20;
// Generous, since frames are several times as large with a sanitizer; the part of a stack that a task does not use takes no memory.
constexpr size_t kStackBytes = 512 << 10;

// Puts records through a session, many at a time. All its tasks run on one worker, so that it needs no lock.
class Puts {
 public:
  struct Record {
    std::string key;
    std::vector<std::byte> value;
    kv::PutOptions options;
  };

  explicit Puts(kv::Session& session) : session_(session) {}
  ~Puts() { drain(); }
  Puts(const Puts&) = delete;
  Puts& operator=(const Puts&) = delete;

  // The record is put together with others when there are enough of them, or by drain(). Errors appear in error(), later.
  void put(Record record) {
    const size_t hash = hash_of(record.key);
    wait_for(record.key, hash);
    if (filling_ == nullptr) {
      static_cast<void>(room_.acquire({.cancellable = false}));
      filling_ = &*std::ranges::find(all(), 0u, &Batch::count);
    }
    filling_->add(std::move(record), hash);
    if (filling_->is_full()) start();
  }
  // The same for a record whose value comes in parts: begin(), append() for each part, then commit(), which returns when it has been put,
  // or abandon().
  void begin(const Record& record) {
    wait_for(record.key, hash_of(record.key));
    options_ = record.options;
    note(writer_.open(session_, record.key));
  }
  void append(kv::Bytes part) { note(writer_.append(part)); }
  void commit() {
    if (note(writer_.commit(options_))) ++done_count_;
  }
  void abandon() { writer_.abandon(); }
  // Returns when all records that were given have been put.
  void drain() {
    if (filling_ != nullptr) start();
    for (uint32_t i = 0; i < kBatches; ++i) static_cast<void>(room_.acquire({.cancellable = false}));
    room_.release(kBatches);
  }
  uint64_t done_count() const { return done_count_; }
  const std::optional<base::Error>& error() const { return error_; }

 private:
  struct Batch {
    static constexpr uint32_t kMax = kv::MultiPut::kGroup;

    bool is_full() const { return count == kMax || value_bytes >= kv::MultiPut::kMaxBytes; }
    bool has(std::string_view key, size_t hash) const {
      for (uint32_t i = 0; i < count; ++i)
        if (hashes[i] == hash && records[i].key == key) return true;
      return false;
    }
    void add(Record record, size_t hash) {
      value_bytes += record.value.size();
      hashes[count] = hash;
      records[count++] = std::move(record);
    }

    Puts* puts = nullptr;
    uint32_t count = 0;  // 0: the batch is free
    size_t value_bytes = 0;
    size_t hashes[kMax];  // of the keys
    Record records[kMax];
    kv::MultiPut::Put calls[kMax];
    base::Expected<kv::Changed> results[kMax];
  };

  std::span<Batch> all() { return {batches_.get(), kBatches}; }
  static size_t hash_of(std::string_view key) { return std::hash<std::string_view>()(key); }
  // Returns when no put of the key is under way or collected.
  void wait_for(std::string_view key, size_t hash) {
    if (std::ranges::any_of(all(), [&](const Batch& batch) { return batch.has(key, hash); })) drain();
  }
  template <class T>
  bool note(const base::Expected<T>& done) {
    if (!done && !error_) error_ = done.error();
    return done.has_value();
  }
  // Puts the batch that is being filled, in a task of its own.
  void start() {
    Batch& batch = *std::exchange(filling_, nullptr);
    batch.puts = this;
    auto task = task::spawn(
        {.name = "put",
         .entry = [](void* self) { static_cast<Batch*>(self)->puts->run(*static_cast<Batch*>(self)); },
         .argument = &batch});
    if (note(task))
      task::detach(**task);
    else
      end(batch);
  }
  void run(Batch& batch) {
    const std::span calls(batch.calls, batch.count);
    const std::span results(batch.results, batch.count);
    for (uint32_t i = 0; i < batch.count; ++i) {
      const Record& record = batch.records[i];
      calls[i] = {record.key, record.value, record.options.expires_ms, record.options.flags};
    }
    kv::MultiPut::put(session_, calls, results);
    for (const auto& result : results)
      if (note(result)) ++done_count_;
    end(batch);
  }
  void end(Batch& batch) {
    batch.count = 0;
    batch.value_bytes = 0;
    room_.release();
  }

  kv::Session& session_;
  std::unique_ptr<Batch[]> batches_ = std::make_unique<Batch[]>(kBatches);  // a stack is small
  Batch* filling_ = nullptr;
  task::IntraSemaphore room_{kBatches};  // free batches
  kv::ValueWriter writer_;
  kv::PutOptions options_;  // of the value that writer_ writes
  uint64_t done_count_ = 0;
  std::optional<base::Error> error_;
};

class Input {
 public:
  Input(const KvLine& line, std::string_view name)
      : name_(name == "-" ? "standard input" : concat('\'', printable(name), '\'')) {
    if (name != "-") descriptor_ = open(std::string(name).c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts = {};
    if (descriptor_ < 0 || fstat(descriptor_, &facts) != 0)
      line.refuse(concat("cannot read ", name_, ": ", std::strerror(errno)));
    if (S_ISDIR(facts.st_mode)) line.refuse(concat(name_, " is a directory; name a dump"));
    if (S_ISREG(facts.st_mode)) size_bytes_ = static_cast<uint64_t>(facts.st_size);
    posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  ~Input() {
    if (descriptor_ != STDIN_FILENO) close(descriptor_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const std::string& name() const { return name_; }
  int descriptor() const { return descriptor_; }
  uint64_t size_bytes() const { return size_bytes_; }  // 0: unknown
  bool would_wait() const {
    pollfd polled = {.fd = descriptor_, .events = POLLIN, .revents = 0};
    return poll(&polled, 1, 0) == 0;
  }
  // Bytes read, 0 at the end, or -errno.
  ssize_t read(std::span<char> to) const {
    for (;;) {
      const ssize_t bytes = ::read(descriptor_, to.data(), to.size());
      if (bytes >= 0 || errno != EINTR) return bytes >= 0 ? bytes : -errno;
    }
  }

 private:
  std::string name_;
  int descriptor_ = STDIN_FILENO;
  uint64_t size_bytes_ = 0;
};

// While it exists, SIGINT and SIGTERM do not end the process but the load, which can then say how far it came. Threads started meanwhile
// keep the signals blocked, too.
class Interruptions {
 public:
  Interruptions() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
    descriptor_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    // Without the descriptor they end the process, as they do otherwise.
    if (descriptor_ < 0) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  ~Interruptions() { end(); }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

  // Waits for input or for a signal. Has a signal come?
  bool has_come_before(const Input& input) const {
    pollfd polled[] = {{.fd = input.descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = descriptor_, .events = POLLIN, .revents = 0}};
    while (poll(polled, 2, -1) < 0 && errno == EINTR) {
    }
    return polled[1].revents != 0;
  }
  // From now on signals end the process; one that has come before does not.
  void end() {
    if (descriptor_ < 0) return;
    signalfd_siginfo taken;
    while (::read(descriptor_, &taken, sizeof taken) > 0) {
    }
    close(std::exchange(descriptor_, -1));
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_;
  int descriptor_ = -1;
};

// How a load ended. It was complete if both texts are empty.
struct Ending {
  std::string wrong = {};     // what is wrong with the input
  std::string failure = {};   // why the input could not be read, or a record put
  uint64_t record_count = 0;  // records put
};

class Load {
 public:
  Load(kv::Store& store, const Input& input, const Interruptions& interruptions)
      : store_(store), input_(input), interruptions_(interruptions) {}

  // To be called in a task.
  Ending run() {
    kv::Session session;
    if (auto opened = session.open(store_, kBatches * kv::MultiPut::kGroup); !opened)
      return {.failure = opened.error().message};
    Ending ending;
    {
      Puts puts(session);
      ending = read_all(puts);
      puts.drain();
      ending.record_count = puts.done_count();
      if (puts.error()) ending.failure = puts.error()->message;
    }
    session.close();
    return ending;
  }

 private:
  Ending read_all(Puts& puts) {
    Progress progress("load", Progress::Unit::kBytes);
    std::vector<char> buffer(kReadBytes);
    for (;;) {
      if (input_.would_wait()) puts.drain();
      if (interruptions_.has_come_before(input_)) return {.failure = "kv load: interrupted"};
      const ssize_t bytes = input_.read(buffer);
      if (bytes < 0)
        return {.failure =
                    concat("cannot read ", input_.name(), ": ", std::strerror(static_cast<int>(-bytes)))};
      if (bytes == 0) return {.wrong = reader_.ended() ? "" : where(reader_.problem())};
      std::string_view piece(buffer.data(), static_cast<size_t>(bytes));
      if (std::string wrong = take(piece, puts); !wrong.empty()) return {.wrong = std::move(wrong)};
      if (puts.error()) return {};
      progress.at(reader_.offset(), input_.size_bytes());
    }
  }

  // Takes the piece of the dump apart, and puts its records. Returns what is wrong with the dump, or "".
  std::string take(std::string_view piece, Puts& puts) {
    using Event = DumpReader::Event;
    for (;;) {
      switch (reader_.next(piece)) {
        case Event::kMore: return "";
        case Event::kMalformed: return where(reader_.problem());
        case Event::kEnd: break;
        case Event::kRecord: {
          const DumpRecord& record = reader_.record();
          record_ = {.key = record.key,
                     .value = {},
                     .options = {.expires_ms = record.expires_ms, .flags = record.flags}};
          is_large_ = record.value_bytes > store_.identity().geometry.value_bytes_max();
          if (is_large_) puts.begin(record_);
          break;
        }
        case Event::kValue: {
          const kv::Bytes value = kv::bytes_of(reader_.value());
          if (is_large_)
            puts.append(value);
          else
            record_.value.insert(record_.value.end(), value.begin(), value.end());
          break;
        }
        case Event::kEndOfRecord:
          if (is_large_)
            puts.commit();
          else if (is_to_put())
            puts.put(std::move(record_));
          break;
        case Event::kVoidRecord:
          if (is_large_) puts.abandon();
          break;
      }
      if (puts.error()) return "";
    }
  }

  // A server's record of flushes is about versions: with those that the records get here it would flush some of them, or all. So only a flush that
  // is still to come is kept of it.
  bool is_to_put() {
    const auto flush =
        record_.key == server::kFlushKey ? server::FlushRecord::read(record_.value) : std::nullopt;
    if (!flush) return true;
    const auto kept = flush->in_copy();
    if (!kept) return false;
    const kv::Bytes bytes = kept->bytes();
    record_.value.assign(bytes.begin(), bytes.end());
    return true;
  }

  std::string where(std::string_view problem) const {
    return concat(input_.name(), ": byte ", reader_.offset(), ": ", problem);
  }

  kv::Store& store_;
  const Input& input_;
  const Interruptions& interruptions_;
  DumpReader reader_;
  Puts::Record record_;
  bool is_large_ = false;  // record_ lacks its value, which goes straight to the store
};

Ending load(kv::Store& store, const Input& input, const Interruptions& interruptions) {
  struct Main {
    Load load;
    Ending ending;
    std::exception_ptr exception;
  } main{.load = Load(store, input, interruptions), .ending = {}, .exception = nullptr};
  task::Scheduler scheduler;
  value_of(scheduler.open({.stack_bytes = kStackBytes}));
  task::report_overflows();
  auto ran = scheduler.run({.name = "load",
                            .entry =
                                [](void* argument) {
                                  Main& self = *static_cast<Main*>(argument);
                                  try {
                                    self.ending = self.load.run();
                                  } catch (...) {  // std::bad_alloc
                                    self.exception = std::current_exception();
                                  }
                                },
                            .argument = &main});
  scheduler.close();
  value_of(std::move(ran));
  if (main.exception) std::rethrow_exception(main.exception);
  return main.ending;
}

kv::Durability durability_of(const KvLine& line) {
  if (!line.has("--durability")) return kv::Durability::kBatch;
  const std::string_view name = line.options.at("--durability");
  if (const auto durability = durability_called(name)) return *durability;
  line.refuse(concat("--durability: '", printable(name), "'; give none, batch or sync"));
}

}  // namespace

int kv_load(const KvLine& line) {
  const kv::Durability durability = durability_of(line);
  const Input input(line, line.words[1]);
  Interruptions interruptions;
  KvStore store(line.device, {.durability = durability});
  Ending ending = load(*store, input, interruptions);
  interruptions.end();
  const std::string stats = line.has("--stats") ? stats_text(*store) : "";
  try {
    store.close();
  } catch (const std::runtime_error& error) {
    ending.failure += concat(ending.failure.empty() ? "" : "; ", error.what());
  }
  const std::string loaded = concat("; ", ending.record_count, " records were loaded");
  if (!ending.failure.empty()) throw std::runtime_error(printable(ending.failure) + loaded);
  if (!ending.wrong.empty()) line.refuse(ending.wrong + loaded);
  std::printf("%lu records were loaded\n%s", ending.record_count, stats.c_str());
  return 0;
}

}  // namespace tools
