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

// Asks a server by HTTP. `address` is HOST:PORT, [IPV6]:PORT, or :PORT of this machine. Waits for `limit` at most each time that the server has to do
// something. Throws std::runtime_error, which says who does not answer, and why.
Metrics fetch_metrics(const std::string& address, std::chrono::seconds limit = std::chrono::seconds(5));

// Returns host and port; an empty host is this machine. Throws WrongInput for a text that is no such address.
std::pair<std::string, std::string> split_address(std::string_view address);

}  // namespace tools
