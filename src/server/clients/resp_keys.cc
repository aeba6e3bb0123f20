// Commands about keys, whatever their values are (resp_client.h).
#include <string>
#include <vector>

#include "base/mix.h"
#include "server/clients/resp_client.h"
#include "server/items/walk.h"
#include "server/resp/glob.h"
#include "server/resp/numbers.h"
#include "sys/kernel.h"
#include "task/scheduler.h"

namespace server {

using resp::CommandId;
using resp::Problem;

namespace {

// Keys that KEYS returns have at most this many bytes together; SCAN has no such bound.
constexpr size_t kMaxKeysBytes = 64 << 20;
// RANDOMKEY returns one of this many keys, those that a walk finds first.
constexpr size_t kAnyOf = 64;
// DBSIZE counts the keys one by one if the index has this many entries or fewer.
constexpr uint64_t kMaxCounted = 1 << 16;

// What TTL and its kin return instead of a time.
constexpr int64_t kAbsent = -2;
constexpr int64_t kForEver = -1;

// Calls `use` with each key until it returns false, or the connection is killed: all keys may take minutes. The worker's other tasks run in between,
// also when everything is in memory; one of them may be the one that kills.
template <class Use>
base::Expected<void> for_each_key(const Connection& connection, RespScans::Caller& scans, const Use& use) {
  Walk walk;
  if (auto opened = scans.open(walk); !opened) return opened;
  Walk::Entry entry;
  for (uint64_t count = 1;; ++count) {
    auto more = walk.next_item(entry);
    if (!more) return std::unexpected(more.error());
    if (!*more || connection.is_killed.load(std::memory_order_relaxed) || !use(entry.key)) return {};
    if (RespScans::ends_turn(count, entry.key)) task::yield();
  }
}

// The encoding that Redis 7.0 would use for the value.
std::string_view encoding_of(const Item& item) {
  constexpr uint64_t kMaxEmbeddedBytes = 44, kMaxIntegerBytes = 20;
  if (item.is_large()) return "raw";
  const std::string_view text = kv::text_of(item.value());
  if (text.size() > kMaxEmbeddedBytes) return "raw";
  return text.size() <= kMaxIntegerBytes && resp::parse_integer(text) ? "int" : "embstr";
}

}  // namespace

void RespClient::remove(Arguments arguments) {
  int64_t count = 0;
  for (const std::string_view key : arguments.subspan(1)) {
    if (!goes_on()) return;
    auto result = items_.remove(key);
    const Done* const removed = done(result);
    if (removed == nullptr) return;
    count += removed->outcome == Outcome::kDone;
  }
  answer_.integer(count);
}

void RespClient::count_present(const Command& command, Arguments arguments) {
  const bool marks_used = command.id == CommandId::kTouch;
  int64_t count = 0;
  for (const std::string_view key : arguments.subspan(1)) {
    if (!goes_on()) return;
    // TOUCH marks it even after CLIENT NO-TOUCH, as in Redis.
    auto found = marks_used ? items_.get(key) : look(key);
    const Item* const item = done(found);
    if (item == nullptr) return;
    count += item->found();
  }
  answer_.integer(count);
}

void RespClient::expire(const Command& command, Arguments arguments) {
  const auto request = accepted(resp::parse_expire(command, arguments, now_ms()));
  if (!request) return;
  auto result = items_.expire(request->key, expiry_of_unix_ms(request->expires_ms),
                              {.if_never = request->if_never,
                               .if_ends = request->if_some,
                               .if_later = request->if_later,
                               .if_sooner = request->if_earlier,
                               .leaves_no_trace = leaves_no_trace_});
  if (const Done* const changed = done(result)) answer_.integer(changed->outcome == Outcome::kDone);
}

void RespClient::persist(Arguments arguments) {
  auto result = items_.expire(arguments[1], kNever, {.if_ends = true, .leaves_no_trace = leaves_no_trace_});
  if (const Done* const changed = done(result)) answer_.integer(changed->outcome == Outcome::kDone);
}

void RespClient::tell_expiry(const Command& command, Arguments arguments) {
  auto found = look(arguments[1]);
  const Item* const item = done(found);
  if (item == nullptr) return;
  if (!item->found()) return answer_.integer(kAbsent);
  if (item->expires_ms() == kNever) return answer_.integer(kForEver);
  const bool tells_when = command.id == CommandId::kExpiretime || command.id == CommandId::kPexpiretime;
  const bool in_seconds = command.id == CommandId::kExpiretime || command.id == CommandId::kTtl;
  const int64_t ms = tells_when ? static_cast<int64_t>(item->expires_ms())
                                : ms_left(item->expires_ms(), items_.clock().now_ms());
  answer_.integer(in_seconds ? (ms + 500) / 1000 : ms);
}

void RespClient::tell_type(Arguments arguments) {
  auto found = look(arguments[1]);
  if (const Item* const item = done(found)) answer_.simple(item->found() ? "string" : "none");
}

void RespClient::tell_object(const Command& command, Arguments arguments) {
  auto result = items_.fetch(arguments[2], {.leaves_no_trace = true});
  const Fetched* const fetched = done(result);
  if (fetched == nullptr) return;
  if (!fetched->item.found()) return answer_.null();
  switch (command.id) {
    case CommandId::kObjectEncoding: return answer_.bulk(encoding_of(fetched->item));
    case CommandId::kObjectIdletime: return answer_.integer(static_cast<int64_t>(fetched->facts.idle_s));
    case CommandId::kObjectRefcount: return answer_.integer(1);
    default: return answer_.refuse(Problem::kFrequenciesNotKept);
  }
}

void RespClient::list_keys(Arguments arguments) {
  if (arguments[1].size() > resp::kMaxPatternBytes) return answer_.refuse(Problem::kPatternTooLong);
  std::vector<std::string> keys;
  size_t bytes = 0;
  const auto walked = for_each_key(connection_, scans_, [&](std::string_view key) {
    if (!resp::glob_matches(arguments[1], key)) return true;
    keys.emplace_back(key);
    bytes += sizeof(std::string) + key.size();
    return bytes <= kMaxKeysBytes;
  });
  if (!done(walked)) return;
  if (bytes > kMaxKeysBytes) return answer_.error("ERR too many keys match; SCAN tells them in parts");
  answer_.array(keys.size());
  for (const std::string& key : keys) answer_.bulk(key);
}

void RespClient::any_key() {
  std::vector<std::string> keys;
  const auto walked = for_each_key(connection_, scans_, [&](std::string_view key) {
    keys.emplace_back(key);
    return keys.size() < kAnyOf;
  });
  if (!done(walked)) return;
  if (keys.empty()) return answer_.null();
  answer_.bulk(keys[(base::spread(sys::monotonic_ns()) >> 32) % keys.size()]);
}

void RespClient::scan(Arguments arguments) {
  const auto request = accepted(resp::parse_scan(arguments));
  if (!request) return;
  auto result = scans_.step(*request);
  const RespScans::Step* const step = done(result);
  if (step == nullptr) return;
  base::Text<24> cursor;
  cursor << step->cursor;
  answer_.array(2);
  answer_.bulk(cursor.view());
  answer_.array(step->keys.size());
  for (const std::string& key : step->keys) answer_.bulk(key);
}

// Counts the keys, as they are at a moment within the call, with an I/O for each. For a large store it is the number of entries in the index,
// including expired items and pieces of large values.
void RespClient::count_keys() {
  uint64_t count = hub_.items().store().counts().index.entries;
  if (count <= kMaxCounted) {
    count = 0;
    const auto walked = for_each_key(connection_, scans_, [&](std::string_view) { return ++count, true; });
    if (!done(walked)) return;
  }
  answer_.integer(static_cast<int64_t>(count));
}

}  // namespace server
