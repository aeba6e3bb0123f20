// RespClient: a client that speaks the Redis protocol, from its connection's first byte to its end.
//
// How what has come is answered
//  1 requests are parsed where they lie in the input. As long as they are plain GETs, or SETs without options, they are only noted, up to
//    kTogether, and are looked up, or made, together then: that many I/Os at a time. Any other request, one that is not complete, and the end
//    of the input end the group
//  2 another request is executed behind the group: replies are in the order of requests
//  3 both go from the input
// A large argument goes to memory of its own, past the input, until its request has been answered.
//
// Many keys (MGET, MSET, DEL) are each for itself: others may see some of them changed and some not yet. So MSETNX of more than one is
// refused. All that is told of the server is true, or left out; what nobody counts, and clients do not do without, is 0.
//
// The commands: resp_strings.cc, resp_keys.cc, resp_connection.cc, resp_administration.cc. To add one: a row in resp/commands.inc, and its case in
// run().
//
// Thread contract: of the connection's task.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "server/clients/hub.h"
#include "server/clients/resp_answer.h"
#include "server/clients/together.h"
#include "server/resp/administration.h"
#include "server/resp/arguments.h"
#include "server/resp/request.h"

namespace server {

class RespClient {
 public:
  // All outlive it.
  RespClient(Hub& hub, Connection& connection, Items& items);

  // Requests are executed and answered until the client or the server ends the connection. Errors: those of the stream that ended it.
  base::Expected<void> serve();

 private:
  using Command = resp::Command;
  using Arguments = resp::Arguments;

  static constexpr size_t kLargeBytes = 8 << 10;            // arguments of so many are large
  static constexpr uint64_t kAllLargeBytesMost = 64 << 20;  // in one request, or what one value may have
  // Of the input.
  struct Place {
    size_t offset = 0;
    size_t bytes = 0;
  };
  // A request that waits for others like it.
  struct Noted {
    Place key, value;  // of a SET
  };

  // --- resp_client.cc: what comes ---

  base::Expected<bool> execute_input();
  base::Expected<bool> take_large();
  bool note();
  std::optional<Place> place_of(std::string_view argument) const;
  std::string_view text_at(const Place& place) const {
    return stream_.input().substr(place.offset, place.bytes);
  }
  void answer_noted();
  bool make_sets(std::span<const NewItem> items, bool answers_each);
  void answer_gets(std::span<const std::string_view> keys);
  void answer_get(std::string_view key);
  void execute(Arguments arguments);
  void run(const Command& command, Arguments arguments);
  resp::RequestLimits limits() const;

  // What a parser has accepted, or none: it was refused, and that is answered.
  template <class T>
  std::optional<T> accepted(const resp::Accepted<T>& parsed) {
    if (parsed) return *parsed;
    answer_.refuse(parsed.error());
    return std::nullopt;
  }
  // The same of a call of Items.
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
  // Else it was killed: nobody hears an answer, and many keys may take minutes.
  bool is_heard() const { return !connection_.is_killed.load(std::memory_order_relaxed); }

  int64_t now_ms() const { return static_cast<int64_t>(items_.clock().now_ms()); }
  // For a reply; the client has said whether that counts as used.
  base::Expected<Item> get(std::string_view key);
  // As it is, whatever the client has said.
  base::Expected<Item> look(std::string_view key) { return fetch_quietly(key, {}); }
  base::Expected<Item> fetch_quietly(std::string_view key, std::optional<uint64_t> expires_ms);

  // --- resp_strings.cc ---

  void set(const Command& command, Arguments arguments);
  void set_all(const Command& command, Arguments arguments);
  void set_if_absent(Arguments pairs);
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
  void count_present(Arguments arguments, bool marks_used);
  void expire(const Command& command, Arguments arguments);
  void persist(Arguments arguments);
  void tell_expiry(const Command& command, Arguments arguments);
  void tell_type(Arguments arguments);
  void tell_object(const Command& command, Arguments arguments);
  void list_keys(Arguments arguments);
  void any_key();
  void scan(Arguments arguments);
  void count_keys();

  // --- resp_connection.cc ---

  void ping(Arguments arguments);
  void authenticate(Arguments arguments);
  bool admit(const resp::Credentials& credentials);
  void set_user(std::string_view user);
  void hello(Arguments arguments);
  void reset();
  void name_client(std::string_view name);
  void set_library(Arguments arguments);
  void set_replies(Arguments arguments);
  void set_no_touch(Arguments arguments);
  void tell_name();
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
  void flush(Arguments arguments);
  void info(Arguments arguments);
  void memory_usage(Arguments arguments);
  void background_save(Arguments arguments);
  void shut_down(Arguments arguments);
  void tell_time();
  void wait(Arguments arguments);
  void help(const Command& command);

  Hub& hub_;
  Connection& connection_;
  Items& items_;
  Stream& stream_;
  RespAnswer answer_;
  RespScans::Caller scans_;
  resp::RequestParser parser_;
  bool is_authenticated_;
  bool leaves_no_trace_ = false;  // CLIENT NO-TOUCH
  resp::Replies replies_ = resp::Replies::kOn;
  bool has_ended_ = false;  // nothing more is read; what was answered is sent
  // The beginning of the input that has been parsed: what is noted, and what is answered with nothing.
  size_t parsed_bytes_ = 0;
  std::array<Noted, kTogether> noted_;
  size_t noted_count_ = 0;
  bool noted_are_sets_ = false;
  std::vector<Memory> large_;  // arguments of the request
  uint64_t large_bytes_ = 0;
};

}  // namespace server
