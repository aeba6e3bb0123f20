#include "server/clients/metrics.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <dashboard_page.inc>  // of the build: made of dashboard.html

#include "server/clients/metrics_page.h"
#include "server/resp/words.h"
#include "sys/memory.h"

namespace server {
namespace {

constexpr size_t kMaxHeadBytes = 8 << 10;
constexpr std::string_view kHeadEnd = "\r\n\r\n";

void tell_server(Hub& hub, MetricsPage& page) {
  const ConnectionCounts connections = hub.counts_since_start();
  page.begin("info", "gauge", "1, with the version.");
  page.add({{"version", hub.settings().version}}, uint64_t{1});
  page.begin("start_time_seconds", "gauge", "When the server was started, since 1970.");
  page.add({}, static_cast<double>(hub.started_ms()) / 1000);
  page.gauge("connections", "Connections of clients that are there.", connections.now);
  page.gauge("connections_most", "Connections of clients that there may be.", hub.settings().connections_max);
  page.counter("connections_total", "Connections of clients that have been accepted.", connections.total);
  page.counter("connections_refused_total", "Connections of clients that were refused: there were too many.",
               connections.refused);
  page.counter("connections_idle_total",
               "Connections of clients that were closed since nothing came (--idle).", connections.idle);
  page.counter("requests_total", "Requests of clients.", connections.requests);
  page.counter("received_bytes_total", "Bytes that clients have sent.", connections.received_bytes);
  page.counter("sent_bytes_total", "Bytes that clients were sent.", connections.sent_bytes);
  page.gauge("resident_bytes", "Memory of the process that is resident.", sys::resident_bytes());
  page.gauge("memory_bytes", "Memory that the process may use; 0: any.", hub.settings().memory_bytes);
}

void tell_items(Hub& hub, MetricsPage& page) {
  constexpr std::pair<std::string_view, std::pair<Count, Count>> kByResult[] = {
      {"get", {Count::kGetHits, Count::kGetMisses}},
      {"touch", {Count::kTouchHits, Count::kTouchMisses}},
      {"delete", {Count::kDeleteHits, Count::kDeleteMisses}},
      {"incr", {Count::kIncreaseHits, Count::kIncreaseMisses}},
      {"decr", {Count::kDecreaseHits, Count::kDecreaseMisses}},
      {"cas", {Count::kCasHits, Count::kCasMisses}}};
  const ItemCounts counts = hub.items().counts();
  page.begin("item_calls_total", "counter", "Calls for an item, by what they found.");
  for (const auto& [call, results] : kByResult) {
    page.add({{"call", call}, {"result", "hit"}}, counts[results.first]);
    page.add({{"call", call}, {"result", "miss"}}, counts[results.second]);
  }
  page.add({{"call", "cas"}, {"result", "other"}}, counts[Count::kCasOthers]);
  page.counter("item_sets_total", "Calls that store an item.", counts[Count::kSets]);
  page.counter("item_flushes_total", "Calls that flush all items.", counts[Count::kFlushes]);
  page.counter("item_errors_total",
               "Calls that failed, as clients were told: for the device, a damaged record, a full store.",
               counts[Count::kErrors]);
}

void tell_store(const kv::StoreCounts& counts, MetricsPage& page) {
  page.gauge("store_keys", "Keys that the index knows, ended ones among them until their room is used again.",
             counts.index.entries);
  page.gauge("store_index_bytes", "Memory of the index.", counts.index.memory_bytes);
  page.gauge("store_live_bytes", "Bytes of the store that are in use.", counts.log.live_bytes);
  page.gauge("store_limit_bytes", "Bytes that may be.", counts.log.limit_bytes);
  page.begin("store_segments", "gauge", "Segments, by what they are.");
  page.add({{"state", "free"}}, counts.log.free_segments);
  page.add({{"state", "open"}}, counts.log.open_segments);
  page.add({{"state", "sealed"}}, counts.log.sealed_segments);
  page.add({{"state", "checkpoint"}}, counts.log.checkpoint_segments);
  page.gauge("store_error",
             "Why writes to the device fail, as an errno value (28: no space, 5: I/O); 0: they do not.",
             static_cast<uint64_t>(counts.error));
  page.counter("store_collected_segments_total", "Segments that were collected.", counts.collected.victims);
  page.counter("store_moved_bytes_total", "Bytes that collection has moved.", counts.collected.moved_bytes);
  page.counter("store_dropped_records_total", "Records that a cache has dropped to make room.",
               counts.collected.dropped_records);
  page.counter("store_kept_records_total", "Records that a cache has kept since they were read.",
               counts.collected.kept_records);
  page.counter("store_expired_records_total", "Records that had ended when they were collected.",
               counts.collected.expired_records);
  page.counter("store_damaged_records_total", "Records that were found damaged.",
               counts.collected.damaged_records);
  page.counter("store_asked_keys_total",
               "Keys that the store was asked for, by gets and by changes that depend on the item.",
               counts.use.asked_keys);
  page.gauge("memory_tier_bytes", "Memory for records that are in use.", counts.tier.used_bytes);
  page.gauge("memory_tier_budget_bytes", "Memory that may be for records that are in use.",
             counts.tier.budget_bytes);
  page.gauge("memory_tier_records", "Records in memory.", counts.tier.record_count);
  page.counter("memory_tier_hits_total",
               "Keys that were asked for and needed no I/O: their records are in memory.",
               counts.use.from_memory);
}

void tell_use(const kv::UseCounts& use, MetricsPage& page) {
  page.begin("store_call_seconds", "summary", "How long calls of the store take.");
  for (size_t i = 0; i < kv::kCallCount; ++i) {
    const kv::Latency& latency = use.latencies[i];
    const std::string_view call = kv::kCallNames[i];
    page.add({{"call", call}, {"quantile", "0.5"}}, static_cast<double>(latency.p50_ns) / 1e9);
    page.add({{"call", call}, {"quantile", "0.99"}}, static_cast<double>(latency.p99_ns) / 1e9);
    page.add({{"call", call}, {"quantile", "0.999"}}, static_cast<double>(latency.p999_ns) / 1e9);
    page.add({{"call", call}}, static_cast<double>(latency.sum_ns) / 1e9, "_sum");
    page.add({{"call", call}}, latency.count, "_count");
  }
  page.begin("device_ios_total", "counter", "I/Os on the store's device, by what they were for.");
  for (size_t i = 0; i < kv::kIoForCount; ++i) {
    page.add({{"for", kv::kIoForNames[i]}, {"io", "read"}}, use.io[i].reads);
    page.add({{"for", kv::kIoForNames[i]}, {"io", "write"}}, use.io[i].writes);
    page.add({{"for", kv::kIoForNames[i]}, {"io", "flush"}}, use.io[i].flushes);
  }
  page.begin("device_bytes_total", "counter", "Bytes read from and written to the store's device.");
  for (size_t i = 0; i < kv::kIoForCount; ++i) {
    page.add({{"for", kv::kIoForNames[i]}, {"io", "read"}}, use.io[i].read_bytes);
    page.add({{"for", kv::kIoForNames[i]}, {"io", "write"}}, use.io[i].written_bytes);
  }
}

// The answer to a request.
struct Resource {
  std::string_view status = "200 OK";
  std::string_view type = "text/plain; charset=utf-8";
  std::string_view further_heads = "";
  std::string text;
};

Resource not_found() { return {.status = "404 Not Found", .text = "There is nothing but / and /metrics.\n"}; }

Resource not_allowed() {
  return {.status = "405 Method Not Allowed",
          .further_heads = "Allow: GET, HEAD\r\n",
          .text = "Pages are for GET and HEAD.\n"};
}

Resource resource_at(std::string_view path, Hub& hub) {
  if (path == "/metrics")
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .text = metrics_text(hub)};
  if (path != "/") return not_found();
  return {
      .type = "text/html; charset=utf-8", .further_heads = kDashboardHeads, .text = std::string(kDashboard)};
}

// Does the head of a request contain `what`, ignoring case? REQUIRES: `what` is in lower case.
bool says(std::string_view head, std::string_view what) {
  const auto is_same = [](char a, char b) { return resp::to_lower(a) == b; };
  return !std::ranges::search(head, what, is_same).empty();
}

}  // namespace

