// MemcacheClient: one connection that speaks memcached's protocols, from its first byte to its end.
//
//   input ──parser──► command ──► Items ──► reply, value ──► output
//
//  1 if clients have to authenticate, nothing is done for one that has not. A binary client that asks for something else first is cut off
//  2 commands are executed and answered in their order. Consecutive gets are looked up together, up to kTogether keys; sets whose values have
//    arrived are executed together, too
//  3 a value that fits the input is used where it lies there; a longer one gets memory of its own
//  4 a command refers to the input, so nothing is received between its parsing and its answer. If its value is still to come, its line is copied, or
//    parsed again in its new place
//
// Thread contract: used by the connection's task.
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "server/clients/hub.h"
#include "server/clients/together.h"
#include "server/items/items.h"
#include "server/memcache/binary.h"
#include "server/memcache/credentials.h"
#include "server/memcache/meta_reply.h"
#include "server/memcache/result.h"
#include "server/memcache/text.h"

namespace server {

class MemcacheClient {
 public:
  // All outlive the client; the items are those of the worker.
  MemcacheClient(Hub& hub, Connection& connection, Items& items);
  MemcacheClient(const MemcacheClient&) = delete;
  MemcacheClient& operator=(const MemcacheClient&) = delete;

  // Answers the client until it or the server ends the connection. Errors: the stream's error that ended it.
  base::Expected<void> serve();

 private:
  using Command = memcache::Command;
  using Parsed = memcache::Parsed;
  using Result = memcache::Result;
  enum class Next : uint8_t { kGoesOn, kNeedsMore, kEnds };
  // A key of a get that is looked up together with others; or, with ends_command, the end of a classic get.
  struct Asked {
    Command command;  // of a classic get: what all its keys share
    std::string_view key;
    bool ends_command = false;  // there is no key, and END is to be sent
  };

  // A set that is executed together with others.
  struct Stored {
    Command command;
    kv::Bytes value;
  };

  // The flow (memcache_client.cc).
  Parsed parse(std::string_view input, Command& command);
  base::Expected<Next> take_one();
  base::Expected<Next> refuse(const Command& command, const Parsed& parsed);
  base::Expected<Next> take_credentials();
  bool admit(const memcache::Credentials& credentials);
  bool may_ask(const Parsed& parsed, const Command& command) const;
  base::Expected<bool> receive_value(Command& command, size_t& used_bytes, kv::Bytes& value);
  base::Expected<void> execute(Command& command, kv::Bytes value);
  // memcached's name for the command, a static string; "other" for rare ones.
  static const char* name_of(const Command& command);
  void note(const Command& command);
  uint64_t expiry_of(int64_t exptime) const;
  uint64_t expiry_after(const Command& command, bool makes, bool touches, uint64_t former_ms) const;
  uint64_t told_expiry(const Command& command, bool is_made, uint64_t former_ms, uint64_t expires_ms) const;

  // How much follows the command's line: its value, and in text the line end behind it.
  size_t block_bytes(const Command& command) const {
    return command.value_bytes + (is_binary_ ? 0 : memcache::kBlockEndBytes);
  }
  static bool begins_with_line(std::string_view input, std::initializer_list<std::string_view> names);
  template <class Taken, class Take>
  size_t take_more(size_t used_bytes, std::initializer_list<std::string_view> names,
                   const std::vector<Taken>& taken, const Take& take);

  // Gets (memcache_gets.cc).
  static bool is_plain_get(const Command& command);
  base::Expected<Next> take_gets(const Command& first, size_t first_bytes);
  void add_keys(const Command& command);
  void note_fetched(std::string_view key, const Item& item);
  void tell_fetched(std::string_view key, const Item& item);
  base::Expected<void> answer_gets();
  base::Expected<void> end_gets(size_t& next);
  base::Expected<void> end_get();
  base::Expected<void> answer_get(const Asked& asked, base::Expected<Item>& found);
  base::Expected<void> fetch(const Command& command, std::string_view key, bool is_noted = false);
  base::Expected<void> answer_found(const Command& command, std::string_view key, Item&& item,
                                    const memcache::MetaItem& meta);
  base::Expected<void> answer_miss(const Command& command);
  base::Expected<void> show(const Command& command);

