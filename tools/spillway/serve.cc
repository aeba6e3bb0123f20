// spillway serve: a store for clients of memcached and Redis.
//
//  1 whatever can be wrong is reported in one line, before it serves; the parent of a daemon waits until then
//  2 it opens its sockets and the store, writes the file with its process id, becomes the user, and then answers clients
//  3 after the first SIGTERM or SIGINT requests that have begun are still answered, after the second one they are not. What was acknowledged is in
//    the store. Until the store is open, one of them ends the process at once, unless a store is being made. After SIGHUP the log is opened, and the
//    files of TLS and of passwords are read, again (server/front/server.h)
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>

#include "base/json_log.h"
#include "base/log.h"
#include "kv.h"
#include "kv/make_at.h"
#include "privileges.h"
#include "serve_options.h"
#include "server/front/log_file.h"
#include "server/front/service_manager.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/signals.h"

namespace tools {
namespace {

// Makes the process a daemon. Its parent stays until the daemon serves, and returns 0 then, or the daemon's exit status if the daemon ends before
// that.
class Daemon {
 public:
  // Returns only in the child, the daemon.
  void begin() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(concat("serve: ", std::strerror(errno)));
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error(concat("serve: cannot fork: ", std::strerror(errno)));
    if (child > 0) {
      close(ends[1]);
      wait_for(child, ends[0]);
    }
    close(ends[0]);
    ready_ = ends[1];
    setsid();
  }
  // Called when it serves. Standard error stays if the log goes there.
  void serves(bool has_log) {
    if (ready_ < 0) return;
    if (const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC); nothing >= 0) {
      for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (standard != STDERR_FILENO || !has_log) dup2(nothing, standard);
      close(nothing);
    }
    const char done = 1;
    static_cast<void>(!write(ready_, &done, 1));
    close(ready_);
  }

 private:
  [[noreturn]] static void wait_for(pid_t child, int ready) {
    char done = 0;
    if (read(ready, &done, 1) == 1) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  int ready_ = -1;
};

// The file with the process id; it exists as long as the object.
class PidFile {
 public:
  explicit PidFile(const std::string& path) : path_(path) {
    if (path.empty()) return;
    std::ofstream file(path, std::ios::trunc);
    file << getpid() << '\n';
    if (file.flush()) return;
    const int error = errno;
    remove();
    throw SystemFailure(
        error, concat("serve: --pid-file: cannot write '", printable(path), "': ", std::strerror(error)));
  }
  ~PidFile() { remove(); }
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  // Only a regular file is ours to remove, no device or link that was there before (/dev/null, /dev/stdout).
  void remove() const {
    struct stat there = {};
    if (!path_.empty() && lstat(path_.c_str(), &there) == 0 && S_ISREG(there.st_mode)) unlink(path_.c_str());
  }

  const std::string& path_;
};

// As if the user had started the server: --unix-mode is about that user and its group, as memcached's -a is.
void give_sockets(const server::Server& serves, const passwd& user) {
  for (const server::Listening& listening : serves.listening()) {
    if (listening.is_given) continue;
    if (auto given = server::give_to(listening.address, user.pw_uid, user.pw_gid); !given)
      throw WrongInput(concat("serve: --user: ", printable(given.error().message)));
  }
}

// Called as the user who will have to open the log again at SIGHUP.
void begin_log(const std::string& path) {
  if (path.empty()) return;
  if (auto opened = server::log_to(path); !opened)
    throw WrongInput(concat("serve: --log: ", printable(opened.error().message),
                            "; give a file that the server's user may write to"));
}

// Each connection has a descriptor, beside those of workers and storage.
void allow_descriptors(uint32_t connections) {
  constexpr rlim_t kOthers = sys::kMaxOwnDescriptors + 64;
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = connections + kOthers;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  limit.rlim_max = std::max(limit.rlim_max, wanted);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted)
    base::log({.name = "descriptors_few",
               .fields = {{"descriptors", limit.rlim_cur}, {"connections", connections}}},
              "serve: ", limit.rlim_cur, " descriptors are allowed, which is too few for ", connections,
              " connections; others will wait (ulimit -n)");
}

// Ends the process as the signal does by default, even the first process of a container, which the kernel spares.
void end_by(int number) {
  raise(number);
  _exit(128 + number);
}

