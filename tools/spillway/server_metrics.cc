#include "server_metrics.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "command.h"
#include "descriptor.h"

namespace tools {
namespace {

constexpr std::string_view kPrefix = "spillway_";
constexpr size_t kPageBytesMost = 4 << 20;

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
  // So it says that the time has run out.
  const int error = errno == EINPROGRESS ? ETIMEDOUT : errno;
  close(descriptor);
  errno = error;
  return -1;
}

std::string receive_all(int descriptor, const std::string& address) {
  std::string all;
  char part[16 << 10];
  for (;;) {
    const ssize_t got = recv(descriptor, part, sizeof part, 0);
    // Who refuses an asker has not read what is asked: behind its answer the connection is reset.
    if (got == 0 || (got < 0 && errno == ECONNRESET && !all.empty())) return all;
    if (got < 0) fail(address, errno == EAGAIN ? "no answer in time" : std::strerror(errno));
    all.append(part, static_cast<size_t>(got));
    if (all.size() > kPageBytesMost) fail(address, "the answer does not end");
  }
}

}  // namespace

std::pair<std::string, std::string> split_address(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == address.size())
    throw WrongInput(concat("top: '", printable(address), "' is no HOST:PORT"));
  std::string_view host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {std::string(host), std::string(address.substr(colon + 1))};
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
    metrics.emplace(line.substr(kPrefix.size(), space - kPrefix.size()), value);
  }
  return metrics;
}

Metrics fetch_metrics(const std::string& address, std::chrono::seconds limit) {
  const auto [host, port] = split_address(address);
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  // Without a host no name has to be looked up for this machine: "localhost" may be unknown.
  const char* const name = host.empty() ? nullptr : host.c_str();
  if (const int error = getaddrinfo(name, port.c_str(), &wanted, &list); error != 0)
    fail(address, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(list, freeaddrinfo);
  int number = -1;
  for (const addrinfo* at = list; at != nullptr && number < 0; at = at->ai_next)
    number = connect_to(*at, limit);
  const Descriptor descriptor(number);
  if (number < 0) fail(address, std::strerror(errno));
  const std::string request = concat("GET /metrics HTTP/1.1\r\nHost: ", host.empty() ? "localhost" : host,
                                     "\r\nConnection: close\r\n\r\n");
  if (send(number, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
    fail(address, std::strerror(errno));
  const std::string answer = receive_all(number, address);
  if (answer.starts_with("HTTP/1.1 503 "))
    throw std::runtime_error(
        concat("the server at ", printable(address),
               " takes no more connections that ask for metrics; end others, or wait a minute"));
  Metrics metrics = parse_metrics(answer);
  if (metrics.empty()) fail(address, "what answers is no server of this kind");
  return metrics;
}

}  // namespace tools
