// Commands that read and change values (resp_client.h).
#include <algorithm>
#include <cmath>
#include <utility>

#include "server/clients/resp_client.h"
#include "server/resp/numbers.h"

namespace server {

using resp::CommandId;
using resp::Problem;

namespace {

uint64_t expiry_of(int64_t expires_ms) { return expires_ms == 0 ? kNever : expiry_of_unix_ms(expires_ms); }

Mode mode_of(resp::Condition condition) {
  switch (condition) {
    case resp::Condition::kNone: return Mode::kSet;
    case resp::Condition::kIfAbsent: return Mode::kAdd;
    case resp::Condition::kIfPresent: return Mode::kReplace;
  }
  std::unreachable();
}

// Why something cannot be done to a value.
Problem problem_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kNotNumber: return Problem::kNotAnInteger;
    case Outcome::kOverflow: return Problem::kOverflow;
    default: return Problem::kTooLong;
  }
}

}  // namespace

void RespClient::get_one(Arguments arguments) { answer_get(arguments[1]); }

void RespClient::set(const Command& command, Arguments arguments) {
  const auto request = accepted(resp::parse_set(command, arguments, now_ms()));
  if (!request) return;
  Item before;
  auto result = items_.set(request->key, kv::bytes_of(request->value),
                           {.mode = mode_of(request->condition),
                            .expires_ms = expiry_of(request->expires_ms),
                            .keeps_expiry = request->keeps_expiry},
                           request->returns_old ? &before : nullptr);
  const Done* const set = done(result);
  if (set == nullptr) return;
  if (set->outcome == Outcome::kTooLong) return answer_.refuse(Problem::kTooLong);
  if (request->returns_old) return answer_.value(std::move(before));
  const bool is_set = set->outcome == Outcome::kDone;
  if (command.id == CommandId::kSetnx) return answer_.integer(is_set);
  if (!is_set) return answer_.null();
  answer_.ok();
}

void RespClient::set_all(const Command& command, Arguments arguments) {
  const auto pairs = accepted(resp::parse_pairs(command, arguments));
  if (!pairs) return;
  if (command.id != CommandId::kMsetnx) {
    if (set_each(*pairs)) answer_.ok();
  } else if (pairs->size() == 2) {
    set_if_absent((*pairs)[0], (*pairs)[1]);
  } else {
    set_all_if_absent(*pairs);
  }
}

// Each key is set separately: after an error those already set stay. False: an error was answered, or the client was
// killed.
bool RespClient::set_each(Arguments pairs) {
  for (size_t at = 0; at < pairs.size();) {
    if (!goes_on()) return false;
    NewItem items[kTogether];
    size_t count = 0;
    for (; count < kTogether && at < pairs.size(); ++count, at += 2)
      items[count] = {.key = pairs[at], .value = kv::bytes_of(pairs[at + 1])};
    if (!make_sets({items, count}, false)) return false;
  }
  return true;
}

// As a transaction: otherwise others could set a key after it was looked at. What cannot be set is refused before
// any is set.
void RespClient::set_all_if_absent(Arguments pairs) {
  if (!is_in_transaction_) return be_alone([&] { set_all_if_absent(pairs); });
  for (size_t at = 0; at < pairs.size(); at += 2) {
    goes_on();
    if (pairs[at + 1].size() > hub_.settings().value_bytes_max) return answer_.refuse(Problem::kTooLong);
    auto found = items_.look(pairs[at]);
    const Item* const item = done(found);
    if (item == nullptr) return;
    if (item->found()) return answer_.integer(0);
  }
  if (set_each(pairs)) answer_.integer(1);
}

void RespClient::set_if_absent(std::string_view key, std::string_view value) {
  auto result = items_.set(key, kv::bytes_of(value), {.mode = Mode::kAdd});
  const Done* const set = done(result);
  if (set == nullptr) return;
  if (set->outcome == Outcome::kTooLong) return answer_.refuse(Problem::kTooLong);
  answer_.integer(set->outcome == Outcome::kDone);
}

void RespClient::get_all(Arguments arguments) {
  Arguments keys = arguments.subspan(1);
  answer_.array(keys.size());
  while (!keys.empty() && goes_on(std::min(keys.size(), kTogether))) {
    const Arguments group = keys.first(std::min(keys.size(), kTogether));
    keys = keys.subspan(group.size());
    if (!leaves_no_trace_)
      answer_gets(group);
    else
      for (const std::string_view key : group) answer_get(key);
  }
}

