#include "server/resp/request.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "server/resp/inline.h"
#include "server/resp/numbers.h"

namespace server::resp {
namespace {

// Before a password was given.
constexpr int64_t kMaxStrangersArguments = 10;
constexpr int64_t kMaxStrangersBulkBytes = 16384;

constexpr size_t kLineEndBytes = 2;

constexpr std::string_view kTooLarge = "too big request";
constexpr std::string_view kTooLongInline = "too big inline request";

constexpr size_t kKeptWordsBytes = 1024;  // the memory of longer inline commands is given back

}  // namespace

Parsed RequestParser::more(uint64_t missing_bytes) {
  missing_bytes_ = missing_bytes;
  return Parsed::kMore;
}

Parsed RequestParser::fail(std::string_view text, std::string_view what) {
  base::TextRef error(error_.data(), error_.size());
  error << "ERR Protocol error: " << text;
  if (!what.empty()) error << '\'' << what << '\'';
  error_bytes_ = error.size();
  state_ = State::kFailed;
  return Parsed::kError;
}

void RequestParser::begin() {
  at_ = 0;
  knows_length_ = false;
  places_.clear();
  arguments_.clear();
  words_.clear();
  if (words_.capacity() > kKeptWordsBytes) std::string().swap(words_);
}

Parsed RequestParser::finish() {
  state_ = State::kBegin;
  if (places_.size() == 0) return Parsed::kNothing;
  for (size_t i = 0; i < places_.size(); ++i) arguments_.push_back(argument(i));
  return Parsed::kRequest;
}

std::string_view RequestParser::argument(size_t i) const {
  const std::span<const Place> places = places_.view();
  CHECK_LT(i, places.size());
  const Place& place = places[i];
  return place.elsewhere != nullptr ? std::string_view(place.elsewhere, place.bytes)
                                    : input_.substr(place.offset, place.bytes);
}

void RequestParser::take(std::string_view value) {
  CHECK(state_ == State::kLarge);
  CHECK_LE(value.size(), bulk_bytes_);
  places_.push_back({.elsewhere = value.empty() ? "" : value.data(), .bytes = value.size()});
  knows_length_ = false;
  --left_count_;
  state_ = State::kArray;
}

Parsed RequestParser::parse(std::string_view input, const RequestLimits& limits) {
  CHECK(state_ != State::kLarge && state_ != State::kFailed);
  input_ = input;
  if (state_ == State::kBegin) {
    begin();
    if (input.empty()) return more(1);
    if (input[0] != '*') return parse_inline(limits);
    if (const auto stopped = parse_count(limits)) return *stopped;
  }
  CHECK_LE(at_, input.size());
  while (left_count_ > 0)
    if (const auto stopped = parse_argument(limits)) return *stopped;
  return finish();
}

// The line at at_ without its end; at_ is behind that then.
std::optional<Parsed> RequestParser::find_line(const RequestLimits& limits, std::string_view too_big,
                                               std::string_view& line) {
  const std::string_view rest = input_.substr(at_);
  // How long the line may be must not depend on how much has arrived.
  const size_t room = limits.input_bytes_max - at_;
  if (room < kLineEndBytes) return fail(kTooLarge);
  const bool is_bounded_by_room = room - kLineEndBytes < kMaxLineBytes;
  const size_t most = is_bounded_by_room ? room - kLineEndBytes : kMaxLineBytes;
  const size_t end = rest.substr(0, most + 1).find('\r');
  if (end == std::string_view::npos) {
    if (rest.size() > most) return fail(is_bounded_by_room ? kTooLarge : too_big);
    return more(kLineEndBytes);
  }
  if (rest.size() < end + kLineEndBytes) return more(1);
  line = rest.substr(0, end);
  at_ += end + kLineEndBytes;
  return std::nullopt;
}

// "*3"
std::optional<Parsed> RequestParser::parse_count(const RequestLimits& limits) {
  std::string_view line;
  if (const auto stopped = find_line(limits, "too big mbulk count string", line)) return stopped;
  const auto count = parse_integer(line.substr(1));
  if (!count || (*count > 0 && static_cast<uint64_t>(*count) > limits.argument_count_max))
    return fail("invalid multibulk length");
  if (*count > kMaxStrangersArguments && !limits.is_authenticated)
    return fail("unauthenticated multibulk length");
  if (*count <= 0) return finish();
  left_count_ = static_cast<size_t>(*count);
  state_ = State::kArray;
  return std::nullopt;
}

// "$5"
std::optional<Parsed> RequestParser::parse_length(const RequestLimits& limits) {
  std::string_view line;
  if (const auto stopped = find_line(limits, "too big bulk count string", line)) return stopped;
  if (!line.starts_with('$')) {
    const char got = line.empty() || line[0] == '\n' ? ' ' : line[0];
    return fail("expected '$', got ", {&got, 1});
  }
  const auto length = parse_integer(line.substr(1));
  if (!length || *length < 0 || static_cast<uint64_t>(*length) > limits.bulk_bytes_max)
    return fail("invalid bulk length");
  if (*length > kMaxStrangersBulkBytes && !limits.is_authenticated)
    return fail("unauthenticated bulk length");
  bulk_bytes_ = static_cast<uint64_t>(*length);
  knows_length_ = true;
  if (bulk_bytes_ >= limits.large_bytes) {
    state_ = State::kLarge;
    return Parsed::kLarge;
  }
  const size_t room = limits.input_bytes_max - at_;
  if (room < kLineEndBytes || bulk_bytes_ > room - kLineEndBytes) return fail(kTooLarge);
  return std::nullopt;
}

// "$5\r\nhello\r\n"
std::optional<Parsed> RequestParser::parse_argument(const RequestLimits& limits) {
  if (!knows_length_)
    if (const auto stopped = parse_length(limits)) return stopped;
  const uint64_t needed_bytes = bulk_bytes_ + kLineEndBytes;
  const size_t there_bytes = input_.size() - at_;
  if (there_bytes < needed_bytes) return more(needed_bytes - there_bytes);
  places_.push_back({.offset = at_, .bytes = static_cast<size_t>(bulk_bytes_)});
  at_ += needed_bytes;
  knows_length_ = false;
  --left_count_;
  return std::nullopt;
}

// False: the line's quotes are unbalanced.
bool RequestParser::split(std::string_view line) {
  words_.reserve(line.size());  // so that they stay where they are
  for (;;) {
    const size_t begin = words_.size();
    switch (take_word(line, words_)) {
      case Word::kUnbalanced: return false;
      case Word::kNone: return true;
      case Word::kWord: break;
    }
    places_.push_back({.elsewhere = words_.data() + begin, .bytes = words_.size() - begin});
  }
}

Parsed RequestParser::parse_inline(const RequestLimits& limits) {
  const size_t most = std::min(kMaxLineBytes, limits.input_bytes_max - 1);
  const size_t end = input_.substr(0, most + 1).find('\n');
  if (end == std::string_view::npos) return input_.size() > most ? fail(kTooLongInline) : more(1);
  std::string_view line = input_.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  at_ = end + 1;
  if (!split(line)) return fail("unbalanced quotes in request");
  if (places_.size() > limits.argument_count_max) return fail(kTooLongInline);
  return finish();
}

}  // namespace server::resp
