// Reads what a server tells at its --metrics address.
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace tools {

// "connections" -> 3, "item_calls_total{call=\"get\",result=\"hit\"}" -> 100; names without the "spillway_" that they begin with.
using Metrics = std::map<std::string, double, std::less<>>;

// The metrics of a page in Prometheus' text format. Lines that are no metrics of a Spillway server, or not in that format, are left out.
Metrics parse_metrics(std::string_view page);

// Asks a server by HTTP. `address` is HOST:PORT, [IPV6]:PORT, or :PORT of this machine, by TLS with tls: before it (server/net/tls_client.h). Waits for
// `limit` at most each time that the server has to do something. Throws std::runtime_error, which says who does not answer, and why.
Metrics fetch_metrics(const std::string& address, std::chrono::seconds limit = std::chrono::seconds(5));

struct ServerAddress {
  std::string host;  // "": this machine
  std::string port;
  bool is_tls = false;
  bool operator==(const ServerAddress&) const = default;
};
// Throws WrongInput for a text that is no such address.
ServerAddress split_address(std::string_view address);

}  // namespace tools
