// Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH (resp_client.h).
//
// How a transaction is carried out:
//  1 from MULTI on requests are queued, as copies. If one cannot be queued, such as an unknown command, EXEC will be refused
//  2 EXEC waits until its task has all items to itself (items/isolation.h)
//  3 if a watched key has another item than when it was watched, nothing is done. Each change gives an item another version, even one that stores
//    the same value, or only another expiry; a key without an item then and now counts as unchanged
//  4 the requests are carried out in their order. If one fails, the others are carried out nevertheless. Answers are kept: a client that is slow to
//    take them would hold everybody up
//  5 the others go on, and the answers are sent
//
// From 4 on it runs to its end, whatever becomes of the client. Each change is written separately, so after a crash some may be there and some not.
#include <utility>

#include "server/clients/resp_client.h"

namespace server {

using resp::CommandId;
using resp::Problem;

// The other commands are executed at once, even between MULTI and EXEC.
bool RespClient::is_queued(const Command& command) {
  switch (command.id) {
    case CommandId::kDiscard:
    case CommandId::kExec:
    case CommandId::kMulti:
    case CommandId::kQuit:
    case CommandId::kReset:
    case CommandId::kWatch: return false;
    default: return true;
  }
}

// Of a transaction that will be refused nothing more is kept.
void RespClient::queue(const Command& command, Arguments arguments) {
  if (!transaction_.is_refused && !transaction_.requests.add(command, arguments, all_large_bytes_max())) {
    transaction_.is_refused = true;
    return answer_.error("ERR the transaction is too large");
  }
  connection_.queued.store(static_cast<int64_t>(transaction_.requests.count()), std::memory_order_relaxed);
  answer_.simple("QUEUED");
}

void RespClient::begin_transaction() {
  if (transaction_.is_begun) return answer_.refuse(Problem::kNestedMulti);
  transaction_.is_begun = true;
  connection_.queued.store(0, std::memory_order_relaxed);
  answer_.ok();
}

// Returns the transaction; the client then has none, and watches nothing.
RespClient::Transaction RespClient::end_transaction() {
  connection_.queued.store(-1, std::memory_order_relaxed);
  return std::exchange(transaction_, {});
}

void RespClient::discard_transaction() {
  if (!transaction_.is_begun) return answer_.refuse(Problem::kDiscardWithoutMulti);
  end_transaction();
  answer_.ok();
}

void RespClient::execute_transaction() {
  if (!transaction_.is_begun) return answer_.refuse(Problem::kExecWithoutMulti);
  const Transaction transaction = end_transaction();
  if (transaction.is_refused) return answer_.refuse(Problem::kDiscarded);
  be_alone([&] { execute_alone(transaction); });
}

void RespClient::execute_alone(const Transaction& transaction) {
  const auto changed = has_changed(transaction.watched);
  if (!changed) return answer_.failed(changed.error());
  if (*changed) return answer_.null_array();
  answer_.array(transaction.requests.count());
  transaction.requests.for_each([&](const Command& command, Arguments arguments) {
    goes_on();
    if (is_plain(arguments)) return note(arguments);
    answer_noted();
    run(command, arguments);
  });
  answer_noted();
}

base::Expected<bool> RespClient::has_changed(const Watched& watched) {
  for (const auto& [key, version] : watched) {
    const auto item = items_.look(key);
    if (!item) return std::unexpected(item.error());
    if (item->version() != version) return true;
  }
  return false;
}

// A key that is watched again has to stay as it was the first time.
void RespClient::watch(Arguments arguments) {
  if (transaction_.is_begun) return answer_.refuse(Problem::kWatchInMulti);
  for (const std::string_view key : arguments.subspan(1)) {
    if (!goes_on()) return;
    if (transaction_.watched.contains(key)) continue;
    transaction_.watched_bytes += sizeof(Watched::value_type) + key.size();
    if (transaction_.watched_bytes > all_large_bytes_max())
      return answer_.error("ERR the client watches too many keys");
    auto found = items_.look(key);  // not counted as a get
    const Item* const item = done(found);
    if (item == nullptr) return;
    transaction_.watched.emplace(key, item->version());
  }
  answer_.ok();
}

void RespClient::unwatch() {
  transaction_.watched.clear();
  transaction_.watched_bytes = 0;
  answer_.ok();
}

}  // namespace server
