// RespClient: a client that speaks the Redis protocol, from its connection's first byte to its end.
//
// How the input is answered:
//  1 requests are parsed where they lie. A plain GET, or a SET without options, is only noted. Up to kTogether of the same kind make a group, which
//    is looked up, or set, together, with as many I/Os in flight. The group ends before any other request, before one that is not complete, and with
//    the input
//  2 any other request is executed behind the group, so that replies are in the order of the requests; between MULTI and EXEC it is queued
//    (resp_transactions.cc)
//  3 all of them are consumed
// A large argument does not go through the input: it has memory of its own until its request has been answered. One that is longer than a value may
// be is discarded as it arrives, so that its request can be refused: if the connection ended instead, a client that is still sending would not see an
// answer. Clients send long pipelines before they read the first answer, so requests are received even while there is no room for answers: as many
// bytes as one request may have.
//
// Outside of transactions a command of many keys (MGET, MSET, DEL) does each of them separately, so others may see some of them changed and some not
// yet; an MSETNX of more than one is a transaction. Whatever clients are told about the server is true, or left out; only numbers that clients need
// and nobody counts are told as 0.
//
// The commands are in resp_strings.cc, resp_keys.cc, resp_transactions.cc, resp_connection.cc and resp_administration.cc. To add one: a row in
// resp/commands.inc, and one in resp_commands.cc.
//
// Thread contract: used by the connection's task.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/clients/hub.h"
#include "server/clients/resp_answer.h"
#include "server/clients/together.h"
#include "server/resp/administration.h"
#include "server/resp/arguments.h"
#include "server/resp/request.h"
#include "server/resp/request_queue.h"

namespace server {

class RespClient {
 public:
  // All outlive the client.
  RespClient(Hub& hub, Connection& connection, Items& items);

  // Answers the client until it or the server ends the connection. Errors: the stream's error that ended it.
  base::Expected<void> serve();

 private:
  using Command = resp::Command;
  using Arguments = resp::Arguments;

  static constexpr size_t kLargeBytes = 8 << 10;            // arguments of this size and more are large
  static constexpr uint64_t kMaxAllLargeBytes = 64 << 20;   // of one request, unless a value may have more
  static constexpr uint64_t kMaxArgumentBytes = 512 << 20;  // as in Redis: a longer one ends the connection
  static constexpr size_t kSkippedBytes = 64 << 10;         // of one that is discarded, at a time
  static constexpr size_t kKeysInTurn = 64;                 // then the worker's other tasks run
  // A GET or SET that is noted.
  struct Noted {
    std::string_view key, value;  // of a GET both are the key
  };
  // The watched keys, and the versions that their items had then; 0: there was none.
  using Watched = std::map<std::string, uint64_t, std::less<>>;
  struct Transaction {
    bool is_begun = false;    // by MULTI
    bool is_refused = false;  // one of its requests was; so EXEC will be
    resp::RequestQueue requests = {};
    Watched watched = {};
    uint64_t watched_bytes = 0;
  };

  // --- resp_client.cc: what comes ---

  base::Expected<bool> execute_input();
  base::Expected<bool> take_large();
  base::Expected<bool> skip_large();
  bool is_plain(Arguments arguments) const;
  bool is_in_input(std::string_view argument) const;
  bool note();
  void note(Arguments arguments);
  void answer_noted();
  bool make_sets(std::span<const NewItem> items, bool answers_each);
  void answer_gets(std::span<const std::string_view> keys);
  void answer_get(std::string_view key);
  void execute(Arguments arguments);
  void reject(const resp::Refusal& refusal, Arguments arguments);
  resp::RequestLimits limits() const;
  // Also bounds all requests of a transaction, and its answers.
  uint64_t all_large_bytes_max() const {
    return std::max(kMaxAllLargeBytes, hub_.settings().value_bytes_max);
  }

  // What a parser has accepted; none: it has refused the request, and the refusal has been sent.
  template <class T>
  std::optional<T> accepted(const resp::Accepted<T>& parsed) {
    if (parsed) return *parsed;
    answer_.refuse(parsed.error());
    return std::nullopt;
  }
  // What a call of Items has returned; null: an error, which has been sent.
  template <class T>
  T* done(base::Expected<T>& result) {
    if (result) return &*result;
    answer_.failed(result.error());
    return nullptr;
  }
  bool done(const base::Expected<void>& result) {
    if (!result) answer_.failed(result.error());
    return result.has_value();
  }
  // To be called before the keys, or some keys, of a command with many, which may take minutes, or much CPU time: now and then it lets the worker's
  // other tasks run. False: the connection was killed. Nobody would read an answer, so the command need not go on, unless it is part of a
  // transaction.
  bool goes_on(size_t key_count = 1) {
    keys_in_turn_ += key_count;
    if (keys_in_turn_ >= kKeysInTurn) {
      keys_in_turn_ = 0;
      task::yield();
    }
    return is_in_transaction_ || !connection_.is_killed.load(std::memory_order_relaxed);
  }

