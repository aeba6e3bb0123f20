// A client of servers of memcached's text protocol or Redis's: connections of one thread that keep so many requests under way.
//
//   server-load ADDRESS fill|run [NAME=VALUE]...        ADDRESS is HOST:PORT of IPv4, or the path of a socket
//
// | name        | is                                                                       | default |
// |-------------|--------------------------------------------------------------------------|---------|
// | speech      | `memcache`, or `resp`                                                    | memcache |
// | keys        | numbered from 0 on; fill stores each once, run chooses among them         | 1000    |
// | value       | bytes of a value, at least 8                                              | 1024    |
// | connections | of run; fill has 4                                                        | 1       |
// | pipeline    | requests that a connection sends together; all are answered before the next | 1     |
// | sets        | of run: which part of the requests are sets; the others are gets          | 0.1     |
// | rate        | of run: requests a second, whose beginnings come as Poisson has them, as far as connections are free; 0: each connection goes on at once | 0 |
// | theta       | 0: all keys alike; else Zipf's law with this exponent, below 1            | 0       |
// | seconds     | of run                                                                   | 1       |
// | cpu         | index of the CPU that it stays on; -1: any                               | -1      |
// | interval    | of run: seconds, for each of which the series has a number; 0: none      | 0       |
//
// Prints one object of JSON: requests, per_second, gets, hits, sets, refused (sets that the server did not take), latency_ns {mean, p50, p99,
// p999, max} of a request (from when its connection sends it to when its reply is there as a whole), cpu_us of the client for each, series.
// A value begins with its key's number, and is checked: one that is another's, and a reply that is none, ends it with status 1.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../measure.h"
#include "../random.h"
#include "../words.h"
#include "base/histogram.h"

