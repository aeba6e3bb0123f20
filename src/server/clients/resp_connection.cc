// Commands about this connection and others (resp_client.h).
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "server/clients/resp_client.h"
#include "server/clients/resp_info.h"
#include "server/resp/numbers.h"

namespace server {

using resp::Problem;
using resp::Protocol;
using resp::ReplyWriter;

namespace {

uint64_t seconds_between(uint64_t begin_ms, uint64_t end_ms) {
  return end_ms > begin_ms ? (end_ms - begin_ms) / 1000 : 0;
}

bool is_meant(const Connection& connection, const resp::ClientKillRequest& request) {
  return connection.speech == Speech::kResp && (!request.address || *request.address == connection.peer) &&
         (!request.own_address || *request.own_address == connection.own) &&
         (!request.id || static_cast<uint64_t>(*request.id) == connection.number) &&
         (!request.user || *request.user == connection.user) &&
         request.type.value_or(resp::ClientType::kNormal) == resp::ClientType::kNormal;
}

// `ids`: those of the request, sorted.
bool is_meant(const Connection& connection, const resp::ClientListRequest& request,
              std::span<const int64_t> ids) {
  if (connection.speech != Speech::kResp) return false;
  if (request.type) return *request.type == resp::ClientType::kNormal;
  return !request.ids || std::ranges::binary_search(ids, static_cast<int64_t>(connection.number));
}

}  // namespace

void RespClient::ping(Arguments arguments) {
  const auto message = accepted(resp::parse_ping(arguments));
  if (!message) return;
  if (*message) return answer_.bulk(**message);
  answer_.simple("PONG");
}

void RespClient::echo(Arguments arguments) { answer_.bulk(arguments[1]); }

// As in Redis: as long as there are no passwords, the default user is admitted with any password.
bool RespClient::admit(const resp::Credentials& credentials) {
  const std::string_view user = credentials.user;
  const bool is_admitted = hub_.settings().accounts.is_empty() ? user == Accounts::kDefaultUser
                                                               : hub_.admits(user, credentials.password);
  hub_.note_admission(is_admitted);
  if (!is_admitted) return false;
  set_user(user);
  set_authenticated(true);
  return true;
}

// From a client that has not authenticated no requests are received ahead.
void RespClient::set_authenticated(bool is_authenticated) {
  is_authenticated_ = is_authenticated;
  stream_.keep_ahead(is_authenticated ? hub_.settings().stream.input_bytes_max : 0);
}

void RespClient::set_user(std::string_view user) {
  hub_.change(connection_, [&](Connection& connection) { connection.user = user; });
}

void RespClient::authenticate(Arguments arguments) {
  const auto credentials = accepted(resp::parse_auth(arguments));
  if (!credentials) return;
  if (arguments.size() == 2 && hub_.settings().accounts.is_empty())
    return answer_.refuse(Problem::kNoPassword);
  if (!admit(*credentials)) return answer_.refuse(Problem::kWrongPassword);
  answer_.ok();
}

void RespClient::hello(Arguments arguments) {
  const auto request = accepted(resp::parse_hello(arguments));
  if (!request) return;
  if (request->credentials && !admit(*request->credentials)) return answer_.refuse(Problem::kWrongPassword);
  if (!is_authenticated_) return answer_.refuse(Problem::kHelloNoAuth);
  if (request->name) name_client(*request->name);
  answer_.protocol = request->protocol.value_or(answer_.protocol);
  answer_.write([&](ReplyWriter& reply) {
    reply.map(7);
    reply.bulk("server");
    reply.bulk("redis");
    reply.bulk("version");
    reply.bulk(kRedisVersion);
    reply.bulk("proto");
    reply.integer(reply.protocol() == Protocol::kResp3 ? 3 : 2);
    reply.bulk("id");
    reply.integer(static_cast<int64_t>(connection_.number));
    reply.bulk("mode");
    reply.bulk("standalone");
    reply.bulk("role");
    reply.bulk("master");
    reply.bulk("modules");
    reply.array(0);
  });
}

void RespClient::select(Arguments arguments) {
  if (accepted(resp::parse_select(arguments, 1))) answer_.ok();
}

void RespClient::quit() {
  has_ended_ = true;
  answer_.ok();
}

void RespClient::reset() {
  name_client("");
  set_user(Accounts::kDefaultUser);
  scans_.leave();
  end_transaction();
  answer_.protocol = Protocol::kResp2;
  answer_.is_silent = false;
  replies_ = resp::Replies::kOn;
  leaves_no_trace_ = false;
  set_authenticated(hub_.settings().accounts.is_empty());
  answer_.simple("RESET");
}

void RespClient::name_client(std::string_view name) {
  hub_.change(connection_, [&](Connection& connection) { connection.name = name; });
}

void RespClient::set_name(Arguments arguments) {
  const auto name = accepted(resp::parse_client_setname(arguments));
  if (!name) return;
  name_client(*name);
  answer_.ok();
}

void RespClient::set_library(Arguments arguments) {
  const auto fact = accepted(resp::parse_client_setinfo(arguments));
  if (!fact) return;
  hub_.change(connection_, [&](Connection& connection) {
    const bool is_name = fact->what == resp::LibraryFact::What::kName;
    (is_name ? connection.library : connection.library_version) = fact->text;
  });
  answer_.ok();
}

// OFF and SKIP are not answered themselves.
void RespClient::set_replies(Arguments arguments) {
  const auto replies = accepted(resp::parse_client_reply(arguments));
  if (!replies) return;
  // SKIP changes nothing while replies are off.
  if (*replies != resp::Replies::kSkipNext || replies_ == resp::Replies::kOn) replies_ = *replies;
  answer_.is_silent = replies_ != resp::Replies::kOn;
  answer_.ok();
}

void RespClient::set_no_evict(Arguments arguments) {
  if (accepted(resp::parse_client_switch(arguments))) answer_.ok();
}

void RespClient::set_no_touch(Arguments arguments) {
  const auto is_on = accepted(resp::parse_client_switch(arguments));
  if (!is_on) return;
  leaves_no_trace_ = *is_on;
  answer_.ok();
}

void RespClient::tell_name() {
  std::string name;
  hub_.change(connection_, [&](Connection& connection) { name = connection.name; });
  if (name.empty()) return answer_.null();
  answer_.bulk(name);
}

void RespClient::tell_number() { answer_.integer(static_cast<int64_t>(connection_.number)); }

// As in Redis 7.0, without what does not exist here; some clients refuse a line with fields newer than themselves. REQUIRES: the hub's lock is
// held.
std::string RespClient::line_of(const Connection& connection) const {
  const uint64_t now_ms = items_.clock().now_ms();
  const char* const command = connection.command.load(std::memory_order_relaxed);
  const auto number = [](uint64_t value) { return std::to_string(value); };
  std::string line = "id=" + number(connection.number);
  line += " addr=" + connection.peer + " laddr=" + connection.own + " name=" + connection.name;
  line += " age=" + number(seconds_between(connection.begun_ms, now_ms));
  line += " idle=" + number(seconds_between(connection.used_ms.load(std::memory_order_relaxed), now_ms));
  const int64_t queued = connection.queued.load(std::memory_order_relaxed);
  line += queued < 0 ? " flags=N" : " flags=x";
  line += " db=0 sub=0 psub=0 ssub=0 multi=" + std::to_string(queued) + " cmd=";
  line += *command == '\0' ? "NULL" : command;
  line += " user=" + connection.user + " lib-name=" + connection.library +
          " lib-ver=" + connection.library_version;
  return line + '\n';
}

void RespClient::tell_client() {
  std::string line;
  hub_.change(connection_, [&](Connection& connection) { line = line_of(connection); });
  answer_.text_for_people(line);
}

void RespClient::list_clients(Arguments arguments) {
  const auto request = accepted(resp::parse_client_list(arguments));
  if (!request) return;
  goes_on(kKeysInTurn);
  // There may be more than a hundred thousand ids, and no connection can come or go while the hub is searched.
  std::vector<int64_t> ids;
  if (request->ids)
    for (const std::string_view id : *request->ids) ids.push_back(*resp::parse_integer(id));
  std::ranges::sort(ids);
  std::string lines;
  hub_.for_each([&](const Connection& connection) {
    if (is_meant(connection, *request, ids)) lines += line_of(connection);
  });
  answer_.text_for_people(lines);
}

void RespClient::kill_clients(Arguments arguments) {
  const auto request = accepted(resp::parse_client_kill(arguments));
  if (!request) return;
  const size_t count = hub_.kill([&](const Connection& connection) {
    const bool is_own = &connection == &connection_;
    if (!is_meant(connection, *request) || (is_own && request->skips_own)) return false;
    has_ended_ = has_ended_ || is_own;
    return true;
  });
  // Not checked earlier: a user that no longer exists may still have had connections.
  if (count == 0 && request->user && *request->user != Accounts::kDefaultUser && !hub_.knows(*request->user))
    return answer_.refuse(resp::Refusal{Problem::kNoSuchUser, *request->user});
  if (!request->answers_ok) return answer_.integer(static_cast<int64_t>(count));
  if (count == 0) return answer_.refuse(Problem::kNoSuchClient);
  answer_.ok();
}

}  // namespace server