std::string metrics_text(Hub& hub) {
  MetricsPage page;
  const kv::StoreCounts counts = hub.items().store().counts();
  tell_server(hub, page);
  tell_items(hub, page);
  tell_store(counts, page);
  tell_use(counts.use, page);
  return page.take();
}

base::Expected<void> MetricsClient::serve() {
  stream_.begin_exchange();
  for (bool goes_on = true; goes_on;) {
    const size_t end = stream_.input().find(kHeadEnd);
    if (end == std::string_view::npos) {
      if (stream_.input().size() > kMaxHeadBytes) return base::failure(EMSGSIZE, "a request without an end");
      auto received = stream_.receive();
      if (!received) return std::unexpected(received.error());
      if (!*received) break;
      connection_.used_ms.store(hub_.items().store().clock().now_ms(), std::memory_order_relaxed);
      continue;
    }
    connection_.note_request("metrics");
    task::yield();  // as before memcached's stats
    if (auto answered = answer(stream_.input().substr(0, end), goes_on); !answered) return answered;
    stream_.consume(end + kHeadEnd.size());
    if (auto sent = stream_.send(); !sent) return sent;
    stream_.begin_exchange();
  }
  return {};
}

base::Expected<void> MetricsClient::answer(std::string_view head, bool& goes_on) {
  const bool is_head = head.starts_with("HEAD ");
  const bool is_known = is_head || head.starts_with("GET ");
  const std::string_view target = head.substr(std::min(head.size(), head.find(' ') + 1));
  const std::string_view path = target.substr(0, target.find_first_of(" ?\r"));
  const Resource resource = is_known ? resource_at(path, hub_) : not_allowed();
  goes_on = is_known && says(head, "http/1.1") && !says(head, "connection: close");
  std::string text = "HTTP/1.1 ";
  text.append(resource.status).append("\r\nContent-Type: ").append(resource.type);
  text.append("\r\nX-Content-Type-Options: nosniff\r\n").append(resource.further_heads);
  text += "Content-Length: " + std::to_string(resource.text.size());
  text += goes_on ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n";
  if (!is_head) text += resource.text;
  return stream_.write(text);
}

}  // namespace server
