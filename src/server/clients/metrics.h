// Metrics: what a server and its store do, as text in the format that Prometheus reads (version 0.0.4); and MetricsClient, which serves it by HTTP
// at /metrics, and at / a page that draws it in a browser (dashboard.html).
//
// Counters count from the server's start on; memcached's `stats reset` does not change them. docs/server.md lists the names. To add a metric: a call
// in one of the functions that metrics_text() calls, and its place in docs/server.md.
#pragma once
#include <string>
#include <string_view>

#include "server/clients/hub.h"

namespace server {

// Cost: as Hub::for_each and kv::Store::counts.
std::string metrics_text(Hub& hub);

// A connection that asks for pages by GET or HEAD. Requests are answered until the client ends the connection, or says that one is the last.
class MetricsClient {
 public:
  // Both outlive it.
  MetricsClient(Hub& hub, Connection& connection)
      : hub_(hub), connection_(connection), stream_(*connection.stream) {}

  // Errors: the stream's error that ended the connection.
  base::Expected<void> serve();

 private:
  base::Expected<void> answer(std::string_view head, bool& goes_on);

  Hub& hub_;
  Connection& connection_;
  Stream& stream_;
};

}  // namespace server