void RespClient::get_and_remove(Arguments arguments) {
  Item before;
  auto result = items_.remove(arguments[1], std::nullopt, &before);
  if (done(result) != nullptr) answer_.value(std::move(before));
}

void RespClient::get_and_expire(const Command& command, Arguments arguments) {
  const auto parsed = resp::parse_getex(command, arguments, now_ms());
  // Redis refuses a wrong time only if the key is there.
  if (!parsed && parsed.error().problem != Problem::kSyntax) {
    auto found = look(arguments[1]);
    const Item* const item = done(found);
    if (item == nullptr) return;
    if (!item->found()) return answer_.null();
  }
  const auto request = accepted(parsed);
  if (!request) return;
  if (!request->persists && request->expires_ms == 0) return answer_get(request->key);
  const uint64_t expires_ms = expiry_of(request->expires_ms);
  auto fetched = items_.fetch(request->key, {.leaves_no_trace = leaves_no_trace_, .expires_ms = expires_ms});
  if (Fetched* const found = done(fetched)) answer_.value(std::move(found->item));
}

void RespClient::get_range(Arguments arguments) {
  const auto request = accepted(resp::parse_getrange(arguments));
  if (!request) return;
  auto found = get(request->key);
  Item* const item = done(found);
  if (item == nullptr) return;
  const resp::ByteRange range = resp::bytes_in_range(*request, item->value_bytes());
  answer_.part_of_value(*item, range.offset, range.bytes);
}

void RespClient::set_range(Arguments arguments) {
  const auto request = accepted(resp::parse_setrange(arguments));
  if (!request) return;
  auto result = items_.set_range(request->key, request->offset, kv::bytes_of(request->bytes));
  const Done* const set = done(result);
  if (set == nullptr) return;
  if (set->outcome != Outcome::kDone) return answer_.refuse(problem_of(set->outcome));
  answer_.integer(static_cast<int64_t>(set->value_bytes));
}

void RespClient::append(Arguments arguments) {
  auto result =
      items_.set(arguments[1], kv::bytes_of(arguments[2]), {.mode = Mode::kAppend, .makes_until_ms = kNever});
  const Done* const set = done(result);
  if (set == nullptr) return;
  if (set->outcome != Outcome::kDone) return answer_.refuse(problem_of(set->outcome));
  answer_.integer(static_cast<int64_t>(set->value_bytes));
}

void RespClient::string_length(Arguments arguments) {
  auto found = get(arguments[1]);
  if (const Item* const item = done(found)) answer_.integer(static_cast<int64_t>(item->value_bytes()));
}

void RespClient::add(const Command& command, Arguments arguments) {
  const auto request = accepted(resp::parse_increment(command, arguments));
  if (!request) return;
  auto result = items_.add_integer(request->key, request->delta);
  const Added<int64_t>* const added = done(result);
  if (added == nullptr) return;
  if (added->outcome != Outcome::kDone) return answer_.refuse(problem_of(added->outcome));
  answer_.integer(added->number);
}

void RespClient::add_float(Arguments arguments) {
  const auto delta = accepted(resp::parse_float_argument(arguments[2]));
  if (!delta) return;
  char text[resp::kMaxPrintedFloatBytes];
  size_t bytes = 0;
  const auto decide = [&](Item& item) -> Change {
    std::optional<long double> number = 0;
    if (item.is_large()) {
      number.reset();
    } else if (item.found()) {
      number = resp::parse_float(kv::text_of(item.value()));
    }
    if (!number) return Change::nothing(Outcome::kNotNumber);
    const long double sum = *number + *delta;
    if (!std::isfinite(sum)) return Change::nothing(Outcome::kOverflow);
    bytes = resp::print_float(sum, std::span(text));
    Change change = Change::value_of(item);
    change.add(Part::of(kv::bytes_of({text, bytes})));
    return change;
  };
  auto result = items_.update(arguments[1], decide);
  const Done* const added = done(result);
  if (added == nullptr) return;
  switch (added->outcome) {
    case Outcome::kDone: return answer_.bulk({text, bytes});
    case Outcome::kNotNumber: return answer_.refuse(Problem::kNotAFloat);
    case Outcome::kOverflow: return answer_.refuse(Problem::kNanOrInfinity);
    default: return answer_.refuse(Problem::kTooLong);
  }
}

}  // namespace server
