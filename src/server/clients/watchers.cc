#include "server/clients/watchers.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

namespace server {
namespace {

std::string encoded(std::string_view key) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~",
                             kDigits = "0123456789ABCDEF";
  std::string text;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.contains(c))
      text += c;
    else
      (text += '%').append({kDigits[byte >> 4], kDigits[byte & 15]});
  }
  return text;
}

}  // namespace

Watchers::Watcher::Watcher(Watchers& watchers, unsigned kinds) : watchers_(watchers), kinds_(kinds) {
  const sys::LockGuard scope(watchers_.lock_);
  watchers_.watchers_.push_back(this);
  watchers_.set_wanted();
}

Watchers::Watcher::~Watcher() {
  const sys::LockGuard scope(watchers_.lock_);
  std::erase(watchers_.watchers_, this);
  watchers_.set_wanted();
}

std::string Watchers::Watcher::take() {
  const sys::LockGuard scope(watchers_.lock_);
  return std::exchange(lines_, {});
}

// REQUIRES: lock_.
void Watchers::set_wanted() {
  unsigned kinds = 0;
  for (const Watcher* watcher : watchers_) kinds |= watcher->kinds_;
  wanted_.store(kinds, std::memory_order_relaxed);
}

void Watchers::tell_fetched(std::string_view key, bool is_found, uint64_t value_bytes, uint64_t connection) {
  if (!wants(kFetches)) return;
  tell(kFetches, "type=item_get key=" + encoded(key) + " status=" + (is_found ? "found" : "not_found") +
                     " clsid=0 cfd=" + std::to_string(connection) + " size=" + std::to_string(value_bytes));
}

void Watchers::tell_stored(std::string_view key, std::string_view status, std::string_view command,
                           int64_t exptime, uint64_t value_bytes, uint64_t connection) {
  if (!wants(kStores)) return;
  tell(kStores, "type=item_store key=" + encoded(key) + " status=" + std::string(status) +
                    " cmd=" + std::string(command) + " ttl=" + std::to_string(std::max<int64_t>(exptime, 0)) +
                    " clsid=0 cfd=" + std::to_string(connection) + " size=" + std::to_string(value_bytes));
}

void Watchers::tell_connection(std::string_view peer, std::string_view reason, uint64_t connection) {
  if (!wants(kConnections)) return;
  const size_t colon = peer.rfind(':');
  const bool is_local = colon == std::string_view::npos;
  const std::string_view host = peer.substr(0, colon);
  tell(kConnections, std::string("type=") + (reason.empty() ? "conn_new" : "conn_close") +
                         " rip=" + std::string(is_local ? "unix" : host) +
                         " rport=" + std::string(is_local ? "0" : peer.substr(colon + 1)) +
                         " transport=" + (is_local ? "local" : "tcp") +
                         (reason.empty() ? "" : " reason=" + std::string(reason)) +
                         " cfd=" + std::to_string(connection));
}

void Watchers::tell(Kind kind, std::string_view event) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  char head[64];
  const sys::LockGuard scope(lock_);
  const int bytes = snprintf(head, sizeof head, "ts=%lld.%06ld gid=%llu ", static_cast<long long>(now.tv_sec),
                             now.tv_nsec / 1000, static_cast<unsigned long long>(next_number_++));
  for (Watcher* const watcher : watchers_) {
    if ((watcher->kinds_ & kind) == 0) continue;
    if (watcher->lines_.size() >= kMaxBytes) {
      ++watcher->skipped_;
      ++counts_.skipped;
      continue;
    }
    if (watcher->skipped_ != 0)
      watcher->lines_ += "skipped=" + std::to_string(std::exchange(watcher->skipped_, 0)) + '\n';
    watcher->lines_.append(head, static_cast<size_t>(bytes)).append(event).append("\n");
    ++counts_.sent;
  }
}

Watchers::Counts Watchers::counts() {
  const sys::LockGuard scope(lock_);
  Counts counts = counts_;
  counts.watchers = watchers_.size();
  return counts;
}

void Watchers::reset_counts() {
  const sys::LockGuard scope(lock_);
  counts_ = {};
}

}  // namespace server
