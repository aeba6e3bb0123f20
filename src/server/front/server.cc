#include "server/front/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/probe.h"
#include "server/clients/memcache_client.h"
#include "server/clients/metrics.h"
#include "server/clients/resp_client.h"
#include "server/front/log_file.h"
#include "sys/kernel.h"

namespace server {
namespace {

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr size_t kStackBytes = 1 << 20;  // frames of the sanitizers are several times as large
#else
constexpr size_t kStackBytes = 128 << 10;
#endif
constexpr uint32_t kAcceptedInTurn = 64;   // then the worker's other tasks run
constexpr uint64_t kPauseNs = 10'000'000;  // before something is tried, or looked at, again
constexpr std::string_view kTlsPrefix = "tls:";
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kRefusalNs = 2 * kSecondNs;  // for telling a client that there are too many
constexpr uint64_t kLookNs = 10 * kSecondNs;    // between searches for what is no longer needed

std::string_view too_many(Speech speech) {
  switch (speech) {
    case Speech::kMemcache: return "ERROR Too many open connections\r\n";
    case Speech::kResp: return "-ERR max number of clients reached\r\n";
    case Speech::kMetrics:
      return "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  }
  return {};
}

// Starts a task that calls a copy of `function`, on the worker, or on the caller's if that is null.
template <class Function>
base::Expected<task::Task*> spawn(const char* name, task::Worker* worker, Function function) {
  return task::spawn({.name = name,
                      .entry = [](void* call) { (*static_cast<Function*>(call))(); },
                      .worker = worker,
                      .closure = &function,
                      .closure_bytes = sizeof function});
}

// May the error go away when other connections end?
bool is_passing(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

struct Server::Worker {
  uint32_t number = 0;
  task::Worker* thread = nullptr;
  task::Task* keeps = nullptr;
  storage::BufferPool pool;
  Items items;
  task::Future began;                    // its value is an errno value, or 0
  task::Future drained;                  // it has no connections, and gets none
  std::atomic<uint64_t> connections{0};  // counted up by worker 0, and down by their own tasks
};

Server::Server() = default;
Server::~Server() { close(); }

base::Expected<void> Server::listen_at_all(std::string_view text, Speech speech) {
  const bool is_tls = text.starts_with(kTlsPrefix);
  if (is_tls) text.remove_prefix(kTlsPrefix.size());
  auto parsed = parse_address(text);
  if (!parsed) return std::unexpected(parsed.error());
  uint16_t port = parsed->front().port();
  const bool is_any_port = port == 0;
  for (Address& address : *parsed) {
    address.set_port(port);
    auto descriptor = listen_at(address, options_.unix_mode);
    if (!descriptor) {
      const int error = descriptor.error().number;
      const bool is_taken = error == EADDRINUSE && is_any_port;
      if (address.is_optional && (is_taken || error == EADDRNOTAVAIL || error == EAFNOSUPPORT)) continue;
      return std::unexpected(descriptor.error());
    }
    port = address.port();
    add({.address = address, .speech = speech, .descriptor = *descriptor, .is_tls = is_tls});
  }
  return {};
}

// Clients are told the first port of each kind.
void Server::add(const Listening& listening) {
  listening_.push_back(listening);
  if (listening.speech == Speech::kMetrics) return;
  Settings& settings = options_.settings;
  uint16_t& told = listening.speech == Speech::kMemcache ? settings.memcache_port : settings.resp_port;
  if (told == 0) told = listening.address.port();
}

base::Expected<void> Server::listen(ServerOptions options) {
  options_ = std::move(options);
  base::Expected<void> listens;
  for (const auto& [speech, is_tls, descriptor] : options_.given)
    add({.address = address_of(descriptor),
         .speech = speech,
         .descriptor = descriptor,
         .is_tls = is_tls,
         .is_given = true});
  for (const std::string& text : options_.memcache)
    if (listens) listens = listen_at_all(text, Speech::kMemcache);
  for (const std::string& text : options_.resp)
    if (listens) listens = listen_at_all(text, Speech::kResp);
  for (const std::string& text : options_.metrics)
    if (listens) listens = listen_at_all(text, Speech::kMetrics);
  if (listens) listens = open_tls();
  if (!listens) {
    close();
    return listens;
  }
  if (listening_.empty()) return base::failure(EINVAL, "it would listen nowhere: give an address");
  return {};
}

// Part of listen(), so that whatever is wrong with the files is reported before the server serves.
base::Expected<void> Server::open_tls() {
  const bool is_wanted = std::ranges::any_of(listening_, &Listening::is_tls);
  if (is_wanted == !options_.tls.certificate.empty())
    return is_wanted ? tls_.open(options_.tls) : base::Expected<void>();
  if (is_wanted)
    return base::failure(EINVAL, "an address begins with ", kTlsPrefix,
                         ", which needs a certificate (--tls-cert)");
  return base::failure(EINVAL, "a certificate is of no use where no address begins with ", kTlsPrefix);
}

base::Expected<void> Server::open(kv::Store& store) {
  if (options_.settings.memory_bytes != 0)
    if (auto opened = memory_.open(store, options_.settings.memory_bytes); !opened) return opened;
  const uint64_t value_bytes_max =
      std::max(options_.settings.item_bytes_max, options_.settings.value_bytes_max);
  if (auto opened = items_.open(store, {.value_bytes_max = value_bytes_max}); !opened) return opened;
  hub_ = std::make_unique<Hub>(options_.settings, items_);
  hub_->on_end = [this] {
    if (!has_ended_.exchange(true)) ended_.fulfil();
  };
  auto opened = scheduler_.open({.worker_count = options_.settings.worker_count, .stack_bytes = kStackBytes});
  if (opened) return opened;
  items_.close();
  hub_.reset();
  return opened;
}

void Server::close() {
  for (const Listening& listening : listening_)
    if (listening.descriptor >= 0) {
      if (!listening.is_given) forget(listening.address);
      ::close(listening.descriptor);
    }
  listening_.clear();
  memory_.close();
  if (hub_ == nullptr) return;
  scheduler_.close();
  items_.close();
  hub_.reset();
}

base::Expected<void> Server::run() {
  auto ran = scheduler_.run({.name = "server",
                             .entry = [](void* server) { static_cast<Server*>(server)->lead(); },
                             .argument = this});
  return ran ? outcome_ : ran;
}

// The task that begins and ends all others.
void Server::lead() {
  outcome_ = begin_workers();
  if (!outcome_) hub_->end(Hub::End::kAtOnce, outcome_.error().message);
  std::vector<task::Task*> accepting, others;
  const auto start = [&](std::vector<task::Task*>& helpers, const char* name, auto function) {
    auto task = spawn(name, nullptr, function);
    if (task)
      helpers.push_back(*task);
    else if (outcome_)
      outcome_ = std::unexpected(task.error()), hub_->end(Hub::End::kAtOnce, task.error().message);
  };
  if (outcome_) {
    for (Listening& listening : listening_)
      start(accepting, "accepts", [this, &listening] { accept_from(listening); });
    if (options_.takes_signals) start(others, "signals", [this] { take_signals(); });
  }
  ended_.wait();
  const auto end_all = [](const std::vector<task::Task*>& tasks) {
    for (task::Task* task : tasks) {
      task::cancel(*task);
      task::join(*task);
    }
  };
  end_all(accepting);
  accepts_none_.fulfil();
  // The task that takes signals keeps running meanwhile, since a second one may come.
  for (const auto& worker : workers_)
    if (worker->keeps != nullptr) worker->drained.wait({.cancellable = false});
  closes_.fulfil();
  for (const auto& worker : workers_)
    if (worker->keeps != nullptr) task::join(*worker->keeps);
  end_all(others);
  workers_.clear();
}

base::Expected<void> Server::begin_workers() {
  for (uint32_t i = 0; i < scheduler_.worker_count(); ++i) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    worker.number = i;
    worker.thread = &scheduler_.worker(i);
    auto task = spawn("worker", worker.thread, [this, &worker] { keep_worker(worker); });
    if (!task) return std::unexpected(task.error());
    worker.keeps = *task;
    worker.began.wait({.cancellable = false});
    if (const uint64_t error = worker.began.value(); error != 0)
      return base::failure(static_cast<int>(error), "a worker of the server cannot begin: ",
                           base::error_name(static_cast<int>(error)));
  }
  return {};
}

// Runs as a task of the worker, from the worker's beginning to its end.
void Server::keep_worker(Worker& worker) {
  auto opened = worker.items.open(items_);
  if (opened) hub_->scans.begin(worker.number, worker.items);
  worker.began.fulfil(opened ? 0 : static_cast<uint64_t>(opened.error().number));
  if (!opened) return worker.drained.fulfil();
  while (accepts_none_.wait({.deadline_ns = sys::monotonic_ns() + kLookNs, .cancellable = false}) !=
         task::Woken::kNotified) {
    hub_->scans.end_idle(worker.number);
    if (worker.number == 0) worker.items.keep_flush_to_come();
    worker.items.trim();
    worker.pool.trim();
  }
  drain(worker);
  worker.drained.fulfil();
  // Clients of other workers may still have scans here.
  closes_.wait({.cancellable = false});
  hub_->scans.end(worker.number);
  worker.items.close();
}

void Server::drain(Worker& worker) {
  const uint64_t until_ns = sys::monotonic_ns() + options_.drain_ns;
  while (worker.connections.load(std::memory_order_acquire) != 0) {
    // A connection that has just begun may be missed, and is told, or cut off, in the next round.
    hub_->drain(worker.number);
    if (hub_->end_wanted() == Hub::End::kAtOnce || sys::monotonic_ns() >= until_ns)
      hub_->kill([&](const Connection& connection) { return connection.worker == worker.number; });
    task::sleep_until(sys::monotonic_ns() + kPauseNs);
  }
}

// The server cannot serve as it should, and ends. Called by tasks of worker 0.
void Server::give_up(const base::Error& error) {
  outcome_ = std::unexpected(error);
  hub_->end(Hub::End::kDrained, error.message);
}

void Server::accept_from(Listening& listening) {
  task::Socket listens;
  if (auto taken = listens.take(std::exchange(listening.descriptor, -1)); !taken)
    return give_up(taken.error());
  // If connections come all the time, accept() never waits, and so does not return that the task was cancelled.
  for (uint32_t count = 1; hub_->end_wanted() == Hub::End::kNo; ++count) {
    auto accepted = listens.accept();
    if (accepted) {
      give(listening, *accepted);
      if (count % kAcceptedInTurn == 0) task::yield();
    } else if (accepted.error().number == ECANCELED) {
      break;
    } else {
      if (is_passing(accepted.error().number)) tell_that_connections_wait(listening, accepted.error());
      // Otherwise that connection has gone again; or another process that shares the socket has shut it down, and each accept()
      // fails.
      if (task::sleep_until(sys::monotonic_ns() + kPauseNs) == task::Woken::kCancelled) break;
    }
  }
  // The file goes first: as soon as nobody listens there another server may put its own in that place.
  if (!listening.is_given) forget(listening.address);
  listens.close();
}

// At most once a second.
void Server::tell_that_connections_wait(const Listening& listening, const base::Error& error) {
  const uint64_t now_ns = sys::monotonic_ns();
  if (now_ns - told_ns_ <= kSecondNs) return;
  told_ns_ = now_ns;
  base::log({.name = "connections_wait", .fields = {{"address", listening.address.text()}}},
            "server: ", listening.address.text(), ": ", error.message,
            "; others wait until connections end (ulimit -n, --connections)");
}

void Server::take_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  const int descriptor = signalfd(-1, &signals, SFD_CLOEXEC);
  // The caller has blocked them, so nothing but SIGKILL would end the server.
  if (descriptor < 0)
    return give_up(base::Error::of(errno, "cannot take signals: ", base::error_name(errno)));
  task::Socket comes;
  if (auto taken = comes.take(descriptor); !taken) return give_up(taken.error());
  signalfd_siginfo signal;
  while (comes.receive(&signal, sizeof signal)) {
    if (signal.ssi_signo == SIGHUP)
      reload();
    else
      hub_->end(hub_->end_wanted() == Hub::End::kNo ? Hub::End::kDrained : Hub::End::kAtOnce,
                signal.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
  }
}

// The log comes first, so that the new one gets the messages about the rest.
void Server::reload() {
  const bool has_log = !options_.log_file.empty(), has_certificate = !options_.tls.certificate.empty();
  const bool has_passwords = !options_.password_file.empty();
  if (has_log) reopen_log();
  if (has_certificate) renew_tls();
  if (has_passwords) read_passwords();
  if (!has_log && !has_certificate && !has_passwords)
    base::log({.name = "nothing_reloaded", .level = base::LogLevel::kInfo},
              "server: SIGHUP: there is nothing to open or read again (--log, --tls-cert, --password-file)");
}

void Server::reopen_log() {
  if (auto opened = log_to(options_.log_file); !opened)
    base::log({.name = "log_not_opened", .level = base::LogLevel::kError},
              "server: log: ", opened.error().message, "; goes on with what there was");
  else
    base::log({.name = "log_opened", .level = base::LogLevel::kInfo},
              "server: log: has opened the file again");
}

void Server::renew_tls() {
  if (auto renewed = tls_.renew(); !renewed)
    base::log({.name = "certificate_not_read", .level = base::LogLevel::kError},
              "server: ", renewed.error().message, "; goes on with what there was");
  else
    base::log({.name = "certificate_read", .level = base::LogLevel::kInfo},
              "server: TLS: has read the certificate again");
}

void Server::read_passwords() {
  auto accounts = Accounts::read(options_.password_file);
  if (!accounts)
    return base::log({.name = "passwords_not_read", .level = base::LogLevel::kError},
                     "server: passwords: ", accounts.error().message, "; goes on with what there was");
  hub_->change_accounts(std::move(*accounts));
  base::log({.name = "passwords_read", .level = base::LogLevel::kInfo},
            "server: passwords: has read the file again");
}

void Server::give(const Listening& listening, int descriptor) {
  if (listening.address.port() != 0) {
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  Worker& worker = *workers_[next_worker_++ % workers_.size()];
  worker.connections.fetch_add(1, std::memory_order_relaxed);
  auto task = spawn(name_of(listening.speech), worker.thread,
                    [this, &worker, &listening, descriptor] { serve(worker, listening, descriptor); });
  if (task) return task::detach(**task);
  worker.connections.fetch_sub(1, std::memory_order_relaxed);
  ::close(descriptor);
}

// A connection's task.
void Server::serve(Worker& worker, const Listening& listening, int descriptor) {
  const Speech speech = listening.speech;
  StreamOptions stream_options = options_.settings.stream;
  if (speech == Speech::kMetrics) stream_options.exchange_ns = options_.metrics_exchange_ns;
  Stream stream(worker.pool, stream_options);
  if (stream.take(descriptor, listening.is_tls ? &tls_ : nullptr)) {
    Connection connection;
    connection.speech = speech;
    connection.stream = &stream;
    connection.task = &task::self();
    connection.worker = worker.number;
    connection.peer = peer_of(descriptor);
    connection.own = own_end_of(descriptor);
    connection.begun_ms = worker.items.clock().now_ms();
    if (hub_->enter(connection)) {
      base::probes::connection_accepted(connection.number, static_cast<uint64_t>(speech));
      hub_->watchers.tell_connection(connection.peer, "", connection.number);
      const int error = answer(worker, connection);
      hub_->watchers.tell_connection(connection.peer, error == 0 ? "normal" : "error", connection.number);
      base::probes::connection_closed(connection.number, connection.requests.load(std::memory_order_relaxed),
                                      static_cast<uint64_t>(error));
      hub_->leave(connection);
    } else {
      if (hub_->verbosity.load(std::memory_order_relaxed) > 0)
        base::log({.name = "connection_refused",
                   .fields = {{"peer", connection.peer},
                              {"speech", name_of(speech)},
                              {"most", hub_->connections_max(speech)}}},
                  "server: a connection from ", connection.peer, " was refused: there are ",
                  hub_->connections_max(speech));
      // A time limit, since TLS waits for the client's handshake, and the hub does not know this connection and cannot cut it off.
      if (stream.write(too_many(speech))) static_cast<void>(stream.send_within(kRefusalNs));
    }
    stream.close();
  }
  // Pairs with the acquire in drain(): nothing of the connection is left.
  worker.connections.fetch_sub(1, std::memory_order_release);
}

// Logs, with --verbose, that a connection was ended by an error; with two of them, that any ended.
void Server::tell_end(const Connection& connection, const base::Expected<void>& served) {
  if (hub_->verbosity.load(std::memory_order_relaxed) < (served ? 2 : 1)) return;
  const char* const why = served ? "its client, or the server, ended it" : served.error().message;
  base::log({.name = "connection_closed",
             .level = served ? base::LogLevel::kInfo : base::LogLevel::kWarning,
             .fields = {{"connection", connection.number},
                        {"peer", connection.peer},
                        {"speech", name_of(connection.speech)},
                        {"requests", connection.requests.load(std::memory_order_relaxed)},
                        {"error", served ? 0 : served.error().number},
                        {"reason", why}}},
            "server: connection ", connection.number, " from ", connection.peer, " ended: ", why);
}

// Returns the errno value of the error that has ended the connection; 0: none has.
int Server::answer(Worker& worker, Connection& connection) {
  base::Expected<void> served;
  switch (connection.speech) {
    case Speech::kMemcache: served = MemcacheClient(*hub_, connection, worker.items).serve(); break;
    case Speech::kResp: served = RespClient(*hub_, connection, worker.items).serve(); break;
    case Speech::kMetrics: served = MetricsClient(*hub_, connection).serve(); break;
  }
  tell_end(connection, served);
  return served ? 0 : served.error().number;
}

}  // namespace server
