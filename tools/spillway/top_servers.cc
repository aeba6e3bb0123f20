// spillway top: what it shows of servers.
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "command.h"
#include "server_metrics.h"
#include "top_view.h"

namespace tools {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct Watched {
  std::string address;
  std::string problem;  // why nothing is known now
  Metrics before, now;
  Clock::time_point looked_before, looked;

  void look() {
    try {
      Metrics metrics = fetch_metrics(address);
      // Another process, which counts from 0.
      const bool is_new = value("start_time_seconds") != of(metrics, "start_time_seconds");
      before = is_new ? Metrics() : std::move(now);
      now = std::move(metrics);
      looked_before = std::exchange(looked, Clock::now());
      problem.clear();
    } catch (const std::runtime_error& error) {
      problem = error.what();
      before.clear();
      now.clear();
    }
  }

  static std::optional<double> of(const Metrics& metrics, std::string_view name) {
    const auto found = metrics.find(name);
    return found == metrics.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<double> value(std::string_view name) const { return of(now, name); }
  // The rate of a counter; none before there were two looks.
  std::optional<double> per_second(std::string_view name) const {
    const auto first = of(before, name), last = of(now, name);
    if (!first || !last) return std::nullopt;
    return (*last - *first) / std::chrono::duration<double>(looked - looked_before).count();
  }
};

std::string share_text(std::optional<double> part, std::optional<double> rest) {
  if (!part || !rest || *part + *rest <= 0) return "";
  return concat(std::lround(100 * *part / (*part + *rest)), '%');
}

std::string milliseconds_text(std::optional<double> seconds) {
  if (!seconds) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", *seconds * 1000);
  return text;
}

// One line a server.
std::string overview(const std::vector<Watched>& servers) {
  size_t width = 6;
  for (const Watched& server : servers) width = std::max(width, server.address.size());
  std::string text =
      concat(padded("server", width, false), padded("clients", 9), padded("requests/s", 12),
             padded("gets/s", 10), padded("found", 7), padded("in memory", 11), padded("sets/s", 10),
             padded("items", 12), padded("stored", 12), padded("resident", 12), padded("read/s", 12),
             padded("written/s", 12), padded("get p99 ms", 12), '\n');
  for (const Watched& server : servers) {
    text += padded(server.address, width, false);
    if (!server.problem.empty()) {
      text += concat("  ", server.problem, '\n');
      continue;
    }
    const auto hits = server.per_second("item_calls_total{call=\"get\",result=\"hit\"}");
    const auto misses = server.per_second("item_calls_total{call=\"get\",result=\"miss\"}");
    const auto from_memory = server.per_second("memory_tier_hits_total");
    const auto from_device = server.per_second("device_ios_total{for=\"gets\",io=\"read\"}");
    std::optional<double> read = 0, written = 0;
    for (const auto& [name, value] : server.now) {
      if (!name.starts_with("device_bytes_total{")) continue;
      std::optional<double>& sum = name.contains("io=\"read\"") ? read : written;
      const auto rate = server.per_second(name);
      sum = sum && rate ? std::optional(*sum + *rate) : std::nullopt;
    }
    text += padded(count_text(server.value("connections")), 9);
    text += padded(count_text(server.per_second("requests_total")), 12);
    text += padded(count_text(hits && misses ? std::optional(*hits + *misses) : std::nullopt), 10);
    text += padded(share_text(hits, misses), 7);
    text += padded(share_text(from_memory, from_device), 11);
    text += padded(count_text(server.per_second("item_sets_total")), 10);
    text += padded(count_text(server.value("store_keys")), 12);
    text += padded(bytes_text(server.value("store_live_bytes")), 12);
    text += padded(bytes_text(server.value("resident_bytes")), 12);
    text += padded(bytes_text(read), 12) + padded(bytes_text(written), 12);
    text += padded(milliseconds_text(server.value("store_call_seconds{call=\"get\",quantile=\"0.99\"}")), 12);
    text += '\n';
  }
  return text;
}

// All metrics of a server.
std::string details(const Watched& server) {
  std::string text = concat("server ", server.address, "\n\n", padded("", 64), padded("now", 16),
                            padded("per second", 16), '\n');
  for (const auto& [name, value] : server.now) {
    const std::string_view family = std::string_view(name).substr(0, name.find('{'));
    const bool is_counter = family.ends_with("_total") || family.ends_with("_count");
    const bool is_bytes = family.contains("bytes");
    const auto rate = is_counter ? server.per_second(name) : std::nullopt;
    text += padded(name, 64, false);
    if (family.contains("_seconds") && !is_counter)
      text += padded(concat(value), 16);
    else
      text += padded(is_bytes ? bytes_text(value) : count_text(value), 16);
    text += padded(is_bytes ? bytes_text(rate) : count_text(rate), 16) + '\n';
  }
  return text;
}

class Servers final : public TopView {
 public:
  explicit Servers(const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) {
      split_address(address);  // so that none is wrong when it is looked at
      servers_.emplace_back().address = address;
    }
  }
  // All at the same time: one that does not answer is waited for, and would hold up the others.
  void look() override {
    std::vector<std::jthread> looks;
    for (Watched& server : servers_) looks.emplace_back([&server] { server.look(); });
  }
  // Only of a single server: of several, the table shows those that answer, and what is wrong with each of the others.
  std::string problem() const override { return servers_.size() == 1 ? servers_.front().problem : ""; }
  bool may_come_back() const override { return true; }
  std::string table() override {
    return servers_.size() == 1 ? overview(servers_) + '\n' + details(servers_.front()) : overview(servers_);
  }
  Json json() override {
    Json all;
    all["servers"] = Json::array();
    for (const Watched& server : servers_) {
      Json told = {{"address", server.address}};
      if (!server.problem.empty()) told["problem"] = server.problem;
      for (const auto& [name, value] : server.now) told["metrics"][name] = value;
      all["servers"].push_back(told);
    }
    return all;
  }

 private:
  std::vector<Watched> servers_;
};

}  // namespace

std::unique_ptr<TopView> watch_servers(const std::vector<std::string>& addresses) {
  return std::make_unique<Servers>(addresses);
}

}  // namespace tools
