// Metrics: what a server and its store do, in the text format that Prometheus reads (version 0.0.4), and a client that asks for it by HTTP: for
// /metrics, or for /, a page that draws them in a browser (dashboard.html).
//
// Counters have counted since the server's start, also over memcached's `stats reset`. docs/server.md lists the names. To add one: a call in
// metrics_text().
#pragma once
#include <string>
#include <string_view>

#include "server/clients/hub.h"

namespace server {

// Cost: as Hub::for_each and kv::Store::counts.
std::string metrics_text(Hub& hub);

// One connection that asks for pages by GET or HEAD, each request answered, until its client ends it or says that it is the last one.
class MetricsClient {
 public:
  // Both outlive it.
  MetricsClient(Hub& hub, Connection& connection)
      : hub_(hub), connection_(connection), stream_(*connection.stream) {}

  // Errors: those of the stream that ended it.
  base::Expected<void> serve();

 private:
  base::Expected<void> answer(std::string_view head, bool& goes_on);

  Hub& hub_;
  Connection& connection_;
  Stream& stream_;
};

}  // namespace server
