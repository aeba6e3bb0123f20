#include "server/clients/memcache_client.h"

#include <algorithm>
#include <utility>

#include "server/memcache/binary_reply.h"
#include "server/memcache/messages.h"
#include "server/memcache/text_reply.h"

namespace server {

using memcache::Protocol;
using memcache::Verb;

MemcacheClient::MemcacheClient(Hub& hub, Connection& connection, Items& items)
    : hub_(hub),
      connection_(connection),
      stream_(*connection.stream),
      items_(items),
      is_admitted_(hub.settings().accounts.is_empty()),
      text_(hub.settings().item_bytes_max) {}

base::Expected<void> MemcacheClient::serve() {
  for (;;) {
    // Nobody would read the answers to further requests, and a buffer full of them may take a minute if each change is flushed.
    if (connection_.is_killed.load(std::memory_order_relaxed)) return {};
    auto next = stream_.input().empty() ? Next::kNeedsMore : take_one();
    if (!next) return std::unexpected(next.error());
    if (*next == Next::kEnds || ends_) return stream_.send();
    if (watched_ != 0) return watch();
    if (*next == Next::kGoesOn) continue;
    asked_.shrink_to_fit();
    stored_.shrink_to_fit();
    auto received = stream_.receive();
    if (!received) return std::unexpected(received.error());
    if (!*received) return stream_.send();
    connection_.used_ms.store(items_.clock().now_ms(), std::memory_order_relaxed);
  }
}

memcache::Parsed MemcacheClient::parse(std::string_view input, Command& command) {
  command = {};
  return is_binary_ ? memcache::parse_binary(input, hub_.settings().item_bytes_max, command)
                    : text_.next(input, command);
}

// Does the input begin with a whole line that begins with one of the names?
bool MemcacheClient::begins_with_line(std::string_view input, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return input.starts_with(name); }) &&
         input.substr(0, memcache::kMaxLineBytes).contains('\n');
}

const char* MemcacheClient::name_of(const Command& command) {
  switch (command.verb) {
    case Verb::kGet: return "get";
    case Verb::kGat: return "gat";
    case Verb::kTouch: return "touch";
    case Verb::kSet: return "set";
    case Verb::kAdd: return "add";
    case Verb::kReplace: return "replace";
    case Verb::kAppend: return "append";
    case Verb::kPrepend: return "prepend";
    case Verb::kCas: return "cas";
    case Verb::kDelete: return "delete";
    case Verb::kIncr: return "incr";
    case Verb::kDecr: return "decr";
    case Verb::kFlushAll: return "flush_all";
    case Verb::kStats: return "stats";
    default: return "other";
  }
}

void MemcacheClient::note(const Command& command) { connection_.note_request(name_of(command)); }

uint64_t MemcacheClient::expiry_of(int64_t exptime) const {
  return expiry_of_exptime(exptime, items_.clock().now_ms());
}

// What flags N, if it `makes`, and T, if it `touches`, leave of an expiry: if both do, what the later one says.
uint64_t MemcacheClient::expiry_after(const Command& command, bool makes, bool touches,
                                      uint64_t former_ms) const {
  if (touches && (!makes || command.meta.makes_before_touch())) return expiry_of(command.exptime);
  return makes ? expiry_of(command.create_exptime) : former_ms;
}

// The expiry that flag t tells, where the item had, or gets, these before and after the command.
uint64_t MemcacheClient::told_expiry(const Command& command, bool is_made, uint64_t former_ms,
                                     uint64_t expires_ms) const {
  const bool makes = is_made && !command.meta.tells_before_making();
  const bool touches = command.has_exptime && !command.meta.tells_before_touch();
  const bool is_last = makes == is_made && touches == command.has_exptime;
  return is_last ? expires_ms : expiry_after(command, makes, touches, former_ms);
}

// REQUIRES: there is some input.
base::Expected<MemcacheClient::Next> MemcacheClient::take_one() {
  if (!is_known_) {
    is_binary_ = memcache::begins_binary(stream_.input().front());
    is_known_ = true;
  }
  if (!is_admitted_ && !is_binary_) return take_credentials();
  Command command;
  const Parsed parsed = parse(stream_.input(), command);
  if (!may_ask(parsed, command)) {
    auto replied =
        reply([&](auto& to) { memcache::write_status(to, command, memcache::Status::kAuthError); });
    if (!replied) return std::unexpected(replied.error());
    return Next::kEnds;
  }
  switch (parsed.outcome) {
    case memcache::Outcome::kMore:
      stream_.consume(parsed.consumed_bytes);
      return parsed.consumed_bytes == 0 ? Next::kNeedsMore : Next::kGoesOn;
    case memcache::Outcome::kRefused: return refuse(command, parsed);
    case memcache::Outcome::kCommand: break;
  }
  note(command);
  if (is_plain_get(command)) return take_gets(command, parsed.consumed_bytes);
  if (is_plain_set(command))
    if (const auto value = value_there(command, parsed.consumed_bytes))
      return take_sets(command, parsed.consumed_bytes, *value);
  size_t used_bytes = parsed.consumed_bytes;
  kv::Bytes value;
  if (takes_value(command.verb)) {
    auto received = receive_value(command, used_bytes, value);
    if (!received) return std::unexpected(received.error());
    if (!*received) return Next::kEnds;
  }
  if (auto executed = execute(command, value); !executed) return std::unexpected(executed.error());
  stream_.consume(used_bytes);
  value_.reset();
  return Next::kGoesOn;
}

