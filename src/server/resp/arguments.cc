#include "server/resp/arguments.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "server/resp/numbers.h"
#include "server/resp/words.h"

namespace server::resp {
namespace {

// How a command or an option gives a time.
struct TimeUnit {
  int64_t ms;
  bool is_relative;
};
constexpr TimeUnit kSeconds = {.ms = 1000, .is_relative = true};
constexpr TimeUnit kMilliseconds = {.ms = 1, .is_relative = true};
constexpr TimeUnit kUnixSeconds = {.ms = 1000, .is_relative = false};
constexpr TimeUnit kUnixMilliseconds = {.ms = 1, .is_relative = false};

Accepted<int64_t> integer(std::string_view text) {
  const auto value = parse_integer(text);
  if (!value) return refuse(Problem::kNotAnInteger);
  return *value;
}

// In milliseconds since 1970, also if it is before that.
Accepted<int64_t> unix_ms(const Command& command, int64_t given, TimeUnit unit, int64_t now_ms) {
  int64_t ms = 0;
  if (__builtin_mul_overflow(given, unit.ms, &ms) ||
      __builtin_add_overflow(ms, unit.is_relative ? now_ms : 0, &ms))
    return refuse(Problem::kInvalidExpire, command.name);
  return ms;
}

// For a value that is set: the given time has to be more than zero.
Accepted<int64_t> expiry(const Command& command, std::string_view text, TimeUnit unit, int64_t now_ms) {
  const auto given = integer(text);
  if (!given) return given;
  if (*given <= 0) return refuse(Problem::kInvalidExpire, command.name);
  return unix_ms(command, *given, unit, now_ms);
}

const TimeUnit* unit_of_option(std::string_view option) {
  if (is_word(option, "ex")) return &kSeconds;
  if (is_word(option, "px")) return &kMilliseconds;
  if (is_word(option, "exat")) return &kUnixSeconds;
  if (is_word(option, "pxat")) return &kUnixMilliseconds;
  return nullptr;
}

// EX, PX, EXAT or PXAT and the time behind it, among the options of SET and GETEX. The same one may come
// again, and the last counts; the time itself is checked after all options.
struct ExpiryOption {
  const TimeUnit* unit = nullptr;  // null: none was given
  std::string_view text;