  // Changes (memcache_changes.cc).
  static bool is_plain_set(const Command& command);
  std::optional<kv::Bytes> value_there(const Command& command, size_t line_end) const;
  base::Expected<Next> take_sets(const Command& first, size_t first_bytes, kv::Bytes value);
  void note_storing(const Command& command);
  void note_stored(const Command& command, const base::Expected<Done>& done);
  base::Expected<void> answer_sets();
  base::Expected<void> store(const Command& command, kv::Bytes value);
  base::Expected<void> remove(const Command& command);
  base::Expected<void> add(const Command& command);
  base::Expected<void> touch(const Command& command);
  base::Expected<void> flush(const Command& command);
  base::Expected<void> answer(const Command& command, Result result, const memcache::MetaItem& meta = {});
  base::Expected<void> answer(const Command& command, const base::Expected<Done>& done);
  base::Expected<void> answer_error(const Command& command, const base::Error& error);
  base::Expected<void> answer_refused(const Command& command, std::string_view why);

  // Commands about the server (memcache_stats.cc).
  base::Expected<void> answer_stats(const Command& command);
  base::Expected<void> answer_detail(std::string_view what);
  base::Expected<void> move_time(std::string_view seconds);
  base::Expected<void> answer_sasl(const Command& command);
  base::Expected<void> begin_watch(std::string_view kinds);
  base::Expected<void> watch();
  base::Expected<void> administer(const Command& command);
  base::Expected<void> write_line(std::string_view line);

  template <class Write>
  base::Expected<void> reply(Write write);

  Hub& hub_;
  Connection& connection_;
  Stream& stream_;
  Items& items_;
  bool is_known_ = false, is_binary_ = false;  // which protocol the client speaks, from its first byte on
  bool is_admitted_;                           // the client has said who it is, or need not
  bool ends_ = false;                          // the connection ends when all has been sent
  unsigned watched_ = 0;  // a sum of Watchers::Kind; not 0: the client only watches from now on
  memcache::TextParser text_;
  std::string line_;  // the line of a command whose value does not fit the input
  Memory value_;      // that value
  std::vector<Asked> asked_;
  bool get_has_failed_ = false;  // an error has ended the reply to the classic get that is being answered
  std::vector<Stored> stored_;
};

// Parses the commands in the input behind `used_bytes` as long as they are whole, in text have one of the names, and take(command, the end of its
// line in the input) accepts them: it returns where the command ends, or 0 to refuse it. Returns how many bytes of the input all of them use.
template <class Taken, class Take>
size_t MemcacheClient::take_more(size_t used_bytes, std::initializer_list<std::string_view> names,
                                 const std::vector<Taken>& taken, const Take& take) {
  while (taken.size() < kTogether && used_bytes < stream_.input().size()) {
    // A line that is refused, or another command, will be parsed again: parsing a whole line leaves no state in the parser.
    const std::string_view rest = stream_.input().substr(used_bytes);
    if (!is_binary_ && !(text_.is_at_line() && begins_with_line(rest, names))) break;
    Command command;
    const Parsed parsed = parse(rest, command);
    const size_t end =
        parsed.outcome == memcache::Outcome::kCommand ? take(command, used_bytes + parsed.consumed_bytes) : 0;
    if (end == 0) break;
    note(command);
    used_bytes = end;
  }
  return used_bytes;
}

// Writes a reply of at most kMaxReplyBytes bytes: `write` is called with a ReplyBuffer.
template <class Write>
base::Expected<void> MemcacheClient::reply(Write write) {
  auto room = stream_.room(memcache::kMaxReplyBytes);
  if (!room) return std::unexpected(room.error());
  memcache::ReplyBuffer buffer(*room);
  write(buffer);
  stream_.wrote(buffer.written().size());
  return {};
}

}  // namespace server
