#include "server/clients/resp_client.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "server/resp/words.h"
#include "task/scheduler.h"

namespace server {

using resp::Parsed;
using resp::Problem;

RespClient::RespClient(Hub& hub, Connection& connection, Items& items)
    : hub_(hub),
      connection_(connection),
      items_(items),
      stream_(*connection.stream),
      answer_(stream_, items),
      scans_(hub.scans, connection.worker, items) {
  set_authenticated(hub.settings().accounts.is_empty());
}

base::Expected<void> RespClient::serve() {
  for (bool goes_on = true; goes_on;) {
    auto received = stream_.receive();
    if (!received) return std::unexpected(received.error());
    if (!*received) break;
    connection_.used_ms.store(items_.clock().now_ms(), std::memory_order_relaxed);
    auto executed = execute_input();
    if (!executed) return std::unexpected(executed.error());
    goes_on = *executed;
  }
  return stream_.send();
}

resp::RequestLimits RespClient::limits() const {
  return {.bulk_bytes_max = std::max(kMaxArgumentBytes, hub_.settings().value_bytes_max),
          .large_bytes = kLargeBytes,
          .input_bytes_max = hub_.settings().stream.input_bytes_max,
          .is_authenticated = is_authenticated_};
}

// Executes all requests that have come. False: the connection is to end.
base::Expected<bool> RespClient::execute_input() {
  for (;;) {
    const Parsed parsed = parser_.parse(stream_.input().substr(parsed_bytes_), limits());
    if (parsed == Parsed::kRequest && note()) {
      if (!answer_.result()) return std::unexpected(answer_.result().error());
      continue;
    }
    answer_noted();
    size_t used_bytes = parsed_bytes_;
    parsed_bytes_ = 0;
    if (parsed == Parsed::kRequest) execute(parser_.arguments());
    if (parsed == Parsed::kRequest || parsed == Parsed::kNothing) used_bytes += parser_.bytes();
    stream_.consume(used_bytes);
    if (parsed == Parsed::kRequest) {
      large_.clear();
      large_bytes_ = 0;
      has_skipped_ = false;
    }
    if (parsed == Parsed::kLarge)
      if (auto taken = take_large(); !taken || !*taken) return taken;
    if (parsed == Parsed::kError) {
      answer_.is_silent = replies_ != resp::Replies::kOn;
      answer_.error(parser_.error());
      has_ended_ = true;
    }
    if (!answer_.result()) return std::unexpected(answer_.result().error());
    if (has_ended_) return false;
    if (connection_.is_killed.load(std::memory_order_relaxed)) {
      stream_.drop_output();
      return false;
    }
    if (parsed == Parsed::kMore) return true;
  }
}

// Receives a large argument, which begins in the input. False: the connection is to end.
base::Expected<bool> RespClient::take_large() {
  const uint64_t bytes = parser_.large_bytes();
  if (bytes > hub_.settings().value_bytes_max) return skip_large();
  large_bytes_ += bytes;
  if (large_bytes_ > all_large_bytes_max()) {
    answer_.error("ERR Protocol error: too big request");
    return false;
  }
  Memory memory;
  const size_t with_end_bytes = bytes + resp::kLineEnd.size();
  if (auto taken = memory.take(stream_.pool(), with_end_bytes); !taken) {
    answer_.failed(taken.error());
    return false;
  }
  auto received = stream_.receive_into(parser_.bytes(), memory.bytes().first(with_end_bytes));
  if (!received || !*received) return received;
  parser_.take(kv::text_of(memory.bytes().first(bytes)));
  large_.push_back(std::move(memory));
  return true;
}

// Receives and discards a large argument that is too long.
base::Expected<bool> RespClient::skip_large() {
  Memory memory;
  if (auto taken = memory.take(stream_.pool(), kSkippedBytes); !taken) {
    answer_.failed(taken.error());
    return false;
  }
  for (uint64_t left = parser_.large_bytes() + resp::kLineEnd.size(); left > 0;) {
    const std::span part = memory.bytes().first(std::min<uint64_t>(left, kSkippedBytes));
    auto received = stream_.receive_into(parser_.bytes(), part);
    if (!received || !*received) return received;
    left -= part.size();
    task::yield();  // it may arrive as fast as it is discarded
  }
  parser_.take({});
  has_skipped_ = true;
  return true;
}

// Is it a GET or SET that may wait to be grouped with others?
bool RespClient::is_plain(Arguments arguments) const {
  if (replies_ != resp::Replies::kOn) return false;
  return (arguments.size() == 2 && !leaves_no_trace_ && resp::is_word(arguments[0], "get")) ||
         (arguments.size() == 3 && resp::is_word(arguments[0], "set"));
}

// False: it lies elsewhere, since it is large or of an inline command, and may be gone when the next request is parsed.
bool RespClient::is_in_input(std::string_view argument) const {
  const std::string_view input = stream_.input();
  const std::less<const char*> is_before;
  return !is_before(argument.data(), input.data()) && is_before(argument.data(), input.data() + input.size());
}

// Notes the request that has come, if it may be grouped with others; else returns false.
bool RespClient::note() {
  const Arguments arguments = parser_.arguments();
  if (!is_plain(arguments) || !is_authenticated_ || transaction_.is_begun) return false;
  if (!is_in_input(arguments[1]) || !is_in_input(arguments.back())) return false;
  answer_.is_silent = false;
  parsed_bytes_ += parser_.bytes();
  connection_.note_request(arguments.size() == 3 ? "set" : "get");
  note(arguments);
  return true;
}

// REQUIRES: it is plain, and its arguments stay until it is answered.
void RespClient::note(Arguments arguments) {
  const bool is_set = arguments.size() == 3;
  if (noted_are_sets_ != is_set) answer_noted();
  noted_are_sets_ = is_set;
  noted_[noted_count_++] = {.key = arguments[1], .value = arguments.back()};
  if (noted_count_ == kTogether) answer_noted();
}

void RespClient::answer_noted() {
  if (noted_count_ == 0) return;
  if (noted_are_sets_) {
    NewItem items[kTogether];
    for (size_t i = 0; i < noted_count_; ++i)
      items[i] = {.key = noted_[i].key, .value = kv::bytes_of(noted_[i].value)};
    make_sets({items, noted_count_}, true);
  } else {
    std::string_view keys[kTogether];
    for (size_t i = 0; i < noted_count_; ++i) keys[i] = noted_[i].key;
    answer_gets({keys, noted_count_});
  }
  noted_count_ = 0;
}

// Sets all items. Answers each, or without answers_each only the first one that was not set. False: one was not set.
bool RespClient::make_sets(std::span<const NewItem> items, bool answers_each) {
  bool all = true;
  set_together(items_, stream_.pool(), items, [&](base::Expected<Done>& result) {
    const Done* const set = all || answers_each ? done(result) : nullptr;
    const bool is_set = set != nullptr && set->outcome == Outcome::kDone;
    if (set != nullptr && !is_set) answer_.refuse(Problem::kTooLong);
    if (is_set && answers_each) answer_.ok();
    all = all && is_set;
  });
  return all;
}

void RespClient::answer_get(std::string_view key) {
  auto found = get(key);
  if (Item* const item = done(found)) answer_.value(std::move(*item));
}

void RespClient::answer_gets(std::span<const std::string_view> keys) {
  look_up_together(items_, keys, [&](base::Expected<Item>& found) {
    if (Item* const item = done(found)) answer_.value(std::move(*item));
  });
}

base::Expected<Item> RespClient::fetch_quietly(std::string_view key, std::optional<uint64_t> expires_ms) {
  auto fetched = items_.fetch(key, {.leaves_no_trace = true, .expires_ms = expires_ms});
  if (!fetched) return std::unexpected(fetched.error());
  return std::move(fetched->item);
}

base::Expected<Item> RespClient::get(std::string_view key) {
  return leaves_no_trace_ ? look(key) : items_.get(key);
}

void RespClient::execute(Arguments arguments) {
  answer_.is_silent = replies_ != resp::Replies::kOn;
  if (replies_ == resp::Replies::kSkipNext) replies_ = resp::Replies::kOn;
  const auto found = resp::find_command(arguments);
  if (!found) {
    has_ended_ = found.error().problem == Problem::kHttp;
    return reject(found.error(), arguments);
  }
  const Command& command = **found;
  connection_.note_request(command.name.data());
  if (!is_authenticated_ && !command.is(resp::kNoAuth)) return reject({Problem::kNoAuth}, arguments);
  if (transaction_.is_begun && command.is(resp::kNoMulti)) return reject({Problem::kNotInMulti}, arguments);
  if (has_skipped_) return reject({Problem::kTooLong}, arguments);
  if (transaction_.is_begun && is_queued(command)) return queue(command, arguments);
  run(command, arguments);
}

// Refuses a request without looking into it, and with it the transaction that it may be part of. An EXEC also ends the
// transaction.
void RespClient::reject(const resp::Refusal& refusal, Arguments arguments) {
  transaction_.is_refused = transaction_.is_begun;
  if (!resp::is_word(arguments[0], "exec")) return answer_.refuse(refusal, arguments);
  end_transaction();
  answer_.refuse(refusal.problem == Problem::kNoAuth ? Problem::kExecNoAuth : Problem::kExecArity);
}

}  // namespace server