  int64_t now_ms() const { return static_cast<int64_t>(items_.clock().now_ms()); }
  // Marks the item as used, unless the client has said CLIENT NO-TOUCH.
  base::Expected<Item> get(std::string_view key);
  // Never marks the item as used.
  base::Expected<Item> look(std::string_view key) { return fetch_quietly(key, {}); }
  base::Expected<Item> fetch_quietly(std::string_view key, std::optional<uint64_t> expires_ms);

  // --- resp_commands.cc: which of the functions below is for which command ---

  struct Handlers;
  void run(const Command& command, Arguments arguments);

  // --- resp_strings.cc ---

  void get_one(Arguments arguments);
  void set(const Command& command, Arguments arguments);
  void set_all(const Command& command, Arguments arguments);
  bool set_each(Arguments pairs);
  void set_all_if_absent(Arguments pairs);
  void set_if_absent(std::string_view key, std::string_view value);
  void get_all(Arguments arguments);
  void get_and_remove(Arguments arguments);
  void get_and_expire(const Command& command, Arguments arguments);
  void get_range(Arguments arguments);
  void set_range(Arguments arguments);
  void append(Arguments arguments);
  void string_length(Arguments arguments);
  void add(const Command& command, Arguments arguments);
  void add_float(Arguments arguments);

  // --- resp_keys.cc ---

  void remove(Arguments arguments);
  void count_present(const Command& command, Arguments arguments);
  void expire(const Command& command, Arguments arguments);
  void persist(Arguments arguments);
  void tell_expiry(const Command& command, Arguments arguments);
  void tell_type(Arguments arguments);
  void tell_object(const Command& command, Arguments arguments);
  void list_keys(Arguments arguments);
  void any_key();
  void scan(Arguments arguments);
  void count_keys();

  // --- resp_transactions.cc ---

  // Calls the function while all others wait, unless the client was killed before. What it answers is kept until they go on. REQUIRES:
  // !is_in_transaction_.
  template <class Function>
  void be_alone(const Function& function) {
    answer_.keep(all_large_bytes_max());
    {
      const Isolation::Alone alone(hub_.items().isolation());
      is_in_transaction_ = true;
      if (!connection_.is_killed.load(std::memory_order_relaxed)) function();
      is_in_transaction_ = false;
    }
    answer_.send_kept();
  }
  static bool is_queued(const Command& command);
  void queue(const Command& command, Arguments arguments);
  void begin_transaction();
  void execute_transaction();
  void execute_alone(const Transaction& transaction);
  base::Expected<bool> has_changed(const Watched& watched);
  void discard_transaction();
  Transaction end_transaction();
  void watch(Arguments arguments);
  void unwatch();

  // --- resp_connection.cc ---

  void ping(Arguments arguments);
  void echo(Arguments arguments);
  void authenticate(Arguments arguments);
  bool admit(const resp::Credentials& credentials);
  void set_authenticated(bool is_authenticated);
  void set_user(std::string_view user);
  void hello(Arguments arguments);
  void select(Arguments arguments);
  void quit();
  void reset();
  void name_client(std::string_view name);
  void set_name(Arguments arguments);
  void set_library(Arguments arguments);
  void set_replies(Arguments arguments);
  void set_no_evict(Arguments arguments);
  void set_no_touch(Arguments arguments);
  void tell_name();
  void tell_number();
  void tell_client();
  void list_clients(Arguments arguments);
  void kill_clients(Arguments arguments);
  std::string line_of(const Connection& connection) const;

  // --- resp_administration.cc ---

  void count_commands();
  void command_infos(Arguments arguments);
  void command_docs(Arguments arguments);
  void command_keys(Arguments arguments);
  void get_config(Arguments arguments);
  void set_config(Arguments arguments);
  void reset_counts();
  void refuse_debug();
  void flush(Arguments arguments);
  void info(Arguments arguments);
  void memory_usage(Arguments arguments);
  void save();
  void background_save(Arguments arguments);
  void tell_last_save();
  void shut_down(Arguments arguments);
  void tell_time();
  void wait(Arguments arguments);
  void help(const Command& command, Arguments arguments);

  Hub& hub_;
  Connection& connection_;
  Items& items_;
  Stream& stream_;
  RespAnswer answer_;
  RespScans::Caller scans_;
  resp::RequestParser parser_;
  bool is_authenticated_ = false;
  bool leaves_no_trace_ = false;  // CLIENT NO-TOUCH
  resp::Replies replies_ = resp::Replies::kOn;
  bool has_ended_ = false;  // nothing more is read; the replies so far are sent
  // How many bytes of the input the noted requests take.
  size_t parsed_bytes_ = 0;
  std::array<Noted, kTogether> noted_;
  size_t noted_count_ = 0;
  bool noted_are_sets_ = false;
  std::vector<Memory> large_;  // the large arguments of the request
  uint64_t large_bytes_ = 0;   // of all of them
  bool has_skipped_ = false;   // an argument of the request was too long, and is gone
  size_t keys_in_turn_ = 0;    // of goes_on()
  Transaction transaction_;
  bool is_in_transaction_ = false;  // one is being executed
};

}  // namespace server