// Has these signals end the process at once, until they are blocked.
void end_at_once_by(std::initializer_list<int> numbers) {
  struct sigaction action = {};
  action.sa_handler = end_by;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int number : numbers) sigaction(number, &action, nullptr);
}

// From now on these are left to the server, which reads them.
void block_signals(std::initializer_list<int> numbers) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : numbers) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void make_store(const ServeOptions& options) {
  // Signals wait: what is half made is no store, but as content it would keep the next start from making one.
  const uint64_t before = sys::block_signals(sys::kSentSignals);
  auto made = kv::make_store_at(
      options.storage, {.store = {.capacity_bytes = options.capacity_bytes, .is_cache = options.is_cache},
                        .overwrite_advice = "spillway kv make --overwrite",
                        .capacity_advice = "--capacity SIZE"});
  sys::set_signal_mask(before);
  if (made)
    base::log({.name = "store_made",
               .level = base::LogLevel::kInfo,
               .fields = {{"store", options.storage}, {"bytes", made->segment_count * made->segment_bytes}}},
              "serve: made a ", options.is_cache ? "cache" : "store", " of ",
              readable_bytes(made->segment_count * made->segment_bytes), " at ", options.storage);
  else if (made.error().number != EEXIST)
    throw_error(made.error());
}

// A store that was there stays as it was made, whatever the options say.
void compare(const kv::Identity& identity, const ServeOptions& options) {
  if (options.is_cache && !identity.is_cache)
    throw WrongInput(concat(
        "serve: --cache: ", options.storage,
        " is there, and is not a cache: it would refuse writes when it is full; leave out --cache, or make a "
        "cache elsewhere"));
  const uint64_t bytes = identity.geometry.segment_count * identity.geometry.segment_bytes;
  if (options.capacity_bytes / 2 > bytes || options.capacity_bytes < bytes - bytes / 8)
    base::log({.name = "store_of_other_size", .fields = {{"store", options.storage}, {"bytes", bytes}}},
              "serve: ", options.storage, " is there, with ", readable_bytes(bytes),
              "; --capacity says what is made where nothing is");
}

// Makes the store first, if there is none and --capacity was given.
std::unique_ptr<KvStore> open_store(const ServeOptions& options) {
  try {
    if (options.capacity_bytes != 0) make_store(options);
    auto store = std::make_unique<KvStore>(options.storage, options.store);
    if (options.capacity_bytes != 0) compare((*store)->identity(), options);
    return store;
  } catch (const SystemFailure& error) {
    // A store in use is wrong input, as an address in use is.
    if (error.number == EBUSY) throw WrongInput(error.what());
    throw;
  } catch (const WrongInput& error) {
    if (options.capacity_bytes != 0) throw;
    throw WrongInput(concat(error.what(), "; --capacity SIZE makes a store where there is none"));
  }
}

std::string listening_text(const server::Server& of) {
  std::string text;
  for (const server::Listening& listening : of.listening())
    text += concat(text.empty() ? "" : ", ",
                   listening.speech == server::Speech::kResp ? "RESP" : server::name_of(listening.speech),
                   listening.is_tls ? " by TLS at " : " at ", listening.address.text());
  return text;
}

// Adds the sockets that a service manager has opened. Their names say for which clients they are.
void take_given_sockets(server::ServerOptions& options) {
  using enum server::Speech;
  constexpr server::Speech kAll[] = {kMemcache, kResp, kMetrics};
  for (const server::GivenSocket& socket : value_of(server::take_sockets())) {
    const auto is_meant = [&](server::Speech speech) {
      return socket.name.starts_with(server::name_of(speech));
    };
    const auto* const speech = std::ranges::find_if(kAll, is_meant);
    if (speech == std::end(kAll))
      throw WrongInput(
          concat("serve: the socket that is called '", printable(socket.name),
                 "' may be for any clients; FileDescriptorName= is memcache, resp or metrics, or one of them "
                 "with -tls"));
    options.given.push_back({*speech, socket.name.ends_with("-tls"), socket.descriptor});
  }
}

uint64_t milliseconds_since(uint64_t begun_ns) { return (sys::monotonic_ns() - begun_ns) / 1'000'000; }

