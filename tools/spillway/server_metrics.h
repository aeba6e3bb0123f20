// What a server's --metrics tells, by name.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace tools {

// "connections" -> 3, "item_calls_total{call=\"get\",result=\"hit\"}" -> 100; names without the "spillway_" that they begin with.
using Metrics = std::map<std::string, double, std::less<>>;

// Of a page in Prometheus' text format. Lines that are of no server of Spillway, or are none of the format, are left out.
Metrics parse_metrics(std::string_view page);

// Asks for it by HTTP. `address` is HOST:PORT, [IPV6]:PORT, or :PORT of this machine. Throws std::runtime_error with what does not answer, and why.
Metrics fetch_metrics(const std::string& address);

// Host and port; no host is this machine. Throws WrongInput for what is no such address.
std::pair<std::string, std::string> split_address(std::string_view address);

}  // namespace tools
