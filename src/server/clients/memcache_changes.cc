// How a MemcacheClient changes items, and how it answers.
#include "server/clients/memcache_client.h"
#include "server/memcache/binary_reply.h"
#include "server/memcache/messages.h"
#include "server/memcache/text_reply.h"

namespace server {
namespace {

using memcache::Protocol;
using memcache::Verb;

memcache::Result result_of(Outcome outcome, Verb verb) {
  using memcache::Result;
  switch (outcome) {
    case Outcome::kDone: return Result::kDone;
    case Outcome::kPresent: return Result::kNotStored;
    case Outcome::kOtherCas: return Result::kExists;
    case Outcome::kNotNumber: return Result::kNotNumber;
    case Outcome::kTooLong: return Result::kTooLarge;
    case Outcome::kAbsent:
      return takes_value(verb) && verb != Verb::kCas ? Result::kNotStored : Result::kNotFound;
    case Outcome::kOverflow:  // Redis's
    case Outcome::kUnmet: break;
  }
  CHECK(false);
  return Result::kDone;
}

Mode mode_of(Verb verb) {
  switch (verb) {
    case Verb::kAdd: return Mode::kAdd;
    case Verb::kReplace: return Mode::kReplace;
    case Verb::kAppend: return Mode::kAppend;
    case Verb::kPrepend: return Mode::kPrepend;
    default: return Mode::kSet;
  }
}

// memcached's word for an outcome, for watchers.
std::string_view word_of(const base::Expected<Done>& done) {
  if (!done) return "no_memory";
  switch (done->outcome) {
    case Outcome::kDone: return "stored";
    case Outcome::kOtherCas: return "exists";
    case Outcome::kTooLong: return "too_large";
    default: return "not_stored";
  }
}

size_t digits_of(uint64_t number) {
  size_t digits = 1;
  for (; number >= 10; number /= 10) ++digits;
  return digits;
}

}  // namespace

base::Expected<void> MemcacheClient::answer(const Command& command, Result result,
                                            const memcache::MetaItem& meta) {
  if (!memcache::is_sent(command, result)) return {};
  switch (command.protocol) {
    case Protocol::kClassic: return write_line(memcache::line_of(command, result));
    case Protocol::kBinary:
      return reply([&](auto& to) {
        memcache::write_status(to, command, memcache::status_of(command, result), meta.cas);
      });
    case Protocol::kMeta: break;
  }
  if (memcache::is_error(result)) return write_line(memcache::line_of(command, result));
  return reply([&](auto& to) { memcache::write_meta(to, command, result, meta); });
}

base::Expected<void> MemcacheClient::answer(const Command& command, const base::Expected<Done>& done) {
  if (!done) return answer_error(command, done.error());
  const bool is_done = done->outcome == Outcome::kDone;
  return answer(command, result_of(done->outcome, command.verb),
                {.value_bytes = done->value_bytes,
                 .cas = is_done ? done->cas : 0,
                 .seconds_left = seconds_left(done->expires_ms, items_.clock().now_ms())});
}

// Answers an error of the store.
base::Expected<void> MemcacheClient::answer_error(const Command& command, const base::Error& error) {
  items_.note_error(error);
  get_has_failed_ =
      command.protocol == Protocol::kClassic && (command.verb == Verb::kGet || command.verb == Verb::kGat);
  if (error.number == ENOSPC || error.number == ENOMEM || command.protocol == Protocol::kBinary)
    return answer(command, Result::kNoMemory);
  if (!memcache::is_sent(command, Result::kNoMemory)) return {};
  if (auto written = stream_.write("SERVER_ERROR "); !written) return written;
  return write_line(error.message);
}

// For commands that this server refuses to everybody: those about slabs, and flushes where they are disabled.
base::Expected<void> MemcacheClient::answer_refused(const Command& command, std::string_view why) {
  if (is_binary_)
    return reply([&](auto& to) { memcache::write_status(to, command, memcache::Status::kAuthError); });
  return command.is_quiet ? base::Expected<void>() : write_line(why);
}

// memcached looks up the item before it stores a new one, and tells those who watch fetches.
void MemcacheClient::note_storing(const Command& command) {
  hub_.prefixes.stored(command.key);
  if (!hub_.watchers.wants(Watchers::kFetches)) return;
  if (const auto item = items_.look(command.key)) tell_fetched(command.key, *item);
}

base::Expected<void> MemcacheClient::store(const Command& command, kv::Bytes value) {
  note_storing(command);
  // No item has a cas of 0; but for append and prepend 0 means any.
  const bool is_joined = command.verb == Verb::kAppend || command.verb == Verb::kPrepend;
  const bool asks_for_cas = command.has_cas && (command.cas != 0 || !is_joined);
  SetOptions options = {.mode = mode_of(command.verb),
                        .flags = command.flags,
                        .expires_ms = expiry_of(command.exptime),
                        .cas = asks_for_cas ? std::optional(command.cas) : std::nullopt,
                        .takes_lower_cas = command.meta.has('I'),
                        .own_cas = command.has_own_cas ? command.own_cas : 0};
  if (command.creates) options.makes_until_ms = expiry_of(command.create_exptime);
  auto done = items_.set(command.key, value, options);
  note_stored(command, done);
  return answer(command, done);
}

void MemcacheClient::note_stored(const Command& command, const base::Expected<Done>& done) {
  hub_.watchers.tell_stored(command.key, word_of(done), name_of(command), command.exptime,
                            command.value_bytes, connection_.number);
}

// A set that does not depend on the item, and whose key stays where it is while more commands are parsed.
bool MemcacheClient::is_plain_set(const Command& command) {
  return command.verb == Verb::kSet && !command.has_cas && !command.has_own_cas && !command.creates &&
         !command.meta.has('I') && !command.meta.has('b');
}

// The value of a command whose line ends at `line_end` in the input; none if it has not all arrived, or does not end as it should.
std::optional<kv::Bytes> MemcacheClient::value_there(const Command& command, size_t line_end) const {
  const std::string_view block = stream_.input().substr(line_end, block_bytes(command));
  if (block.size() < block_bytes(command)) return std::nullopt;
  if (!is_binary_ && !memcache::is_block_end(block.substr(command.value_bytes))) return std::nullopt;
  return kv::bytes_of(block.substr(0, command.value_bytes));
}

// Executes and answers all sets at the front of the input that have arrived whole. `value` is the first one's.
base::Expected<MemcacheClient::Next> MemcacheClient::take_sets(const Command& first, size_t first_bytes,
                                                               kv::Bytes value) {
  stored_.clear();
  stored_.push_back({.command = first, .value = value});
  const size_t used = take_more(first_bytes + block_bytes(first), {"set ", "ms "}, stored_,
                                [&](const Command& command, size_t line_end) {
                                  const auto more =
                                      is_plain_set(command) ? value_there(command, line_end) : std::nullopt;
                                  if (!more) return size_t{0};
                                  stored_.push_back({.command = command, .value = *more});
                                  return line_end + block_bytes(command);
                                });
  if (auto answered = answer_sets(); !answered) return std::unexpected(answered.error());
  stored_.clear();
  stream_.consume(used);
  return Next::kGoesOn;
}

base::Expected<void> MemcacheClient::answer_sets() {
  NewItem items[kTogether];
  for (size_t i = 0; i < stored_.size(); ++i) {
    note_storing(stored_[i].command);
    items[i] = {.key = stored_[i].command.key,
                .value = stored_[i].value,
                .flags = stored_[i].command.flags,
                .expires_ms = expiry_of(stored_[i].command.exptime)};
  }
  base::Expected<void> written;
  size_t next = 0;
  set_together(items_, stream_.pool(), {items, stored_.size()}, [&](const base::Expected<Done>& done) {
    const Command& command = stored_[next++].command;
    note_stored(command, done);
    if (written) written = answer(command, done);
  });
  return written;
}

base::Expected<void> MemcacheClient::remove(const Command& command) {
  hub_.prefixes.deleted(command.key);
  const auto cas = command.has_cas ? std::optional(command.cas) : std::nullopt;
  if (!command.meta.has('I') && !command.meta.has('x'))
    return answer(command, items_.remove(command.key, cas));
  InvalidateOptions options = {.cas = cas,
                               .own_cas = command.has_own_cas ? command.own_cas : 0,
                               .makes_stale = command.meta.has('I'),
                               .empties = command.meta.has('x')};
  if (command.has_exptime) options.expires_ms = expiry_of(command.exptime);
  return answer(command, items_.invalidate(command.key, options));
}

base::Expected<void> MemcacheClient::add(const Command& command) {
  AddOptions options = {.delta = command.number,
                        .is_decrease = command.verb == Verb::kDecr,
                        .cas = command.has_cas ? command.cas : 0,
                        .own_cas = command.has_own_cas ? command.own_cas : 0};
  if (command.has_exptime) options.expires_ms = expiry_of(command.exptime);
  if (command.creates) {
    options.initial = command.initial;
    options.initial_expires_ms = expiry_after(command, true, command.has_exptime, kNever);
  }
  auto added = items_.add(command.key, options);
  if (!added) return answer_error(command, added.error());
  const Result result = added->is_made ? Result::kCreated : result_of(added->outcome, command.verb);
  if (added->outcome != Outcome::kDone) return answer(command, result);
  if (!memcache::is_sent(command, result)) return {};
  const uint64_t number = added->number;
  if (command.protocol == Protocol::kBinary)
    return reply([&](auto& to) { memcache::write_binary_number(to, command, number, added->cas); });
  if (command.protocol == Protocol::kClassic)
    return reply([&](auto& to) { memcache::write_number(to, number); });
  const uint64_t told_ms = told_expiry(command, added->is_made, added->former_expires_ms, added->expires_ms);
  const memcache::MetaItem meta = {.value_bytes = digits_of(number),
                                   .cas = added->cas,
                                   .seconds_left = seconds_left(told_ms, items_.clock().now_ms())};
  return reply([&](auto& to) {
    memcache::write_meta(to, command, result, meta);
    if (memcache::answers_with_value(command, result)) memcache::write_number(to, number);
  });
}

base::Expected<void> MemcacheClient::touch(const Command& command) {
  if (command.protocol != Protocol::kBinary)
    return answer(command, items_.touch(command.key, expiry_of(command.exptime)));
  auto fetched = items_.fetch(command.key, {.is_get = false, .expires_ms = expiry_of(command.exptime)});
  if (!fetched) return answer_error(command, fetched.error());
  if (!fetched->item.found()) return answer(command, Result::kNotFound);
  return reply([&](auto& to) { memcache::write_found(to, command, fetched->item.flags(), 0, fetched->cas); });
}

// At once, or at a given time.
base::Expected<void> MemcacheClient::flush(const Command& command) {
  if (!hub_.settings().takes_flush) return answer_refused(command, "CLIENT_ERROR flush_all not allowed");
  const uint64_t at_ms = expiry_of(command.exptime);
  const bool is_now = at_ms == kNever || at_ms == kEnded;
  auto flushed = is_now ? items_.flush() : items_.flush_at(at_ms);
  return flushed ? answer(command, Result::kDone) : answer_error(command, flushed.error());
}

}  // namespace server
