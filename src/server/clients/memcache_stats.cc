// How a MemcacheClient answers commands about the server. Statistics have memcached's names where they mean the same; what this server does not have
// is left out.
#include <sys/resource.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "server/clients/memcache_client.h"
#include "server/memcache/binary_reply.h"
#include "server/memcache/messages.h"
#include "server/memcache/text_reply.h"
#include "server/text.h"

namespace server {
namespace {

using memcache::Verb;

// Called for one statistic after the other.
using Tell = std::function<void(std::string_view name, const std::string& value)>;

std::string text_of(const timeval& time) {
  char text[32];
  snprintf(text, sizeof text, "%ld.%06ld", time.tv_sec, time.tv_usec);
  return text;
}

void tell_process(Hub& hub, uint64_t now_ms, const Tell& tell) {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  tell("pid", std::to_string(getpid()));
  tell("uptime", std::to_string((now_ms - std::min(now_ms, hub.started_ms())) / 1000));
  tell("time", std::to_string(now_ms / 1000));
  tell("version", hub.settings().version);
  tell("pointer_size", std::to_string(8 * sizeof(void*)));
  tell("rusage_user", text_of(used.ru_utime));
  tell("rusage_system", text_of(used.ru_stime));
}

void tell_connections(Hub& hub, const Tell& tell) {
  const ConnectionCounts counts = hub.counts();
  tell("max_connections", std::to_string(hub.settings().connections_max));
  tell("curr_connections", std::to_string(counts.now));
  tell("total_connections", std::to_string(counts.total));
  tell("rejected_connections", std::to_string(counts.refused));
  tell("idle_kicks", std::to_string(counts.idle));
  tell("bytes_read", std::to_string(counts.received_bytes));
  tell("bytes_written", std::to_string(counts.sent_bytes));
}

void tell_commands(const ItemCounts& counts, const Tell& tell) {
  constexpr std::pair<const char*, Count> kNames[] = {
      {"get_hits", Count::kGetHits},           {"get_misses", Count::kGetMisses},
      {"delete_misses", Count::kDeleteMisses}, {"delete_hits", Count::kDeleteHits},
      {"incr_misses", Count::kIncreaseMisses}, {"incr_hits", Count::kIncreaseHits},
      {"decr_misses", Count::kDecreaseMisses}, {"decr_hits", Count::kDecreaseHits},
      {"cas_misses", Count::kCasMisses},       {"cas_hits", Count::kCasHits},
      {"cas_badval", Count::kCasOthers},       {"touch_hits", Count::kTouchHits},
      {"touch_misses", Count::kTouchMisses}};
  tell("cmd_get", std::to_string(counts[Count::kGetHits] + counts[Count::kGetMisses]));
  tell("cmd_set", std::to_string(counts[Count::kSets]));
  tell("cmd_flush", std::to_string(counts[Count::kFlushes]));
  tell("cmd_touch", std::to_string(counts[Count::kTouchHits] + counts[Count::kTouchMisses]));
  for (const auto& [name, count] : kNames) tell(name, std::to_string(counts[count]));
}

void tell_general(Hub& hub, uint64_t now_ms, const Tell& tell) {
  const kv::StoreCounts store = hub.items().store().counts();
  const StoreUse use = hub.store_use(store);
  const ItemCounts items = hub.item_counts();
  tell_process(hub, now_ms, tell);
  tell_connections(hub, tell);
  tell_commands(items, tell);
  tell("limit_maxbytes", std::to_string(hub.settings().memory_bytes));
  tell("auth_cmds", std::to_string(hub.admissions()));
  tell("auth_errors", std::to_string(hub.rejections()));
  const Watchers::Counts watchers = hub.watchers.counts();
  tell("log_watcher_skipped", std::to_string(watchers.skipped));
  tell("log_watcher_sent", std::to_string(watchers.sent));
  tell("log_watchers", std::to_string(watchers.watchers));
  tell("accepting_conns", "1");
  tell("threads", std::to_string(hub.settings().worker_count));
  tell("bytes", std::to_string(store.log.live_bytes));
  tell("curr_items", std::to_string(store.index.entries));
  tell("total_items", std::to_string(items[Count::kStored]));
  tell("evictions", std::to_string(use.dropped_records));
  tell("reclaimed", std::to_string(use.expired_records));
  // In memcached: gets from its flash tier. Here: gets that were not answered from memory.
  tell("get_extstore", std::to_string(use.get_reads));
}

void tell_settings(Hub& hub, const Tell& tell) {
  const Settings& settings = hub.settings();
  tell("maxbytes", std::to_string(settings.memory_bytes));
  tell("maxconns", std::to_string(settings.connections_max));
  tell("tcpport", std::to_string(settings.memcache_port));
  tell("udpport", "0");
  tell("inter", settings.interface.empty() ? "NULL" : settings.interface);
  tell("verbosity", std::to_string(hub.verbosity.load(std::memory_order_relaxed)));
  tell("num_threads", std::to_string(settings.worker_count));
  tell("evictions", hub.items().store().identity().is_cache ? "on" : "off");
  tell("cas_enabled", "yes");
  tell("auth_enabled_sasl", settings.accounts.is_empty() ? "no" : "yes");
  tell("auth_enabled_ascii", settings.accounts.is_empty() ? "no" : "yes");
  tell("item_size_max", std::to_string(settings.item_bytes_max));
  tell("flush_enabled", settings.takes_flush ? "yes" : "no");
  tell("shutdown_command", settings.takes_shutdown ? "yes" : "no");
}

// Calls `tell` only after the hub's lock has been released: the client may be slow to read.
void tell_each_connection(Hub& hub, uint64_t now_ms, const Tell& tell) {
  std::vector<std::pair<std::string, std::string>> all;
  hub.for_each([&](const Connection& connection) {
    const std::string number = std::to_string(connection.number) + ":";
    const uint64_t used_ms = connection.used_ms.load(std::memory_order_relaxed);
    all.emplace_back(number + "addr", connection.peer);
    all.emplace_back(number + "listen_addr", connection.own);
    all.emplace_back(number + "secs_since_last_cmd",
                     std::to_string((now_ms - std::min(now_ms, used_ms)) / 1000));
  });
  for (const auto& [name, value] : all) tell(name, value);
}

}  // namespace

base::Expected<void> MemcacheClient::write_line(std::string_view line) {
  if (auto written = stream_.write(line); !written) return written;
  return stream_.write("\r\n");
}

base::Expected<void> MemcacheClient::answer_stats(const Command& command) {
  memcache::Words words(command.arguments);
  const std::string_view what = words.next(), more = words.next();
  base::Expected<void> outcome;
  const Tell tell = [&](std::string_view name, const std::string& value) {
    if (!outcome) return;
    auto room = stream_.room(name.size() + value.size() + memcache::kBinaryStatBytes + memcache::kStatBytes);
    if (!room) return void(outcome = std::unexpected(room.error()));
    memcache::ReplyBuffer to(*room);
    if (is_binary_)
      memcache::write_binary_stat(to, command, name, value);
    else
      memcache::write_stat(to, name, value);
    stream_.wrote(to.written().size());
  };
  const uint64_t now_ms = items_.clock().now_ms();
  if (what == "detail" && !is_binary_) return answer_detail(more);
  if (what.empty())
    tell_general(hub_, now_ms, tell);
  else if (what == "settings")
    tell_settings(hub_, tell);
  else if (what == "conns")
    tell_each_connection(hub_, now_ms, tell);
  else if (what == "reset")
    hub_.reset_counts();
  else if (what == "detail" && (more == "on" || more == "off"))
    hub_.prefixes.turn(more == "on");
  else if (what != "items" && what != "slabs" && what != "sizes")
    return is_binary_ ? answer(command, Result::kNotFound) : write_line(memcache::messages::kError);
  if (!outcome) return outcome;
  if (is_binary_) return reply([&](auto& to) { memcache::write_binary_stat(to, command, {}, {}); });
  if (what == "reset") return write_line(memcache::messages::kReset);
  return write_line(memcache::messages::kEnd);
}

base::Expected<void> MemcacheClient::answer_detail(std::string_view what) {
  PrefixCounts& prefixes = hub_.prefixes;
  if (what == "dump") {
    std::string text;
    prefixes.for_each([&](const std::string& prefix, const PrefixCounts::Counts& counts) {
      text += "PREFIX " + prefix + " get " + std::to_string(counts.gets) + " hit " +
              std::to_string(counts.hits) + " set " + std::to_string(counts.sets) + " del " +
              std::to_string(counts.deletes) + "\r\n";
    });
    if (auto written = stream_.write(text); !written) return written;
    return write_line(memcache::messages::kEnd);
  }
  if (what != "on" && what != "off") return write_line(memcache::messages::kDetailUsage);
  prefixes.turn(what == "on");
  return write_line(memcache::messages::kOk);
}

// For tests: moves the clock forward by some seconds, or back.
base::Expected<void> MemcacheClient::move_time(std::string_view seconds) {
  const auto by = parse_number<int64_t>(seconds);
  if (hub_.settings().movable_clock == nullptr || !by) return write_line(memcache::messages::kError);
  hub_.settings().movable_clock->move(*by * 1000);
  return write_line(memcache::messages::kOk);
}

// As memcached does with -S, and without it.
base::Expected<void> MemcacheClient::answer_sasl(const Command& command) {
  if (hub_.settings().accounts.is_empty())
    return reply([&](auto& to) { memcache::write_status(to, command, memcache::Status::kUnknownCommand); });
  if (command.verb == Verb::kSaslMechanisms)
    return reply([&](auto& to) { memcache::write_binary_text(to, command, memcache::kSaslMechanisms); });
  memcache::Credentials credentials;
  const bool is_said = command.verb == Verb::kSaslAuth && command.key == memcache::kSaslMechanisms &&
                       memcache::parse_plain(command.arguments, credentials);
  if (!admit(is_said ? credentials : memcache::Credentials()))
    return reply([&](auto& to) { memcache::write_status(to, command, memcache::Status::kAuthError); });
  return reply([&](auto& to) { memcache::write_binary_text(to, command, "Authenticated"); });
}

base::Expected<void> MemcacheClient::begin_watch(std::string_view kinds) {
  if (!hub_.settings().takes_watch) return write_line("CLIENT_ERROR watch commands not allowed");
  constexpr std::pair<std::string_view, unsigned> kNames[] = {{"fetchers", Watchers::kFetches},
                                                              {"mutations", Watchers::kStores},
                                                              {"connevents", Watchers::kConnections}};
  unsigned watched = 0;
  memcache::Words words(kinds);
  for (std::string_view word; !(word = words.next()).empty();) {
    const auto* const named = std::ranges::find(kNames, word, &std::pair<std::string_view, unsigned>::first);
    if (named == std::end(kNames))
      return write_line("CLIENT_ERROR there is nothing to watch but fetchers, mutations and connevents");
    watched |= named->second;
  }
  watched_ = watched == 0 ? unsigned{Watchers::kFetches} : watched;
  return write_line(memcache::messages::kOk);
}

// Sends what is watched until the client goes. What the client sends is no longer looked at.
base::Expected<void> MemcacheClient::watch() {
  constexpr uint64_t kTurnNs = 20'000'000;
  Watchers::Watcher watcher(hub_.watchers, watched_);
  for (;;) {
    if (auto written = stream_.write(watcher.take()); !written) return written;
    if (auto sent = stream_.send(); !sent) return sent;
    stream_.consume(stream_.input().size());
    auto received = stream_.receive_within(kTurnNs);
    if (!received) return std::unexpected(received.error());
    if (*received && !**received) return {};
  }
}

base::Expected<void> MemcacheClient::administer(const Command& command) {
  memcache::Words words(command.arguments);
  const std::string_view first = words.next(), second = words.next();
  switch (command.verb) {
    case Verb::kVersion:
      return reply([&](auto& to) {
        if (is_binary_)
          memcache::write_binary_text(to, command, hub_.settings().version);
        else
          memcache::write_version(to, hub_.settings().version);
      });
    case Verb::kVerbosity:
      hub_.verbosity.store(static_cast<int>(std::min<uint64_t>(command.number, 9)),
                           std::memory_order_relaxed);
      return answer(command, Result::kDone);
    case Verb::kNoop: return answer(command, Result::kDone);
    case Verb::kQuit:
      ends_ = true;
      return is_binary_ ? answer(command, Result::kDone) : base::Expected<void>();
    case Verb::kSaslMechanisms:
    case Verb::kSaslAuth:
    case Verb::kSaslStep: return answer_sasl(command);
    case Verb::kShutdown:
      if (!hub_.settings().takes_shutdown) return write_line("ERROR: shutdown not enabled");
      if (!first.empty() && first != "graceful") return write_line("CLIENT_ERROR invalid shutdown mode");
      ends_ = true;
      hub_.end(first.empty() ? Hub::End::kAtOnce : Hub::End::kDrained, "a client's shutdown");
      return {};
    case Verb::kWatch: return begin_watch(command.arguments);
    case Verb::kDebugTime: return move_time(first);
    case Verb::kLruCrawler:
      if ((first == "enable" || first == "disable") && second.empty()) return answer(command, Result::kDone);
      return write_line("CLIENT_ERROR there is no crawler: what has expired goes when room is made");
    case Verb::kSlabs:
      // There is nothing to be moved here, whatever is asked for.
      if (first == "automove" && !parse_number<uint64_t>(second))
        return answer_refused(command, memcache::messages::kBadFormat);
      if (first == "automove") return answer(command, Result::kDone);
      [[fallthrough]];
    default: return answer_refused(command, "CLIENT_ERROR not available: items are in a store, not in slabs");
  }
}

}  // namespace server