void tell_started(const server::Server& serves, const ServeOptions& options, KvStore& store,
                  uint64_t opened_ms, uint64_t ready_ms) {
  const std::string places = listening_text(serves);
  const uint64_t items = store->counts().index.entries;
  base::log({.name = "started",
             .level = base::LogLevel::kInfo,
             .fields = {{"addresses", places},
                        {"store", options.storage},
                        {"memory_bytes", options.server.settings.memory_bytes},
                        {"items", items},
                        {"ready_ms", ready_ms},
                        {"store_opened_ms", opened_ms},
                        {"replayed_records", store->recovery().replayed_records}}},
            "serve: ", places, "; ", items, " items, ready after ", ready_ms, " ms");
}

// Returns the exit status, when the server has ended.
int run_server(ServeOptions& options) {
  const passwd* const user = options.user.empty() ? nullptr : find_user(options.user);
  Daemon daemon;
  if (options.is_daemon) daemon.begin();
  if (user != nullptr) forbid_new_rights();
  // A log that nobody reads any more is no reason to end.
  signal(SIGPIPE, SIG_IGN);
  block_signals({SIGHUP});
  end_at_once_by({SIGTERM, SIGINT});
  allow_descriptors(options.server.settings.connections_max);
  const uint64_t begun_ns = sys::monotonic_ns();
  kv::Clock clock;
  if (options.has_movable_clock) {
    options.store.clock = &clock;
    options.server.settings.movable_clock = &clock;
  }
  // Declared in this order, so that the server, whose threads use the store, is destroyed before it, even when something is thrown; and the file
  // with the process id is removed only when others may open the store.
  std::optional<PidFile> pid_file;
  std::unique_ptr<KvStore> kept;
  server::Server serves;
  options.server.takes_signals = true;
  if (!options.without_effect.empty())
    base::log({.name = "words_without_effect", .fields = {{"words", options.without_effect}}},
              "serve: has no effect here: ", options.without_effect);
  value_of(serves.listen(options.server));
  if (user != nullptr && user->pw_uid != geteuid()) give_sockets(serves, *user);
  const uint64_t opening_ns = sys::monotonic_ns();
  kept = open_store(options);
  // Not before: a store may take minutes to replay its log, and is left as it was if the process ends meanwhile.
  block_signals({SIGTERM, SIGINT});
  const uint64_t opened_ms = milliseconds_since(opening_ns);
  KvStore& store = *kept;
  value_of(serves.open(*store));
  serves.hub().verbosity = options.verbosity;
  pid_file.emplace(options.pid_file);
  if (user != nullptr) become_user(*user);
  begin_log(options.server.log_file);
  tell_started(serves, options, store, opened_ms, milliseconds_since(begun_ns));
  daemon.serves(!options.server.log_file.empty());
  server::tell_manager("READY=1");
  int status = 0;
  if (auto ran = serves.run(); !ran) {
    base::log(
        {.name = "server_failed", .level = base::LogLevel::kError, .fields = {{"error", ran.error().number}}},
        "serve: ", ran.error().message);
    status = 1;
  }
  server::tell_manager("STOPPING=1");
  serves.close();
  const uint64_t closing_ns = sys::monotonic_ns();
  store.close();
  const uint64_t closed_ms = milliseconds_since(closing_ns);
  base::log({.name = "stopped", .level = base::LogLevel::kInfo, .fields = {{"store_closed_ms", closed_ms}}},
            "serve: stopped; the store was closed in ", closed_ms, " ms");
  return status;
}

int tell_failure(const char* why, int status) {
  base::log({.name = "failed", .level = base::LogLevel::kError, .fields = {{"status", status}}}, why);
  return status;
}

}  // namespace

int serve(Arguments arguments) {
  ServeOptions options;
  take_given_sockets(options.server);
  if (!parse_serve(arguments, options)) {
    std::printf("%s", serve_help().c_str());
    return 0;
  }
  if (!options.logs_json) return run_server(options);
  base::set_log_writer(base::write_json_log<base::kJsonLogBytes>);
  try {
    return run_server(options);
  } catch (const WrongInput& error) {
    return tell_failure(error.what(), kWrongInput);
  } catch (const std::bad_alloc&) {
    return tell_failure(kNoMemory, 1);
  } catch (const std::exception& error) {
    return tell_failure(error.what(), 1);
  }
}

}  // namespace tools