base::Expected<MemcacheClient::Next> MemcacheClient::take_credentials() {
  memcache::Credentials credentials;
  const Parsed parsed = memcache::parse_credentials(stream_.input(), credentials);
  switch (parsed.outcome) {
    case memcache::Outcome::kMore: return Next::kNeedsMore;
    case memcache::Outcome::kRefused: return refuse({}, parsed);
    case memcache::Outcome::kCommand: break;
  }
  const bool is_admitted = admit(credentials);
  auto written = write_line(is_admitted ? memcache::messages::kStored : memcache::messages::kNotAdmitted);
  if (!written) return std::unexpected(written.error());
  stream_.consume(parsed.consumed_bytes);
  return Next::kGoesOn;
}

// A client that is turned away also loses an earlier admission.
bool MemcacheClient::admit(const memcache::Credentials& credentials) {
  is_admitted_ = hub_.admits(credentials.user, credentials.password);
  hub_.note_admission(is_admitted_);
  return is_admitted_;
}

// May this be answered? Until it has authenticated, a binary client may only do that, or ask for the version.
bool MemcacheClient::may_ask(const Parsed& parsed, const Command& command) const {
  if (is_admitted_ || parsed.outcome == memcache::Outcome::kMore) return true;
  if (parsed.outcome == memcache::Outcome::kRefused) return false;
  switch (command.verb) {
    case Verb::kVersion:
    case Verb::kSaslMechanisms:
    case Verb::kSaslAuth:
    case Verb::kSaslStep: return true;
    default: return false;
  }
}

// The refusal is sent when the whole request has arrived: a client that is still sending the value, such as a proxy that sends it in parts, expects
// no reply yet.
base::Expected<MemcacheClient::Next> MemcacheClient::refuse(const Command& command, const Parsed& parsed) {
  const memcache::Refusal& refusal = parsed.refusal;
  base::Expected<Done> dropped;
  if (refusal.drops_key) dropped = items_.remove(command.key);
  stream_.consume(parsed.consumed_bytes);
  auto skipped = stream_.skip(refusal.swallow_bytes);
  if (!skipped) return std::unexpected(skipped.error());
  if (!*skipped) return Next::kEnds;
  // Part of a get whose reply an error has already ended.
  if (std::exchange(get_has_failed_, false)) return Next::kGoesOn;
  base::Expected<void> replied;
  if (!dropped)
    replied = answer_error(command, dropped.error());
  else if (!refusal.text.empty())
    replied = write_line(refusal.text);
  else if (refusal.status != memcache::Status::kSuccess)
    replied = reply([&](auto& to) { memcache::write_status(to, command, refusal.status); });
  if (!replied) return std::unexpected(replied.error());
  return refusal.closes ? Next::kEnds : Next::kGoesOn;
}

// Receives the value of a command, in text with its line end. Afterwards it lies in the input behind the command, and `used_bytes` counts both; or
// in value_, and nothing of the command is left in the input. False: the client has gone.
base::Expected<bool> MemcacheClient::receive_value(Command& command, size_t& used_bytes, kv::Bytes& value) {
  const size_t bytes = block_bytes(command);
  if (used_bytes + bytes <= Stream::kInputBytes) {
    if (stream_.input().size() < used_bytes + bytes) {
      auto received = stream_.receive_at_least(used_bytes + bytes);
      if (!received || !*received) return received;
      // The input may have moved.
      parse(stream_.input(), command);
    }
    value = kv::bytes_of(stream_.input().substr(used_bytes, bytes));
    used_bytes += bytes;
    return true;
  }
  line_ = stream_.input().substr(0, used_bytes);
  parse(line_, command);
  stream_.consume(used_bytes);
  used_bytes = 0;
  if (auto taken = value_.take(stream_.pool(), bytes); !taken) {
    auto answered = answer(command, Result::kNoMemory);
    if (!answered) return std::unexpected(answered.error());
    return false;
  }
  value = value_.bytes().first(bytes);
  return stream_.receive_into(0, value_.bytes().first(bytes));
}

base::Expected<void> MemcacheClient::execute(Command& command, kv::Bytes value) {
  if (takes_value(command.verb)) {
    if (is_binary_) return store(command, value);
    if (!memcache::is_block_end(kv::text_of(value.last(memcache::kBlockEndBytes))))
      return answer(command, Result::kBadData);
    return store(command, value.first(command.value_bytes));
  }
  switch (command.verb) {
    case Verb::kGet:
    case Verb::kGat: {
      if (command.protocol != Protocol::kClassic) return fetch(command, command.key);
      for (std::string_view key; !get_has_failed_ && !(key = command.keys.next()).empty();)
        if (auto answered = fetch(command, key); !answered) return answered;
      return command.is_last ? end_get() : base::Expected<void>();
    }
    case Verb::kTouch: return touch(command);
    case Verb::kDelete: return remove(command);
    case Verb::kIncr:
    case Verb::kDecr: return add(command);
    case Verb::kFlushAll: return flush(command);
    case Verb::kMetaDebug: return show(command);
    // This looks at all sessions, connections and segments: if many such requests arrive together, other tasks run before each.
    case Verb::kStats: task::yield(); return answer_stats(command);
    default: return administer(command);
  }
}

}  // namespace server
