// spillway kv list, dump: the subcommands that go through all keys. They see the store as it was when they began (kv/snapshot.h).
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "kv.h"
#include "kv/recovery/recovery_reader.h"
#include "kv/snapshot.h"
#include "kv_dump.h"
#include "progress.h"
#include "server/items/flush_record.h"
#include "sys/files.h"

namespace tools {
namespace {

constexpr size_t kPartBytes = 1 << 20;

// Does the error concern a single record, so that the next ones may still be read?
bool is_of_record(const base::Error& error) {
  return error.number == EBADMSG || kv::is_of_medium(error.number);
}

// Counts the records that could not be read, and prints a line for each of the first few.
class Unread {
 public:
  // Throws an error that does not concern a single record. `where` ends the line: which record it is, if that is known.
  void add(const base::Error& error, std::string_view where = "") {
    if (!is_of_record(error)) throw_error(error);
    if (count_++ < kSaid)
      std::fputs(concat("spillway: ", printable(error.message), where, '\n').c_str(), stderr);
  }
  uint64_t count() const { return count_; }

 private:
  static constexpr uint64_t kSaid = 8;
  uint64_t count_ = 0;
};

// Calls act(snapshot, entry) for each key that can be read, until it returns false.
template <class Act>
void for_each_entry(kv::Session& session, Unread& unread, const Act& act) {
  kv::Snapshot snapshot;
  value_of(snapshot.open(session));
  for (kv::Snapshot::Entry entry;;) {
    const auto found = snapshot.next(entry);
    if (!found) unread.add(found.error());
    if (found && (!*found || !act(snapshot, entry))) return;
  }
}

// The exit status after all that could be read has been printed or written; says on standard error what is missing.
int status_of(const KvLine& line, const Unread& unread, bool has_lost) {
  if (unread.count() > 0)
    std::fprintf(
        stderr,
        "spillway: kv %s: records that cannot be read, and are left out: %lu; spillway check says where\n",
        line.name.data(), unread.count());
  else if (has_lost)
    std::fprintf(stderr, "spillway: kv %s: the store is damaged, and what was lost is left out\n",
                 line.name.data());
  return unread.count() > 0 || has_lost ? 1 : 0;
}

// Calls act(text) for the parts of the entry's value, up to the first that cannot be read. Returns how many bytes that were.
template <class Act>
uint64_t for_each_part(kv::Snapshot& snapshot, const kv::Snapshot::Entry& entry, Unread& unread,
                       const Act& act) {
  if (!entry.is_large) {
    act(kv::text_of(entry.value));
    return entry.value_bytes;
  }
  std::vector<std::byte> part(kPartBytes);
  uint64_t at = 0;
  while (at < entry.value_bytes) {
    const auto bytes = snapshot.read_value(at, part);
    if (!bytes) {
      unread.add(bytes.error(),
                 concat(", in the value of '", escaped(entry.key), "'; delete that key, or put it again"));
      break;
    }
    act(kv::text_of(std::span(part).first(*bytes)));
    at += *bytes;
  }
  return at;
}

// Removes a file when SIGINT, SIGTERM or SIGHUP comes; then the signal ends the process as it does otherwise. The constructor blocks the
// signals, so that none comes between the making of the file and begin(). At most one object at a time, since handlers know only statics.
class RemovedWhenInterrupted {
 public:
  RemovedWhenInterrupted() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : kSignals) sigaddset(&signals, number);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~RemovedWhenInterrupted() {
    keep();
    for (size_t i = 0; i < std::size(kSignals); ++i)
      if (is_caught_[i]) sigaction(kSignals[i], &actions_[i], nullptr);
  }
  RemovedWhenInterrupted(const RemovedWhenInterrupted&) = delete;
  RemovedWhenInterrupted& operator=(const RemovedWhenInterrupted&) = delete;

  // Lets the signals come. `path` must outlive this object; null: there is no file to remove.
  void begin(const char* path) {
    struct sigaction action = {};
    action.sa_handler = remove;
    sigemptyset(&action.sa_mask);
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    path_ = path;
    for (size_t i = 0; path != nullptr && i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], nullptr, &actions_[i]);
      is_caught_[i] = actions_[i].sa_handler != SIG_IGN && sigaction(kSignals[i], &action, nullptr) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  // The file is not removed from now on.
  void keep() { path_ = nullptr; }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

  static void remove(int number) {
    if (const char* const path = path_.exchange(nullptr)) unlink(path);
    raise(number);  // ends the process when the handler returns: SA_RESETHAND
  }

