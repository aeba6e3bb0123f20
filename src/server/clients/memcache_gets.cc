// How a MemcacheClient answers gets.
#include <algorithm>
#include <utility>

#include "server/clients/memcache_client.h"
#include "server/memcache/binary_reply.h"
#include "server/memcache/messages.h"
#include "server/memcache/text_reply.h"

namespace server {
namespace {

using memcache::Protocol;
using memcache::Verb;

std::string_view end_of(const memcache::Command& command) {
  return command.protocol == Protocol::kBinary ? "" : "\r\n";
}

// What a reply may say of an item that was only looked up.
memcache::MetaItem meta_of(const Item& item, uint64_t now_ms) {
  return {.value_bytes = item.value_bytes(),
          .flags = item.flags(),
          .cas = item.cas(),
          .seconds_left = seconds_left(item.expires_ms(), now_ms),
          .is_stale = item.marks().is_stale,
          .was_won = item.marks().is_claimed};
}

}  // namespace

// A get that changes nothing, and asks for nothing that only Items::fetch() knows.
bool MemcacheClient::is_plain_get(const Command& command) {
  if (command.verb != Verb::kGet) return false;
  if (command.protocol != Protocol::kMeta) return true;
  return !command.has_exptime && !command.creates && !command.meta.has('R') && !command.meta.has('u') &&
         !command.meta.has('h') && !command.meta.has('l') && !command.meta.has('b');
}

void MemcacheClient::add_keys(const Command& command) {
  if (command.protocol != Protocol::kClassic) {
    asked_.push_back({.command = command, .key = command.key});
    return;
  }
  memcache::Words keys = command.keys;
  for (std::string_view key; !(key = keys.next()).empty();)
    asked_.push_back({.command = command, .key = key});
  // The last part of a line may have no keys.
  if (command.is_last) asked_.push_back({.command = command, .key = {}, .ends_command = true});
}

// Answers all gets at the front of the input that have arrived whole.
base::Expected<MemcacheClient::Next> MemcacheClient::take_gets(const Command& first, size_t first_bytes) {
  asked_.clear();
  add_keys(first);
  const size_t used =
      take_more(first_bytes, {"get ", "gets ", "mg "}, asked_, [&](const Command& command, size_t line_end) {
        if (!is_plain_get(command)) return size_t{0};
        add_keys(command);
        return line_end;
      });
  if (auto answered = answer_gets(); !answered) return std::unexpected(answered.error());
  asked_.clear();
  stream_.consume(used);
  return Next::kGoesOn;
}

base::Expected<void> MemcacheClient::answer_gets() {
  for (size_t next = 0; next < asked_.size();) {
    std::string_view keys[kTogether];
    size_t count = 0;
    for (size_t i = next; i < asked_.size() && count < kTogether; ++i)
      if (!asked_[i].ends_command) keys[count++] = asked_[i].key;
    base::Expected<void> written = end_gets(next);
    look_up_together(items_, {keys, count}, [&](base::Expected<Item>& found) {
      if (!written) return;
      const Asked& asked = asked_[next++];
      if (!get_has_failed_) written = answer_get(asked, found);
      if (written) written = end_gets(next);
    });
    if (!written) return written;
  }
  return {};
}

// Sends END for the commands that end from `next` on, up to the next key.
base::Expected<void> MemcacheClient::end_gets(size_t& next) {
  for (; next < asked_.size() && asked_[next].ends_command; ++next)
    if (auto written = end_get(); !written) return written;
  return {};
}

// Sends nothing after an error, which clients take for the end.
base::Expected<void> MemcacheClient::end_get() {
  if (std::exchange(get_has_failed_, false)) return {};
  return write_line(memcache::messages::kEnd);
}

void MemcacheClient::note_fetched(std::string_view key, const Item& item) {
  hub_.prefixes.got(key, item.found());
  tell_fetched(key, item);
}

// Tells watchers.
void MemcacheClient::tell_fetched(std::string_view key, const Item& item) {
  hub_.watchers.tell_fetched(key, item.found(), item.found() ? item.value_bytes() : 0, connection_.number);
}

base::Expected<void> MemcacheClient::answer_get(const Asked& asked, base::Expected<Item>& found) {
  const Command& command = asked.command;
  if (!found) return answer_error(command, found.error());
  note_fetched(asked.key, *found);
  if (!found->found()) return answer_miss(command);
  // Some client has to store it anew, perhaps this one: that is decided under the item's lock.
  if (command.protocol == Protocol::kMeta && found->marks() != Marks{})
    return fetch(command, asked.key, true);
  const auto meta = meta_of(*found, items_.clock().now_ms());
  return answer_found(command, asked.key, std::move(*found), meta);
}

base::Expected<void> MemcacheClient::answer_miss(const Command& command) {
  if (command.protocol == Protocol::kClassic) return {};
  return answer(command, Result::kNotFound);
}

base::Expected<void> MemcacheClient::answer_found(const Command& command, std::string_view key, Item&& item,
                                                  const memcache::MetaItem& meta) {
  const uint64_t value_bytes = item.value_bytes();
  const bool has_value =
      command.protocol != Protocol::kMeta || memcache::answers_with_value(command, Result::kDone);
  if (has_value) {
    auto begun = stream_.begin_value(items_, item, 0, value_bytes);
    if (!begun) return answer_error(command, begun.error());
    if (!*begun) return answer_miss(command);
  }
  switch (command.protocol) {
    case Protocol::kClassic: {
      const auto cas = command.wants_cas ? std::optional(meta.cas) : std::nullopt;
      auto written =
          reply([&](auto& to) { memcache::write_value_line(to, key, item.flags(), value_bytes, cas); });
      if (!written) return written;
      break;
    }
    case Protocol::kBinary: {
      auto written =
          reply([&](auto& to) { memcache::write_found(to, command, item.flags(), value_bytes, meta.cas); });
      if (!written) return written;
      break;
    }
    case Protocol::kMeta: {
      auto written = reply([&](auto& to) { memcache::write_meta(to, command, Result::kDone, meta); });
      if (!written || !has_value) return written;
      break;
    }
  }
  return stream_.write_value(items_, std::move(item), end_of(command));
}

// A get that may do all that Items::fetch() does. `is_noted`: the get has been counted already, by a look-up before this one.
base::Expected<void> MemcacheClient::fetch(const Command& command, std::string_view key, bool is_noted) {
  FetchOptions options = {.is_get = !is_noted,
                          .leaves_no_trace = command.meta.has('u'),
                          .own_cas = command.own_cas,
                          .claims_stale = command.protocol == Protocol::kMeta};
  if (command.verb == Verb::kGat || command.has_exptime) options.expires_ms = expiry_of(command.exptime);
  if (command.creates) options.makes_until_ms = expiry_after(command, true, command.has_exptime, kNever);
  if (command.meta.has('R')) {
    options.claims_before_ms = expiry_of(command.meta.recache_exptime);
    options.claims_by_new_expiry = !command.meta.claims_before_touch();
  }
  auto fetched = items_.fetch(key, options);
  if (!fetched) return answer_error(command, fetched.error());
  if (!is_noted) note_fetched(key, fetched->item);
  if (!fetched->item.found() && !fetched->is_made) return answer_miss(command);
  memcache::MetaItem meta = meta_of(fetched->item, items_.clock().now_ms());
  meta.cas = fetched->cas;
  const uint64_t told_ms =
      told_expiry(command, fetched->is_made, fetched->item.expires_ms(), fetched->expires_ms);
  meta.seconds_left = seconds_left(told_ms, items_.clock().now_ms());
  meta.idle_seconds = fetched->facts.idle_s;
  meta.was_used = fetched->facts.was_used;
  meta.is_won = fetched->has_claimed;
  if (fetched->item.found()) return answer_found(command, key, std::move(fetched->item), meta);
  auto written = reply([&](auto& to) { memcache::write_meta(to, command, Result::kCreated, meta); });
  if (!written || !memcache::answers_with_value(command, Result::kCreated)) return written;
  return stream_.write("\r\n");
}

// me: reports what is known of an item.
base::Expected<void> MemcacheClient::show(const Command& command) {
  auto fetched = items_.fetch(command.key, {.is_get = false});
  if (!fetched) return answer_error(command, fetched.error());
  if (!fetched->item.found()) return reply([&](auto& to) { memcache::write_meta_debug_miss(to); });
  memcache::MetaItem meta = meta_of(fetched->item, items_.clock().now_ms());
  meta.idle_seconds = fetched->facts.idle_s;
  meta.was_used = fetched->facts.was_used;
  return reply([&](auto& to) { memcache::write_meta_debug(to, command, meta); });
}

}  // namespace server
