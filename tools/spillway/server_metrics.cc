#include "server_metrics.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <span>

#include "base/error.h"
#include "command.h"
#include "descriptor.h"
#include "server/net/tls_client.h"

namespace tools {
namespace {

constexpr std::string_view kPrefix = "spillway_";
constexpr std::string_view kTlsPrefix = "tls:";
constexpr size_t kMaxPageBytes = 4 << 20;
constexpr double kMaxValue = 1e18;  // more than any metric has

[[noreturn]] void fail(const std::string& address, std::string_view why) {
  throw std::runtime_error(concat("nothing tells metrics at ", printable(address), ": ", why,
                                  "; it is where a server's --metrics listens"));
}

int connect_to(const addrinfo& at, std::chrono::seconds limit) {
  const int descriptor = socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC, at.ai_protocol);
  const timeval most = {.tv_sec = limit.count(), .tv_usec = 0};
  if (descriptor < 0) return descriptor;
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  if (connect(descriptor, at.ai_addr, at.ai_addrlen) == 0) return descriptor;
  // So that the error says that the time has run out.
  const int error = errno == EINPROGRESS ? ETIMEDOUT : errno;
  close(descriptor);
  errno = error;
  return -1;
}

[[noreturn]] void fail(const std::string& address, const base::Error& error) {
  fail(address, error.number == EAGAIN ? "no answer in time" : error.message);
}

// All that receive(part) delivers; it returns how many bytes it has put there, or 0 at the end.
template <class Receive>
std::string receive_all(const std::string& address, const Receive& receive) {
  std::string all;
  char part[16 << 10];
  for (;;) {
    const base::Expected<size_t> got = receive(std::span(part));
    // A server that refuses a client has not read its request, so behind the answer the connection is reset.
    if (!got && got.error().number == ECONNRESET && !all.empty()) return all;
    if (!got) fail(address, got.error());
    if (*got == 0) return all;
    all.append(part, *got);
    if (all.size() > kMaxPageBytes) fail(address, "the answer does not end");
  }
}

std::string ask(int descriptor, const std::string& address, const std::string& request) {
  if (send(descriptor, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
    fail(address, std::strerror(errno));
  return receive_all(address, [&](std::span<char> to) -> base::Expected<size_t> {
    const ssize_t got = recv(descriptor, to.data(), to.size(), 0);
    if (got < 0) return base::failure(errno, std::strerror(errno));
    return static_cast<size_t>(got);
  });
}

std::string ask_by_tls(int descriptor, const std::string& address, const std::string& host,
                       const std::string& request) {
  server::TlsClient client;
  auto asked = client.begin(descriptor, host);
  if (asked) asked = client.send(request);
  if (!asked) fail(address, asked.error());
  return receive_all(address, [&](std::span<char> to) { return client.receive(to); });
}

// Has the answer as many bytes behind its head as that says? Where a connection breaks off, the last number may lack some of its digits.
bool is_whole(std::string_view answer) {
  constexpr std::string_view kHeadEnd = "\r\n\r\n", kLength = "\r\nContent-Length: ";
  const size_t end = answer.find(kHeadEnd), length = answer.substr(0, end).find(kLength);
  if (length == std::string_view::npos) return true;
  const std::string_view rest = answer.substr(length + kLength.size());
  size_t bytes = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), bytes);
  return end != std::string_view::npos && answer.size() - end - kHeadEnd.size() >= bytes;
}

// Terminals take some characters beyond ASCII for controls, too.
bool is_plain(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

ServerAddress split_address(std::string_view address) {
  const bool is_tls = address.starts_with(kTlsPrefix);
  const std::string_view place = address.substr(is_tls ? kTlsPrefix.size() : 0);
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == place.size())
    throw WrongInput(concat("top: '", printable(address), "' is not HOST:PORT"));
  std::string_view host = place.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {.host = std::string(host), .port = std::string(place.substr(colon + 1)), .is_tls = is_tls};
}

Metrics parse_metrics(std::string_view page) {
  Metrics metrics;
  while (!page.empty()) {
    const size_t end = std::min(page.find('\n'), page.size());
    std::string_view line = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    const size_t space = line.rfind(' ');
    if (!line.starts_with(kPrefix) || space == std::string_view::npos) continue;
    double value = 0;
    const auto [read, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    if (error != std::errc() || read != line.data() + line.size()) continue;
    const std::string_view name = line.substr(kPrefix.size(), space - kPrefix.size());
    // Whoever has answered, this is shown on a terminal, and as whole numbers.
    if (!is_plain(name) || !(value >= 0 && value <= kMaxValue)) continue;
    metrics.emplace(name, value);
  }
  return metrics;
}

Metrics fetch_metrics(const std::string& address, std::chrono::seconds limit) {
  const ServerAddress place = split_address(address);
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  // Without a host no name has to be looked up for this machine: "localhost" may be unknown.
  const char* const name = place.host.empty() ? nullptr : place.host.c_str();
  if (const int error = getaddrinfo(name, place.port.c_str(), &wanted, &list); error != 0)
    fail(address, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(list, freeaddrinfo);
  int number = -1;
  for (const addrinfo* at = list; at != nullptr && number < 0; at = at->ai_next)
    number = connect_to(*at, limit);
  const Descriptor descriptor(number);
  if (number < 0) fail(address, std::strerror(errno));
  const std::string host = place.host.empty() ? "localhost" : place.host;
  const std::string request =
      concat("GET /metrics HTTP/1.1\r\nHost: ", host, "\r\nConnection: close\r\n\r\n");
  const std::string answer =
      place.is_tls ? ask_by_tls(number, address, host, request) : ask(number, address, request);
  if (answer.starts_with("HTTP/1.1 503 "))
    throw std::runtime_error(
        concat("the server at ", printable(address),
               " takes no more connections that ask for metrics; end others, or wait a minute"));
  if (!is_whole(answer)) fail(address, "the answer breaks off");
  Metrics metrics = parse_metrics(answer);
  if (metrics.empty()) fail(address, "what answers is not a server of this kind");
  return metrics;
}

}  // namespace tools