  static inline constinit std::atomic<const char*> path_ = nullptr;
  sigset_t before_;
  struct sigaction actions_[std::size(kSignals)] = {};
  bool is_caught_[std::size(kSignals)] = {};
};

// Where a dump goes: standard output, or a file that it makes, and removes again unless done() has returned.
class Output {
 public:
  Output(const KvLine& line, std::string_view name)
      : path_(name), name_(name == "-" ? "standard output" : concat('\'', printable(name), '\'')) {
    // Makes writing fail at the limit for files' sizes: otherwise the signal would end the process, and leave the file.
    signal(SIGXFSZ, SIG_IGN);
    if (name == "-") {
      interruptions_.begin(nullptr);
      return;
    }
    const int descriptor = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const int error = errno;
    interruptions_.begin(descriptor < 0 ? nullptr : path_.c_str());
    errno = error;
    if (descriptor < 0 && errno == EEXIST)
      line.refuse(concat(name_, " is there already; remove it, or name another file"));
    if (descriptor < 0) line.refuse(concat("cannot make ", name_, ": ", std::strerror(errno)));
    file_ = fdopen(descriptor, "w");
    is_made_ = true;
  }
  ~Output() {
    if (!is_made_) return;
    std::fclose(file_);
    unlink(path_.c_str());
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail();
  }
  void write_zeros(uint64_t bytes) {
    static constexpr char kZeros[64 << 10] = {};
    for (; bytes > 0; bytes -= std::min<uint64_t>(bytes, sizeof kZeros))
      write({kZeros, std::min<uint64_t>(bytes, sizeof kZeros)});
  }
  // To be called after the last write: when it returns, the file is on its medium, with its name.
  void done() {
    if (std::fflush(file_) != 0) fail();
    if (!is_made_) return;
    if (fsync(fileno(file_)) != 0 && errno != EINVAL) fail();
    if (const long result = sys::sync_name(path_); result != 0) {
      errno = static_cast<int>(-result);
      fail();
    }
    interruptions_.keep();
    is_made_ = false;
    if (std::fclose(file_) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error(concat("kv dump: cannot write ", name_, ": ", std::strerror(errno)));
  }

  const std::string path_, name_;
  RemovedWhenInterrupted interruptions_;
  std::FILE* file_ = stdout;
  bool is_made_ = false;
};

// A server's record of flushes in its store. None: there is none, or it cannot be read, which is reported when all records are gone
// through.
std::optional<server::FlushRecord> flush_of(kv::Session& session) {
  const auto found = session.get(server::kFlushKey);
  if (!found && !is_of_record(found.error())) throw_error(found.error());
  if (!found) return std::nullopt;
  auto flush = server::FlushRecord::read(found->value());
  if (flush && flush->floor == 0) flush->floor = found->version();
  return flush;
}

}  // namespace

int kv_list(const KvLine& line) {
  const bool with_values = line.has("--values"), is_raw = line.has("--null");
  const std::string_view prefix = line.has("--prefix") ? line.options.at("--prefix") : "";
  uint64_t left = line.has("--count") ? line.number("--count", 1, ~uint64_t{0}) : ~uint64_t{0};
  const auto print = [&](std::string_view text) {
    const std::string shown = is_raw ? std::string() : escaped(text);
    const std::string_view out = is_raw ? text : shown;
    std::fwrite(out.data(), 1, out.size(), stdout);
  };
  const auto print_end = [&](char end) { std::putchar(is_raw ? '\0' : end); };
  KvStore store(line.device, {.read_only = true});
  const bool has_lost = !store->recovery().has_read_all();
  Unread unread;
  {
    KvSession session(*store);
    // Keys on the same terminal are progress enough.
    Progress progress("list", Progress::Unit::kKeys, isatty(STDOUT_FILENO) == 0);
    const uint64_t all = store->counts().index.entries;
    uint64_t seen = 0;
    for_each_entry(*session, unread, [&](kv::Snapshot& snapshot, const kv::Snapshot::Entry& entry) {
      progress.at(++seen, all);
      if (!entry.key.starts_with(prefix)) return true;
      print(entry.key);
      print_end(with_values ? '\t' : '\n');
      if (with_values) {
        for_each_part(snapshot, entry, unread, print);
        print_end('\n');
      }
      return --left > 0 && std::ferror(stdout) == 0;
    });
  }
  store.close();
  return status_of(line, unread, has_lost);
}

int kv_dump(const KvLine& line) {
  KvStore store(line.device, {.read_only = true});
  const bool has_lost = !store->recovery().has_read_all();
  Unread unread;
  uint64_t count = 0;
  {
    Output output(line, line.words[1]);
    KvSession session(*store);
    Progress progress("dump", Progress::Unit::kKeys);
    const uint64_t all = store->counts().index.entries;
    output.write(kDumpFirstLine);
    // A server tells what it has flushed by versions, and these change when the dump is loaded.
    const auto flush = flush_of(*session);
    if (flush) store->forget_below(flush->floor);
    const auto write_flush = [&](const server::FlushRecord& record) {
      output.write(dump_record_begin({.key = std::string(server::kFlushKey), .value_bytes = sizeof record}));
      output.write(kv::text_of(record.bytes()));
      output.write(kDumpRecordEnd);
      ++count;
    };
    for_each_entry(*session, unread, [&](kv::Snapshot& snapshot, const kv::Snapshot::Entry& entry) {
      if (flush && entry.key == server::kFlushKey) {
        if (const auto kept = flush->in_copy()) write_flush(*kept);
        return true;
      }
      output.write(dump_record_begin({.key = std::string(entry.key),
                                      .value_bytes = entry.value_bytes,
                                      .flags = entry.flags,
                                      .expires_ms = entry.expires_ms}));
      const uint64_t bytes =
          for_each_part(snapshot, entry, unread, [&](std::string_view part) { output.write(part); });
      const bool is_whole = bytes == entry.value_bytes;
      if (!is_whole) output.write_zeros(entry.value_bytes - bytes);
      output.write(is_whole ? kDumpRecordEnd : kDumpRecordVoid);
      progress.at(count += is_whole, all);
      return true;
    });
    output.write(dump_last_line(count));
    output.done();
  }
  store.close();
  return status_of(line, unread, has_lost);
}

}  // namespace tools
