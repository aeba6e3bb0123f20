// spillway kv load: puts what a dump holds, many records at a time.
//
// 1 one task reads, takes the dump apart (kv_dump.h) and collects records; as many as kv::MultiPut puts together are put by a task of
//   their own, while the next ones are collected
// 2 of records with the same key the later one is put when the one before it has been: two such are never under way together
//   A value that one record of the store cannot hold is not kept in memory: the task that reads puts it, piece by piece
// 3 before it waits for more input, all records that have been read are put
// 4 whatever ends it, SIGINT and SIGTERM too, it says how many records were put, and what was put is on the medium for good, or the
//   error says that it may not be
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
#include "task/overflow.h"
#include "task/scheduler.h"
#include "task/sync.h"

namespace tools {
namespace {

constexpr uint32_t kBatches = 4;  // one of which is being filled
constexpr size_t kReadBytes = 1 << 20;
// Address space: what a task does not use of its stack takes no memory. With a sanitizer frames are several times as large.
constexpr size_t kStackBytes = 512 << 10;

// Puts of a session, many at a time. Of the tasks of one worker.
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

  // It is put with others, when there are enough of them, or by drain(). Errors are said by error(), later.
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
  // The same for one whose value comes in parts: begin(), append() for each, commit(). It has been put when that returns.
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
  // Waits until all that there are have been put.
  void drain() {
    if (filling_ != nullptr) start();
    for (uint32_t i = 0; i < kBatches; ++i) static_cast<void>(room_.acquire({.cancellable = false}));
    room_.release(kBatches);
  }
  uint64_t done_count() const { return done_count_; }
  const std::optional<base::Error>& error() const { return error_; }

 private:
  struct Batch {
    static constexpr uint32_t kMost = kv::MultiPut::kGroup;

    bool is_full() const { return count == kMost || value_bytes >= kv::MultiPut::kBytesMost; }
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
    uint32_t count = 0;  // 0: it is free
    size_t value_bytes = 0;
    size_t hashes[kMost];  // of the keys
    Record records[kMost];
    kv::MultiPut::Put calls[kMost];
    base::Expected<kv::Changed> results[kMost];
  };

  std::span<Batch> all() { return {batches_.get(), kBatches}; }
  static size_t hash_of(std::string_view key) { return std::hash<std::string_view>()(key); }
  void wait_for(std::string_view key, size_t hash) {
    if (std::ranges::any_of(all(), [&](const Batch& batch) { return batch.has(key, hash); })) drain();
  }
  template <class T>
  bool note(const base::Expected<T>& done) {
    if (!done && !error_) error_ = done.error();
    return done.has_value();
  }
  // What is being filled.
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
  task::IntraSemaphore room_{kBatches};
  kv::ValueWriter writer_;
  kv::PutOptions options_;  // of what it writes
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
  uint64_t size_bytes() const { return size_bytes_; }  // 0: nobody knows
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

// SIGINT and SIGTERM end a load, so that it can say how far it came. For threads that are started while it is there, too; once it has
// gone they end the process.
class Interruptions {
 public:
  Interruptions() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
    descriptor_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    // They end the process, as ever.
    if (descriptor_ < 0) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  ~Interruptions() { end(); }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

  // Waits for input, or for one of them. Has one come?
  bool has_come_before(const Input& input) const {
    pollfd polled[] = {{.fd = input.descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = descriptor_, .events = POLLIN, .revents = 0}};
    while (poll(polled, 2, -1) < 0 && errno == EINTR) {
    }
    return polled[1].revents != 0;
  }
  // Takes the one that has come, if any.
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

// How a load ends: whole, or by what was wrong with the input, or by an error.
struct Ending {
  std::string wrong = {};    // of the input
  std::string failure = {};  // of reading it, or of the store
  uint64_t record_count = 0;
};

class Load {
 public:
  Load(kv::Store& store, const Input& input, const Interruptions& interruptions)
      : store_(store), input_(input), interruptions_(interruptions) {}

  // In a task.
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

  // What is wrong, or "".
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
          const auto value = std::as_bytes(std::span(reader_.value()));
          if (is_large_)
            puts.append(value);
          else
            record_.value.insert(record_.value.end(), value.begin(), value.end());
          break;
        }
        case Event::kEndOfRecord:
          if (is_large_)
            puts.commit();
          else
            puts.put(std::move(record_));
          break;
        case Event::kVoidRecord:
          if (is_large_) puts.abandon();
          break;
      }
      if (puts.error()) return "";
    }
  }

  std::string where(std::string_view problem) const {
    return concat(input_.name(), ": byte ", reader_.offset(), ": ", problem);
  }

  kv::Store& store_;
  const Input& input_;
  const Interruptions& interruptions_;
  DumpReader reader_;
  Puts::Record record_;
  bool is_large_ = false;  // its value is not in it
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
                                  } catch (...) {  // memory
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
  if (name == "none") return kv::Durability::kNone;
  if (name == "batch") return kv::Durability::kBatch;
  if (name == "sync") return kv::Durability::kSync;
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
    if (ending.failure.empty()) ending.failure = error.what();
  }
  const std::string loaded = concat("; ", ending.record_count, " records were loaded");
  if (!ending.failure.empty()) throw std::runtime_error(printable(ending.failure) + loaded);
  if (!ending.wrong.empty()) line.refuse(ending.wrong + loaded);
  std::printf("%lu records were loaded\n%s", ending.record_count, stats.c_str());
  return 0;
}

}  // namespace tools