  // Takes the option, and moves `i` to its time. False: this is no such option, it has no time, or a
  // different one was given before.
  bool take(Arguments arguments, size_t& i) {
    const TimeUnit* given = unit_of_option(arguments[i]);
    if (given == nullptr || (unit != nullptr && unit != given) || i + 1 == arguments.size()) return false;
    unit = given;
    text = arguments[++i];
    return true;
  }
};

// The request with the time of that option, if it was given.
template <class Request>
Accepted<Request> with_expiry(Request request, const ExpiryOption& expires, const Command& command,
                              int64_t now_ms) {
  if (expires.unit == nullptr) return request;
  const auto expires_ms = expiry(command, expires.text, *expires.unit, now_ms);
  if (!expires_ms) return std::unexpected(expires_ms.error());
  request.expires_ms = *expires_ms;
  return request;
}

Accepted<SetRequest> parse_set_options(const Command& command, Arguments arguments, int64_t now_ms) {
  SetRequest request = {.key = arguments[1], .value = arguments[2]};
  ExpiryOption expires;
  for (size_t i = 3; i < arguments.size(); ++i) {
    const std::string_view option = arguments[i];
    if (is_word(option, "nx") && request.condition != Condition::kIfPresent)
      request.condition = Condition::kIfAbsent;
    else if (is_word(option, "xx") && request.condition != Condition::kIfAbsent)
      request.condition = Condition::kIfPresent;
    else if (is_word(option, "get"))
      request.returns_old = true;
    else if (is_word(option, "keepttl") && expires.unit == nullptr)
      request.keeps_expiry = true;
    else if (request.keeps_expiry || !expires.take(arguments, i))
      return refuse(Problem::kSyntax);
  }
  return with_expiry(request, expires, command, now_ms);
}

// SETEX and PSETEX, whose value comes last.
Accepted<SetRequest> parse_setex(const Command& command, Arguments arguments, TimeUnit unit, int64_t now_ms) {
  const auto expires_ms = expiry(command, arguments[2], unit, now_ms);
  if (!expires_ms) return std::unexpected(expires_ms.error());
  return SetRequest{.key = arguments[1], .value = arguments[3], .expires_ms = *expires_ms};
}

TimeUnit unit_of_expire(CommandId id) {
  switch (id) {
    case CommandId::kExpire: return kSeconds;
    case CommandId::kPexpire: return kMilliseconds;
    case CommandId::kExpireat: return kUnixSeconds;
    default: CHECK(id == CommandId::kPexpireat); return kUnixMilliseconds;
  }
}

}  // namespace

Accepted<SetRequest> parse_set(const Command& command, Arguments arguments, int64_t now_ms) {
  switch (command.id) {
    case CommandId::kSetex: return parse_setex(command, arguments, kSeconds, now_ms);
    case CommandId::kPsetex: return parse_setex(command, arguments, kMilliseconds, now_ms);
    case CommandId::kSetnx:
      return SetRequest{.key = arguments[1], .value = arguments[2], .condition = Condition::kIfAbsent};
    case CommandId::kGetset:
      return SetRequest{.key = arguments[1], .value = arguments[2], .returns_old = true};
    default: CHECK(command.id == CommandId::kSet); return parse_set_options(command, arguments, now_ms);
  }
}

Accepted<GetexRequest> parse_getex(const Command& command, Arguments arguments, int64_t now_ms) {
  GetexRequest request = {.key = arguments[1]};
  ExpiryOption expires;
  for (size_t i = 2; i < arguments.size(); ++i) {
    if (is_word(arguments[i], "persist") && expires.unit == nullptr)
      request.persists = true;
    else if (request.persists || !expires.take(arguments, i))
      return refuse(Problem::kSyntax);
  }
  return with_expiry(request, expires, command, now_ms);
}

Accepted<ExpireRequest> parse_expire(const Command& command, Arguments arguments, int64_t now_ms) {
  ExpireRequest request = {.key = arguments[1]};
  for (const std::string_view option : arguments.subspan(3)) {
    if (is_word(option, "nx"))
      request.if_never = true;
    else if (is_word(option, "xx"))
      request.if_some = true;
    else if (is_word(option, "gt"))
      request.if_later = true;
    else if (is_word(option, "lt"))
      request.if_earlier = true;
    else
      return refuse(Problem::kUnsupportedOption, option);
  }
  if (request.if_never && (request.if_some || request.if_later || request.if_earlier))
    return refuse(Problem::kNxWithOthers);
  if (request.if_later && request.if_earlier) return refuse(Problem::kGtWithLt);
  const auto given = integer(arguments[2]);
  if (!given) return std::unexpected(given.error());
  const auto expires_ms = unix_ms(command, *given, unit_of_expire(command.id), now_ms);
  if (!expires_ms) return std::unexpected(expires_ms.error());
  request.expires_ms = *expires_ms;
  return request;
}

Accepted<Arguments> parse_pairs(const Command& command, Arguments arguments) {
  const Arguments pairs = arguments.subspan(1);
  if (pairs.size() % 2 != 0) return refuse(Problem::kWrongArity, command.name);
  return pairs;
}

Accepted<IncrementRequest> parse_increment(const Command& command, Arguments arguments) {
  IncrementRequest request = {.key = arguments[1], .delta = 1};
  if (command.id == CommandId::kIncrby || command.id == CommandId::kDecrby) {
    const auto delta = integer(arguments[2]);
    if (!delta) return std::unexpected(delta.error());
    request.delta = *delta;
  }
  if (command.id == CommandId::kDecr || command.id == CommandId::kDecrby)
    if (__builtin_sub_overflow(int64_t{0}, request.delta, &request.delta))
      return refuse(Problem::kDecrementOverflow);
  return request;
}

Accepted<long double> parse_float_argument(std::string_view text) {
  const auto value = parse_float(text);
  if (!value) return refuse(Problem::kNotAFloat);
  return *value;
}

Accepted<GetrangeRequest> parse_getrange(Arguments arguments) {
  const auto first = integer(arguments[2]);
  if (!first) return std::unexpected(first.error());
  const auto last = integer(arguments[3]);
  if (!last) return std::unexpected(last.error());
  return GetrangeRequest{.key = arguments[1], .first = *first, .last = *last};
}

ByteRange bytes_in_range(const GetrangeRequest& request, uint64_t value_bytes) {
  CHECK_LE(value_bytes, static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  const int64_t bytes = static_cast<int64_t>(value_bytes);
  if (request.first < 0 && request.last < 0 && request.first > request.last) return {};
  const auto from_begin = [bytes](int64_t at) { return at < 0 ? std::max<int64_t>(at + bytes, 0) : at; };
  const int64_t first = from_begin(request.first);
  const int64_t last = std::min(from_begin(request.last), bytes - 1);
  if (first > last) return {};
  return {.offset = static_cast<uint64_t>(first), .bytes = static_cast<uint64_t>(last - first) + 1};
}

Accepted<SetrangeRequest> parse_setrange(Arguments arguments) {
  const auto offset = integer(arguments[2]);
  if (!offset) return std::unexpected(offset.error());
  if (*offset < 0) return refuse(Problem::kOffsetOutOfRange);
  return SetrangeRequest{
      .key = arguments[1], .offset = static_cast<uint64_t>(*offset), .bytes = arguments[3]};
}

Accepted<ScanRequest> parse_scan(Arguments arguments) {
  ScanRequest request;
  const auto cursor = parse_cursor(arguments[1]);
  if (!cursor) return refuse(Problem::kInvalidCursor);
  request.cursor = *cursor;
  for (size_t i = 2; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) return refuse(Problem::kSyntax);
    const std::string_view option = arguments[i], given = arguments[i + 1];
    if (is_word(option, "count")) {
      const auto count = integer(given);
      if (!count) return std::unexpected(count.error());
      if (*count < 1) return refuse(Problem::kSyntax);
      request.count = static_cast<uint64_t>(*count);
    } else if (is_word(option, "match")) {
      if (given.size() > kMaxPatternBytes) return refuse(Problem::kPatternTooLong);
      request.pattern = given;
    } else if (is_word(option, "type")) {
      request.type = given;
    } else {
      return refuse(Problem::kSyntax);
    }
  }
  return request;
}

}  // namespace server::resp