namespace load {
namespace {

struct Plan {
  std::string address;
  bool fills = false;
  bool is_resp = false;
  uint64_t keys = 1000;
  uint64_t value_bytes = 1024;
  uint64_t connections = 1;
  uint64_t pipeline = 1;
  double sets = 0.1;
  double rate = 0;
  double theta = 0;
  double seconds = 1;
  double interval = 0;
  int cpu = -1;
};

Plan parse(int count, char** words) {
  if (count < 3) fail(2, "ADDRESS and fill or run are needed");
  Plan plan;
  plan.address = words[1];
  plan.fills = word_of("what to do", words[2], {"fill", "run"}) == "fill";
  for (int i = 3; i < count; ++i) {
    const auto [word, name, text] = load::Word(words[i]);
    if (name == "speech")
      plan.is_resp = word_of(name, text, {"memcache", "resp"}) == "resp";
    else if (name == "keys")
      plan.keys = count_of(name, text, uint64_t{1} << 40);
    else if (name == "value")
      plan.value_bytes = count_of(name, text, 1 << 20);
    else if (name == "connections")
      plan.connections = count_of(name, text, 100'000);
    else if (name == "pipeline")
      plan.pipeline = count_of(name, text, 1024);
    else if (name == "sets")
      plan.sets = share_of(name, text, 1);
    else if (name == "rate")
      plan.rate = share_of(name, text, 1e9);
    else if (name == "theta")
      plan.theta = share_of(name, text, 0.999);
    else if (name == "seconds")
      plan.seconds = share_of(name, text, 1e6);
    else if (name == "interval")
      plan.interval = share_of(name, text, 1e6);
    else if (name == "cpu")
      plan.cpu = static_cast<int>(count_of(name, text, 4096));
    else
      fail(2, "there is no word '" + word + "'");
  }
  if (plan.keys == 0 || plan.connections == 0 || plan.pipeline == 0 || plan.value_bytes < 8)
    fail(2, "keys, connections and pipeline are at least 1, value 8");
  if (plan.fills) plan.connections = std::min<uint64_t>(4, plan.keys);
  if (plan.rate > 0 && (plan.fills || plan.pipeline > 1)) fail(2, "a rate is of run, with a pipeline of 1");
  return plan;
}

[[noreturn]] void fail_at(const std::string& what) { fail(1, what + ": " + std::strerror(errno)); }

int connect_to(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (address.starts_with('/')) {
    sockaddr_un to = {};
    to.sun_family = AF_UNIX;
    if (address.size() >= sizeof to.sun_path) fail(2, "'" + address + "' is too long");
    std::memcpy(to.sun_path, address.c_str(), address.size());
    const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 || connect(descriptor, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
      fail_at(address);
    return descriptor;
  }
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  if (colon == std::string::npos || inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) != 1)
    fail(2, "'" + address + "' is neither HOST:PORT of IPv4 nor a path");
  to.sin_port = htons(static_cast<uint16_t>(count_of("the port", address.c_str() + colon + 1, 65535)));
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (descriptor < 0 || connect(descriptor, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    fail_at(address);
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return descriptor;
}

struct Counts {
  uint64_t requests = 0, gets = 0, hits = 0, sets = 0, refused = 0;
};

struct Request {
  uint64_t key;
  bool is_set;
};

// One connection: sends `pipeline` requests, and takes their replies.
class Client {
 public:
  Client(const Plan& plan, uint64_t index) : plan_(plan), descriptor_(connect_to(plan.address)) {
    value_.resize(plan.value_bytes);
    Random random(index + 1);
    for (char& byte : value_) byte = static_cast<char>('a' + random.below(26));
  }
  ~Client() { close(descriptor_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int descriptor() const { return descriptor_; }
  bool is_waiting() const { return answered_ < requests_.size(); }

  // REQUIRES: all have been answered.
  void ask(std::vector<Request> requests) {
    requests_ = std::move(requests);
    answered_ = 0;
    out_.clear();
    for (const Request& request : requests_) write(request);
    sent_ns_ = cases::clock_ns(CLOCK_MONOTONIC);
    send_all();
  }
  // What has come; each reply goes to `counts` and its time to `times`.
  void take(Counts& counts, base::Histogram& times) {
    if (in_.size() - filled_ < (64 << 10)) in_.resize(in_.size() + (256 << 10));
    const ssize_t received = recv(descriptor_, in_.data() + filled_, in_.size() - filled_, MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (received < 0) fail_at("receive");
    if (received == 0) fail(1, "the server has closed a connection");
    filled_ += static_cast<size_t>(received);
    size_t used = 0;
    const uint64_t now = cases::clock_ns(CLOCK_MONOTONIC);
    while (is_waiting()) {
      const size_t bytes = reply(std::string_view(in_.data() + used, filled_ - used), counts);
      if (bytes == 0) break;
      used += bytes;
      ++answered_;
      times.add(now - sent_ns_);
    }
    std::memmove(in_.data(), in_.data() + used, filled_ - used);
    filled_ -= used;
    if (!is_waiting() && filled_ != 0) fail(1, "more came than was asked for");
  }

 private:
  static std::string key_text(uint64_t key) {
    char text[24];
    std::snprintf(text, sizeof text, "key:%012lu", key);
    return text;
  }
  void write(const Request& request) {
    const std::string key = key_text(request.key), bytes = std::to_string(plan_.value_bytes);
    if (request.is_set) std::memcpy(value_.data(), &request.key, sizeof request.key);
    if (plan_.is_resp) {
      out_ += request.is_set ? "*3\r\n$3\r\nSET\r\n$16\r\n" : "*2\r\n$3\r\nGET\r\n$16\r\n";
      out_ += key + "\r\n";
      if (request.is_set) out_ += "$" + bytes + "\r\n" + value_ + "\r\n";
    } else if (request.is_set) {
      out_ += "set " + key + " 0 0 " + bytes + "\r\n" + value_ + "\r\n";
    } else {
      out_ += "get " + key + "\r\n";
    }
  }
  // The server may not take more before its replies are taken: 16 gets are less than any socket holds, sets may be more.
  void send_all() {
    for (size_t sent = 0; sent < out_.size();) {
      const ssize_t now = send(descriptor_, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
      if (now < 0 && errno != EINTR) fail_at("send");
      if (now > 0) sent += static_cast<size_t>(now);
    }
  }
  // How long the first reply is; 0: it is not there as a whole.
  size_t reply(std::string_view in, Counts& counts) {
    const Request& request = requests_[answered_];
    const size_t end = in.find("\r\n");
    if (end == std::string_view::npos) return 0;
    const std::string_view line = in.substr(0, end);
    size_t bytes = end + 2;
    if (request.is_set) {
      if (line == (plan_.is_resp ? "+OK" : "STORED"))
        ++counts.sets;
      else if (line.starts_with("-OOM") || line.starts_with("SERVER_ERROR"))
        ++counts.refused;
      else
        fail(1, "a set was answered by '" + std::string(line.substr(0, 200)) + "'");
    } else if (line == (plan_.is_resp ? "$-1" : "END")) {
      ++counts.gets;
    } else {
      const size_t whole = bytes + plan_.value_bytes + 2 + (plan_.is_resp ? 0 : 5);
      if (!line.starts_with(plan_.is_resp ? "$" : "VALUE "))
        fail(1, "a get was answered by '" + std::string(line.substr(0, 200)) + "'");
      if (in.size() < whole) return 0;
      uint64_t key;
      std::memcpy(&key, in.data() + bytes, sizeof key);
      if (key != request.key) fail(1, "the value of key " + std::to_string(request.key) + " is another's");
      if (!in.substr(0, whole).ends_with(plan_.is_resp ? "\r\n" : "\r\nEND\r\n"))
        fail(1, "a value has another length");
      ++counts.gets;
      ++counts.hits;
      bytes = whole;
    }
    ++counts.requests;
    return bytes;
  }

  const Plan& plan_;
  const int descriptor_;
  std::string value_, out_;
  std::vector<Request> requests_;
  size_t answered_ = 0;
  uint64_t sent_ns_ = 0;
  std::string in_;
  size_t filled_ = 0;
};

// What a connection asks next; empty: nothing more.
class Requests {
 public:
  Requests(const Plan& plan)
      : plan_(plan),
        choice_(plan.fills ? 1 : plan.keys, plan.theta),
        random_(cases::clock_ns(CLOCK_MONOTONIC)) {}
  std::vector<Request> next(uint64_t count) {
    std::vector<Request> requests;
    if (plan_.fills) {
      for (; count > 0 && filled_ < plan_.keys; --count) requests.push_back({filled_++, true});
    } else {
      for (; count > 0; --count) requests.push_back({choice_.next(random_), random_.unit() < plan_.sets});
    }
    return requests;
  }

 private:
  const Plan& plan_;
  Choice choice_;
  Random random_;
  uint64_t filled_ = 0;
};

void print(const Plan& plan, const Counts& counts, const base::Histogram& times,
           const cases::Stopwatch& watch, const std::vector<uint64_t>& series) {
  const double seconds = static_cast<double>(watch.wall_ns()) / 1e9;
  const auto requests = static_cast<double>(counts.requests);
  std::printf(
      "{\"requests\": %lu, \"seconds\": %.6f, \"per_second\": %.1f, \"gets\": %lu, \"hits\": %lu, \"sets\": "
      "%lu, \"refused\": %lu, ",
      counts.requests, seconds, requests / seconds, counts.gets, counts.hits, counts.sets, counts.refused);
  std::printf(
      "\"latency_ns\": {\"mean\": %.0f, \"p50\": %lu, \"p99\": %lu, \"p999\": %lu, \"max\": %lu}, "
      "\"cpu_us\": %.3f, \"interval\": %g, \"series\": [",
      times.mean(), times.at(0.5), times.at(0.99), times.at(0.999), times.most(),
      static_cast<double>(watch.cpu_ns()) / 1e3 / std::max(1.0, requests), plan.interval);
  for (size_t i = 0; i < series.size(); ++i) std::printf("%s%lu", i == 0 ? "" : ", ", series[i]);
  std::puts("]}");
}

// All connections, from the first request to the last reply.
class Run {
 public:
  explicit Run(const Plan& plan) : plan_(plan), clients_(connect_all()), requests_(plan) {}
  ~Run() { close(events_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void run() {
    watch_.start();
    begun_ns_ = cases::clock_ns(CLOCK_MONOTONIC);
    end_ns_ = begun_ns_ + static_cast<uint64_t>((plan_.fills ? 1e6 : plan_.seconds) * 1e9);
    arrivals_ = Random(begun_ns_);
    due_ns_ = static_cast<double>(begun_ns_);
    // Else the kernel ends sleeps up to 50 us late.
    if (plan_.rate > 0) prctl(PR_SET_TIMERSLACK, 1);
    for (const auto& client : clients_) has_all(*client);
    for (;;) {
      const timespec timeout = go_on_as_due();
      if (busy_ == 0 && (plan_.rate == 0 || cases::clock_ns(CLOCK_MONOTONIC) >= end_ns_)) break;
      take_ready(timeout);
      tell_intervals();
    }
    watch_.stop();
    print(plan_, counts_, times_, watch_, series_);
  }

 private:
  std::vector<std::unique_ptr<Client>> connect_all() const {
    std::vector<std::unique_ptr<Client>> clients;
    for (uint64_t i = 0; i < plan_.connections; ++i) {
      clients.push_back(std::make_unique<Client>(plan_, i));
      epoll_event event = {};
      event.events = EPOLLIN;
      event.data.ptr = clients.back().get();
      if (epoll_ctl(events_, EPOLL_CTL_ADD, clients.back()->descriptor(), &event) != 0) fail_at("epoll");
    }
    return clients;
  }
  // A client with all its replies, or without requests so far, asks again: at once, or when its turn comes.
  void has_all(Client& client) {
    if (plan_.rate > 0)
      free_.push_back(&client);
    else
      go_on(client);
  }
  void go_on(Client& client) {
    if (cases::clock_ns(CLOCK_MONOTONIC) >= end_ns_) return;
    auto next = requests_.next(plan_.pipeline);
    if (next.empty()) return;
    ++busy_;
    client.ask(std::move(next));
  }
  // Those that are due ask. Returns the time until the next one is.
  timespec go_on_as_due() {
    if (plan_.rate == 0) return {.tv_sec = 1, .tv_nsec = 0};
    for (;;) {
      const auto now = static_cast<double>(cases::clock_ns(CLOCK_MONOTONIC));
      if (free_.empty() || now >= static_cast<double>(end_ns_)) return {.tv_sec = 1, .tv_nsec = 0};
      if (now < due_ns_) return {.tv_sec = 0, .tv_nsec = static_cast<long>(std::min(due_ns_ - now, 1e8))};
      due_ns_ += -std::log(1 - arrivals_.unit()) / plan_.rate * 1e9;
      Client& client = *free_.back();
      free_.pop_back();
      go_on(client);
    }
  }
  // What comes within that time.
  void take_ready(const timespec& timeout) {
    epoll_event ready[64];
    const int count = epoll_pwait2(events_, ready, 64, &timeout, nullptr);
    for (int i = 0; i < count; ++i) {
      auto& client = *static_cast<Client*>(ready[i].data.ptr);
      client.take(counts_, times_);
      if (client.is_waiting()) continue;
      --busy_;
      has_all(client);
    }
  }
  // Those that have ended, in the series.
  void tell_intervals() {
    const auto interval_ns = static_cast<uint64_t>(plan_.interval * 1e9);
    if (interval_ns == 0) return;
    const uint64_t now = cases::clock_ns(CLOCK_MONOTONIC);
    while (begun_ns_ + (series_.size() + 1) * interval_ns <= now) {
      series_.push_back(counts_.requests - told_);
      told_ = counts_.requests;
    }
  }

  const Plan& plan_;
  const int events_ = epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<Client>> clients_;
  Requests requests_;
  uint64_t begun_ns_ = 0, end_ns_ = 0;
  size_t busy_ = 0;
  std::vector<Client*> free_;  // of those that have a rate
  Random arrivals_{0};
  double due_ns_ = 0;  // when the next one arrives
  Counts counts_;
  base::Histogram times_;
  cases::Stopwatch watch_;
  std::vector<uint64_t> series_;
  uint64_t told_ = 0;  // requests, in the series
};

}  // namespace
}  // namespace load

int main(int count, char** words) {
  load::program_name = "server-load";
  const load::Plan plan = load::parse(count, words);
  if (plan.cpu >= 0) cases::stay_on_cpu(plan.cpu);
  load::Run(plan).run();
}
