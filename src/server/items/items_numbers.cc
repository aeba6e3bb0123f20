// Numbers in items: memcached's incr and decr, and Redis's INCRBY (items.h).
#include <algorithm>

#include "server/items/items.h"
#include "server/items/numbers.h"
#include "server/resp/numbers.h"

namespace server {
namespace {

uint64_t sum(uint64_t number, const AddOptions& options) {
  if (!options.is_decrease) return number + options.delta;
  return number - std::min(number, options.delta);
}

}  // namespace

base::Expected<Added<uint64_t>> Items::add(std::string_view key, const AddOptions& options) {
  Added<uint64_t> added;
  char digits[kMaxDigits];
  const auto decide = [&](Item& item) -> Change {
    added.former_expires_ms = item.expires_ms();
    added.is_made = !item.found() && options.initial.has_value();
    if (added.is_made) {
      added.number = *options.initial;
      Change change = Change::put(kv::bytes_of({digits, write_unsigned(added.number, digits)}), 0,
                                  options.initial_expires_ms);
      change.head.own_cas = options.own_cas;
      return change;
    }
    if (!item.found()) return Change::nothing(Outcome::kAbsent);
    // In memcached's order.
    if (item.is_large() || item.value_bytes() == 0) return Change::nothing(Outcome::kNotNumber);
    if (options.cas != 0 && options.cas != item.cas()) return Change::nothing(Outcome::kOtherCas);
    const std::optional<uint64_t> number = unsigned_of_value(kv::text_of(item.value()));
    if (!number) return Change::nothing(Outcome::kNotNumber);
    added.number = sum(*number, options);
    const size_t length = write_unsigned(added.number, digits);
    Change change = Change::value_of(item);
    change.head.own_cas = options.own_cas;
    change.expires_ms = options.expires_ms.value_or(item.expires_ms());
    change.add(Part::of(kv::bytes_of({digits, length})));
    if (length < item.value_bytes()) change.add(Part::filled(' ', item.value_bytes() - length));
    return change;
  };
  auto done = update(key, decide);
  if (!done) return std::unexpected(done.error());
  if (added.is_made) count(Count::kStored);
  const bool is_miss = done->outcome == Outcome::kAbsent || added.is_made;
  if (is_miss)
    count(options.is_decrease ? Count::kDecreaseMisses : Count::kIncreaseMisses);
  else if (done->outcome == Outcome::kDone)
    count(options.is_decrease ? Count::kDecreaseHits : Count::kIncreaseHits);
  added.outcome = done->outcome;
  added.cas = done->cas;
  added.expires_ms = done->expires_ms;
  return added;
}

base::Expected<Added<int64_t>> Items::add_integer(std::string_view key, int64_t delta) {
  Added<int64_t> added;
  char digits[kMaxDigits];
  const auto decide = [&](Item& item) -> Change {
    added.is_made = !item.found();
    std::optional<int64_t> number = 0;
    if (item.found())
      number = item.is_large() ? std::nullopt : resp::parse_integer(kv::text_of(item.value()));
    if (!number) return Change::nothing(Outcome::kNotNumber);
    if (__builtin_add_overflow(*number, delta, &added.number)) return Change::nothing(Outcome::kOverflow);
    Change change = Change::value_of(item);
    change.add(Part::of(kv::bytes_of({digits, write_integer(added.number, digits)})));
    return change;
  };
  auto done = update(key, decide);
  if (!done) return std::unexpected(done.error());
  if (added.is_made) count(Count::kStored);
  added.outcome = done->outcome;
  added.cas = done->cas;
  added.expires_ms = done->expires_ms;
  return added;
}

}  // namespace server
