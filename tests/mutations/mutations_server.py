"""Breakages of connections, what clients are answered, and the server (src/server/net, clients, front)."""
STREAM = "src/server/net/stream.cc"
ADDRESS = "src/server/front/address.cc"
SERVER = "src/server/front/server.cc"
HUB = "src/server/clients/hub.cc"
CUT_OFF = "    if (!task::in_task() || at->task != &task::self()) at->stream->cut_off();\n"
LOG_FILE = "src/server/front/log_file.cc"
CLIENT = "src/server/clients/memcache_client.cc"
GETS = "src/server/clients/memcache_gets.cc"
CHANGES = "src/server/clients/memcache_changes.cc"
STATS = "src/server/clients/memcache_stats.cc"
SOCKETS = "src/task/socket.cc"
CHANNEL, TLS = "src/server/net/channel.cc", "src/server/net/tls.cc"
SCANS = "src/server/clients/resp_scans.cc"
RESP_CLIENT, TRANSACTIONS = "src/server/clients/resp_client.cc", "src/server/clients/resp_transactions.cc"
ACCOUNTS, WATCHERS = "src/server/clients/accounts.cc", "src/server/clients/watchers.cc"
METRICS_PAGE = "src/server/clients/metrics_page.cc"

def net(name, *patches, gtest_filter="*", test="server_net_test"):
    return {"name": name, "test": (test, gtest_filter), "patches": list(patches)}


def client(name, *patches, gtest_filter="*"):
    return net(name, *patches, gtest_filter=gtest_filter, test="server_clients_test")


def resp(name, *patches, gtest_filter="*"):
    return net(name, *patches, gtest_filter=gtest_filter, test="resp_client_test")


def front(name, *patches, gtest_filter="*"):
    return net(name, *patches, gtest_filter=gtest_filter, test="server_front_test")


def of_serve(name, *patches):
    return {"name": name, "test": ("ctest", "^server_(serve|reports)$"), "patches": list(patches)}


MUTATIONS = [
    net("replies wait while a connection does", (STREAM, "  if (auto sent = send(); !sent) return std::unexpected(sent.error());\n  const bool is_between", "  const bool is_between"), gtest_filter="StreamTest.AllReplies*"),
    net("an idle connection keeps its buffers", (STREAM, "    in_.reset();\n    text_.reset();\n  }\n  waits", "  }\n  waits"), gtest_filter="StreamTest.HasNoMemory*"),
    net("an end that came with the last bytes is not seen", (SOCKETS, "  if (has_ended_) return {};\n", ""), gtest_filter="StreamTest.AnEndThat*"),
    net("who sends without end is alone", (STREAM, "  if (channel_.has_more()) task::yield();\n", ""), gtest_filter="StreamTest.WhoSends*"),
    net("a request may be of any length", (STREAM, "  if (used >= options_.input_bytes_max)", "  if (false)"), gtest_filter="StreamTest.ARequestMay*"),
    net("a draining connection that is idle waits on", (STREAM, "  if (is_between && is_draining_) return false;\n", ""), (STREAM, "  if (!waited && is_between && is_draining_) return false;\n", ""), gtest_filter="StreamTest.WhenItDrains*"),
    net("a request whose rest is thrown away is none that is under way", (STREAM, "end_ == first_ && !is_skipping_", "end_ == first_"), gtest_filter="StreamTest.WhenItDrains*"),
    net("a request that begins when the server drains is cut off", (STREAM, "limit_of(ns, is_between || !is_draining_)", "limit_of(ns, true)"), gtest_filter="StreamTest.WhenItDrains*"),
    net("after a long request many come at a time", (STREAM, "to.first(std::min(to.size(), kInputBytes))", "to"), gtest_filter="StreamTest.NoMoreComes*"),
    net("values do not go where their text is", (STREAM, "  end_text_piece();\n  pieces_.push_back({.iov_base = const_cast", "  pieces_.push_back({.iov_base = const_cast"), gtest_filter="StreamValuesTest.*"),
    net("what a client says before it takes anything waits", (CHANNEL, "  while (ahead_.size() < ahead_bytes_max_) {", "  while (false) {"), gtest_filter="StreamTest.WhatAClientSays*"),
    net("all that a client says is received while it takes nothing", (CHANNEL, "  while (ahead_.size() < ahead_bytes_max_) {", "  while (ahead_bytes_max_ != 0) {"), gtest_filter="StreamTest.OnlySo*"),
    net("who takes nothing stays as long as he says more", (CHANNEL, "    if (*sent != 0) left = from_now(limit);\n", "    left = from_now(limit);\n"), gtest_filter="StreamTest.AClientThatTakes*"),
    net("what was received ahead is received again", (CHANNEL, "static_cast<ptrdiff_t>(ahead_taken_bytes_));\n    ahead_taken_bytes_ = 0;\n", "static_cast<ptrdiff_t>(ahead_taken_bytes_ / 2));\n    ahead_taken_bytes_ = 0;\n"), gtest_filter="StreamTest.WhatAClientSays*"),
    client("a value's end is not looked at", (CLIENT, "    if (!memcache::is_block_end(", "    if (false && !memcache::is_block_end("), gtest_filter="MemcacheClientTest.WhatIsWrong*"),
    client("a get does not say that it is over", (GETS, "  if (command.is_last) asked_.push_back(", "  if (false) asked_.push_back("), gtest_filter="MemcacheClientTest.StoresAndFinds"),
    client("a stale item is nobody's to fetch anew", (GETS, "found->marks() != Marks{}", "false"), gtest_filter="MemcacheClientTest.MetaCommands*"),
    client("a time since 1970 that an item is to last is from now on", (GETS, "options.claims_before_ms = expiry_of(command.meta.recache_exptime);", "options.claims_before_ms = items_.clock().now_ms() + static_cast<uint64_t>(command.meta.recache_exptime) * 1000;"), gtest_filter="MemcacheClientTest.WhatEndsSoon*"),
    client("a get of a stale item is two", (GETS, "FetchOptions options = {.is_get = !is_noted,", "FetchOptions options = {.is_get = true,"), gtest_filter="MemcacheClientTest.AGetIs*"),
    client("a get of a stale item is told twice", (GETS, "  if (!is_noted) note_fetched(key, fetched->item);\n", "  note_fetched(key, fetched->item);\n"), gtest_filter="MemcacheClientTest.AGetIs*"),
    client("an item that was too large leaves what was there", (CLIENT, "  if (refusal.drops_key)", "  if (false)"), gtest_filter="MemcacheClientTest.WhatIsWrong*"),
    client("clients alone know that the device fails", (CHANGES, "  items_.note_error(error);\n", ""), gtest_filter="FailingDeviceTest.*"),
    resp("who compares long keys with a pattern has the worker to himself", ("src/server/clients/resp_scans.h", "count % kKeysInTurn == 0 || key.size() >= kLongKeyBytes", "count % kKeysInTurn == 0"), gtest_filter="RespKeysTest.OthersAreAnswered*"),
    resp("who compares long patterns with settings has the worker to himself", ("src/server/clients/resp_administration.cc", "             goes_on(1 + pattern.size() / kPatternBytesOfAKey);\n", ""), gtest_filter="RespAdministrationTest.OthersAreAnswered*"),
    resp("who asks for facts again and again has the worker to himself", ("src/server/clients/resp_administration.cc", "  goes_on(kKeysInTurn);\n", ""), gtest_filter="RespAdministrationTest.OthersAreAnsweredBetween*"),
    resp("clients of Redis alone know that the store is full", ("src/server/clients/resp_answer.cc", "  items_.note_error(error);\n", ""), gtest_filter="RespClientTest.AFullStore*"),
    client("what cannot be dropped is told as if it were", (CLIENT, "  if (!dropped)\n    replied = answer_error(command, dropped.error());\n  else if (!refusal.text.empty())", "  if (!refusal.text.empty())"), gtest_filter="FailingDeviceTest.*"),
    client("cas stores whatever is there", (CHANGES, "asks_for_cas ? std::optional(command.cas) : std::nullopt", "std::nullopt"), gtest_filter="MemcacheClientTest.TheCas*"),
    client("counts do not begin again", (HUB, "  items_before_ = items_now;\n", ""), gtest_filter="MemcacheClientTest.Statistics"),
    front("a socket that is in use is replaced", (ADDRESS, "  const bool is_stale = asks >= 0 &&", "  const bool is_stale = asks >= 0 ||"), gtest_filter="Address.ASocketThat*"),
    front("a client says what it is called", (ADDRESS, "peer.bytes.ss_family == AF_UNIX ? \"unix\" : peer.text()", "peer.text()"), gtest_filter="Address.APeer*"),
    front("a port says nothing of the loopback", (ADDRESS, "of_ipv4(INADDR_LOOPBACK, *port)", "of_ipv4(INADDR_ANY, *port)"), gtest_filter="Address.IsOfThe*"),
    front("a killed connection goes on", (HUB, "    task::cancel(*at->task);\n    // Cancelling", "    // Cancelling"), (HUB, CUT_OFF, ""), gtest_filter="ServerTest.ConnectionsMay*"),
    front("who listens no more holds up the end", (HUB, CUT_OFF, ""), gtest_filter="ServerTest.WhoListens*"),
    front("a socket that is shut down has its worker to itself", (SERVER, "      if (task::sleep_until(sys::monotonic_ns() + kPauseNs) == task::Woken::kCancelled) break;\n    }\n  }\n", "    }\n  }\n"), gtest_filter="ServerTest.ASocketThat*"),
    front("a server that cannot accept ends well", (SERVER, "  outcome_ = std::unexpected(error);\n", ""), gtest_filter="ServerTest.ASocketAtWhich*"),
    front("a server that cannot take signals goes on without", (SERVER, "    return give_up(base::Error::of(errno,", "    return static_cast<void>(base::Error::of(errno,"), gtest_filter="ServerTest.OneThatCannot*"),
    front("who asks for metrics takes a client's place", (HUB, "if (counts.now >= connections_max(connection.speech)) {", "if (ended_.now + metrics_ended_.now >= settings_.connections_max) {"), gtest_filter="ServerTest.WhoAsks*"),
    front("those who ask for metrics may be any number", (HUB, "if (counts.now >= connections_max(connection.speech)) {", "if (connection.speech != Speech::kMetrics && counts.now >= connections_max(connection.speech)) {"), gtest_filter="ServerTest.WhoAsks*"),
    front("who asked for metrics once keeps his place", (SERVER, "  if (speech == Speech::kMetrics) stream_options", "  if (false) stream_options"), gtest_filter="ServerTest.WhoAsksForNoMore*"),
    front("who sends a byte of a request for metrics now and then keeps his place", ("src/server/clients/metrics.cc", "  stream_.begin_exchange();\n  for (", "  for ("), gtest_filter="ServerTest.WhoNeverEnds*"),
    net("an exchange has time without end", (STREAM, "  return {.deadline_ns = exchange_end_ns_, .within_ns", "  return {.within_ns"), gtest_filter="StreamTest.AnExchange*"),
    front("a scrape is a client's request", (HUB, "    if (at->speech != Speech::kMetrics) add(*at, all);\n", "    add(*at, all);\n"), gtest_filter="ServerTest.WhoAsks*"),
    client("a value's end is not looked at where several come", (CHANGES, "  if (!is_binary_ && !memcache::is_block_end(", "  if (false && !memcache::is_block_end("), gtest_filter="MemcacheClientTest.SetsThat*"),
    client("sets that ask for a cas are made with others", (CHANGES, "command.verb == Verb::kSet && !command.has_cas", "takes_value(command.verb)"), gtest_filter="MemcacheClientTest.SetsThat*"),
    client("a get goes on behind the error that was its end", (GETS, "      if (!get_has_failed_) written = answer_get(asked, found);", "      written = answer_get(asked, found);"), gtest_filter="MemcacheClientTest.AnErrorIs*"),
    client("an error and END are two ends of a get", (GETS, "  if (std::exchange(get_has_failed_, false)) return {};\n", "  get_has_failed_ = false;\n"), gtest_filter="MemcacheClientTest.AnErrorIs*"),
    client("a flush that is refused is so in text, and aloud", (CHANGES, "return answer_refused(command, \"CLIENT_ERROR flush_all not allowed\");", "return write_line(\"CLIENT_ERROR flush_all not allowed\");"), gtest_filter="MemcacheClientTest.*Flush*"),
    client("any cas is that of an item that has none", (CHANGES, "command.has_cas && (command.cas != 0 || !is_joined)", "command.has_cas && command.cas != 0"), gtest_filter="MemcacheClientTest.TheCas*"),
    front("records in memory do not give way", ("src/server/front/memory_bound.cc", "others < bytes_ ? bytes_ - others : 0", "bytes_"), gtest_filter="MemoryBoundTest.*"),
    client("an item is claimed by its former expiry, wherever that is changed", (GETS, "options.claims_by_new_expiry = !command.meta.claims_before_touch();", "options.claims_by_new_expiry = false;"), gtest_filter="MemcacheClientTest.FlagsAbout*"),
    client("the expiry is told that the command leaves, wherever it is asked for", (CLIENT, "const bool is_last = makes == is_made && touches == command.has_exptime;", "const bool is_last = true;"), gtest_filter="MemcacheClientTest.FlagsAbout*"),
    client("keys in base64 are the last one's", (CHANGES, " && !command.meta.has('b');", ";"), gtest_filter="MemcacheClientTest.KeysInBase64*"),
    net("whoever answers top writes to its terminal", ("tools/spillway/server_metrics.cc", "!is_plain(name) || ", ""), gtest_filter="ServerMetrics.WhatNo*", test="server_metrics_test"),
    net("an answer to top that breaks off is taken for a whole", ("tools/spillway/server_metrics.cc", "kHeadEnd.size() >= bytes;", "kHeadEnd.size() <= bytes;"), gtest_filter="ServerMetrics.WhatBreaksOff*", test="server_metrics_test"),
    net("what TLS says is not sent before a client is waited for", (CHANNEL, "  if (auto sent = send_kept(limit); !sent) return std::unexpected(sent.error());\n  if (wants == Wants::kClosed)", "  if (wants == Wants::kClosed)"), gtest_filter="ChannelTest.BytesGo*"),
    net("records that came with others wait for more", (CHANNEL, "secure_->has_more || SSL_has_pending(secure_->session.get()) == 1", "secure_->has_more"), gtest_filter="ChannelTest.ManyRecords*"),
    net("a client that says all the time that its keys are new has its worker to itself", (CHANNEL, "read_bytes >= kMaxReadBytes;", "read_bytes == SIZE_MAX;"), gtest_filter="ChannelTest.OthersRunWhileAClient*"),
    net("nobody else runs before TLS goes on with what it takes for itself", (STREAM, "    task::yield();\n    if (exchange_end_ns_", "    if (exchange_end_ns_"), gtest_filter="ChannelTest.OthersRunWhileAClient*"),
    net("others wait while a long value comes by TLS", (STREAM, "        if (!memory.empty() && channel_.has_more()) task::yield();\n", ""), gtest_filter="ChannelTest.OthersRunWhileALong*"),
    net("an end without a goodbye is an error", (CHANNEL, "    if (command == BIO_CTRL_EOF) return of(bio).secure_->has_ended ? 1 : 0;\n", ""), gtest_filter="ChannelTest.AClientThat*"),
    net("nobody says goodbye by TLS", (CHANNEL, "    if (!secure_->is_broken && SSL_is_init_finished(session)) SSL_shutdown(session);\n", ""), gtest_filter="ChannelTest.BytesGo*"),
    net("clients need no certificate", (TLS, "SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT", "SSL_VERIFY_NONE"), gtest_filter="ChannelTest.ClientsNeed*"),
    net("sessions are resumed with a certificate that has expired", (TLS, "  if (shown == nullptr || X509_cmp_current_time(X509_get0_notAfter(shown)) <= 0)\n", "  if (shown == nullptr)\n"), gtest_filter="ChannelTest.SessionsAreResumed*"),
    net("any version of TLS is taken", (TLS, "  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);\n", "  SSL_CTX_set_min_proto_version(raw, TLS1_VERSION);\n  SSL_CTX_set_security_level(raw, 0);\n"), gtest_filter="ChannelTest.OldVersions*"),
    net("a certificate that cannot be read again takes the old one along", (TLS, "  auto loaded = load(options_);\n", "  context_.reset();\n  auto loaded = load(options_);\n"), gtest_filter="TlsTest.WhatCannotBeReadAgain*"),
    net("a tool trusts whatever answers", ("src/server/net/tls_client.cc", "SSL_VERIFY_PEER, nullptr", "SSL_VERIFY_NONE, nullptr"), gtest_filter="TlsClientTest.Who*"),
    net("a tool takes any certificate for that of its server", ("src/server/net/tls_client.cc", "  if (!expect(session_.get(), host)) return", "  if (false) return"), gtest_filter="TlsClientTest.ACertificate*"),
    net("a tool ends with the server that it asks", ("src/server/net/tls_client.cc", ", MSG_NOSIGNAL)", ", 0)"), gtest_filter="TlsClientTest.WhoHasGone*"),
    client("a value that is too large is refused before it has come", (CLIENT, "  auto skipped = stream_.skip(refusal.swallow_bytes);\n  if (!skipped) return std::unexpected(skipped.error());\n  if (!*skipped) return Next::kEnds;\n", ""), gtest_filter="MemcacheClientTest.AValueThat*"),
    client("a password may be a part of the right one", (ACCOUNTS, "  unsigned difference = secret.size() != given.size();", "  unsigned difference = 0;"), gtest_filter="Accounts.*"),
    client("a user who is not known needs no password", (ACCOUNTS, "is_same_secret(secret, password) && !secret.empty()", "is_same_secret(secret, password)"), gtest_filter="Accounts.*"),
    client("text is served before its client is known", (CLIENT, "  if (!is_admitted_ && !is_binary_) return take_credentials();\n", ""), gtest_filter="MemcacheClientTest.NobodyIsServed*"),
    client("what is refused takes an item along before its client is known", (CLIENT, "  if (parsed.outcome == memcache::Outcome::kRefused) return false;\n", "  if (parsed.outcome == memcache::Outcome::kRefused) return true;\n"), gtest_filter="MemcacheClientTest.NobodyIsServed*"),
    client("binary is served before its client is known", (CLIENT, "    case Verb::kSaslStep: return true;\n    default: return false;", "    case Verb::kSaslStep: return true;\n    default: return true;"), gtest_filter="MemcacheClientTest.NobodyIsServed*"),
    client("a watcher that reads nothing takes all memory", (WATCHERS, "watcher->lines_.size() >= kMaxBytes", "watcher->lines_.size() >= 100 * kMaxBytes"), gtest_filter="Watchers.WhatOne*"),
    client("a watcher is told all kinds", (WATCHERS, "    if ((watcher->kinds_ & kind) == 0) continue;\n", ""), gtest_filter="Watchers.AreTold*"),
    resp("others wait while a client is told of many commands", ("src/server/clients/resp_administration.cc", "    if (!goes_on()) return;\n    if (const Command* const command = resp::find_by_name(name))\n", "    if (const Command* const command = resp::find_by_name(name))\n"), gtest_filter="RespAdministrationTest.OthersAreAnsweredWhileAClientIsTold*"),
    resp("requests of strangers are kept", ("src/server/clients/resp_connection.cc", "is_authenticated ? hub_.settings().stream.input_bytes_max : 0", "hub_.settings().stream.input_bytes_max"), gtest_filter="RespClientTest.OfAStranger*"),
    resp("connections are looked for in ids that are in no order", ("src/server/clients/resp_connection.cc", "  std::ranges::sort(ids);\n", ""), gtest_filter="RespConnectionTest.ThoseThat*"),
    resp("of many keys those are forgotten that are looked up later", ("src/server/clients/together.h", "  while (!keys.empty()) keys = keys.subspan(", "  if (!keys.empty()) keys = keys.subspan("), gtest_filter="RespStringsTest.ManyLarge*"),
    client("counts of the store do not begin again", (HUB, "  store_before_ = store_now;\n", ""), gtest_filter="MemcacheClientTest.StatisticsOf*"),
    client("items that were not stored are among those that were", (STATS, "items[Count::kStored]", "items[Count::kSets]"), gtest_filter="MemcacheClientTest.Statistics"),
    resp("a connection that has asked for nothing is idle since 1970", (HUB, "  connection.used_ms.store(connection.begun_ms, std::memory_order_relaxed);\n", ""), gtest_filter="RespConnectionTest.OthersAre*"),
    resp("a request without the value that was too long is carried out", ("src/server/clients/resp_client.cc", "  if (has_skipped_) return reject({Problem::kTooLong}, arguments);\n", ""), gtest_filter="RespClientTest.ALongerValue*"),
    resp("after a value that was too long all requests are refused", ("src/server/clients/resp_client.cc", "      has_skipped_ = false;\n", ""), gtest_filter="RespClientTest.ALongerValue*"),
    resp("who was killed by name counts as nobody", ("src/server/clients/resp_connection.cc", "  if (count == 0 && request->user &&", "  if (request->user &&"), gtest_filter="RespConnectionTest.WhoIsNoUser*"),
    resp("who asks for many keys has the worker to himself", ("src/server/clients/resp_client.h", "      task::yield();\n", ""), gtest_filter="RespConnectionTest.WhoAsks*"),
    resp("a request of many keys ends its connection", ("src/server/net/stream.h", "input_bytes_max = 16 << 20;", "input_bytes_max = 1 << 20;"), gtest_filter="RespClientTest.RequestsMayHave*"),
    resp("a value that is not sent is read", ("src/server/clients/resp_answer.cc", "  if (!is_open()) return;\n  if (!item.found()) return null();\n", "  if (!item.found()) return null();\n"), gtest_filter="RespConnectionTest.AValueThat*"),
    resp("a step of a scan is made where the connection is", (SCANS, "                           .worker = &tables_[home]->home()});", "                           .worker = nullptr});"), gtest_filter="RespKeysTest.AScanGoesOn*"),
    resp("any client of Redis ends the server", ("src/server/clients/resp_administration.cc", "  if (!hub_.settings().takes_shutdown) return answer_.refuse(Problem::kShutdownNotTaken);\n", ""), gtest_filter="RespAdministrationTest.TheServerIsNot*"),
    resp("a TOUCH of who leaves no trace leaves none", ("src/server/clients/resp_keys.cc", "marks_used ? items_.get(key)", "marks_used ? get(key)"), gtest_filter="RespKeysTest.IdleTimes*"),
    resp("one record that is no item hides all keys", ("src/server/items/walk.cc", "    if (more || more.error().number != EBADMSG) return more;", "    return more;"), gtest_filter="RespKeysTest.WhatIsNoItem*"),
    resp("cursors have more bits from 2039 on", (SCANS, "next_step_++ % kSteps;", "next_step_++ % (2 * kSteps);"), gtest_filter="RespKeysTest.CursorsAreNoLonger*"),
    resp("a scan is over when steps are counted anew", (SCANS, "  while (step == 0) step = next_step_++ % kSteps;\n", "  step = next_step_++ % kSteps;\n"), gtest_filter="RespKeysTest.CursorsAreNoLonger*"),
    resp("scans that nobody goes on with stay", (SCANS, "    if (scan.is_unused(kIdleMs, now_ms)) scan.end();", "    static_cast<void>(scan), static_cast<void>(now_ms);"), gtest_filter="RespKeysTest.CursorsAre*"),
    resp("a scan that is used ends for another one", (SCANS, "(is_disowned || is_unused(kUsedMs, now_ms));", "(is_disowned || is_unused(0, now_ms));"), gtest_filter="RespKeysTest.ScansThatAreUsed*"),
    resp("the youngest scan ends for another one", (SCANS, "(oldest == nullptr || scan.used_ms < oldest->used_ms))", "(oldest == nullptr || scan.used_ms > oldest->used_ms))"), gtest_filter="RespKeysTest.ScansThatAreUsed*"),
    resp("a scan whose connection has gone holds up others", (SCANS, "void RespScans::Caller::leave() {\n", "void RespScans::Caller::leave() {\n  return;\n"), gtest_filter="RespKeysTest.ScansOfWho*"),
    resp("a time that is none is told of a key that is none", ("src/server/clients/resp_strings.cc", "  if (!parsed && parsed.error().problem != Problem::kSyntax) {\n", "  if (false) {\n"), gtest_filter="RespStringsTest.GetAndMore"),
    resp("others see a transaction in the middle", ("src/server/clients/resp_client.h", "      const Isolation::Alone alone(hub_.items().isolation());\n", ""), gtest_filter="RespTransactionsTest.OthersSee*"),
    resp("of keys that are to be set if none is there some are", ("src/server/clients/resp_strings.cc", "    if (item->found()) return answer_.integer(0);\n", ""), gtest_filter="RespStringsTest.ManyKeys"),
    resp("keys are set though a value of one is refused", ("src/server/clients/resp_strings.cc", "    if (pairs[at + 1].size() > hub_.settings().value_bytes_max) return answer_.refuse(Problem::kTooLong);\n", ""), gtest_filter="RespTransactionsTest.NoneOfMany*"),
    resp("a watched key that has changed stops nothing", (TRANSACTIONS, "    if (item->version() != version) return true;\n", ""), gtest_filter="RespTransactionsTest.AWatched*"),
    resp("a key that is watched again and again is many", (TRANSACTIONS, "    if (transaction_.watched.contains(key)) continue;\n", ""), gtest_filter="RespTransactionsTest.AKeyThatIsWatchedAgain*"),
    resp("to watch a key is to get it", (TRANSACTIONS, "auto found = items_.look(key);", "auto found = look(key);"), gtest_filter="RespTransactionsTest.ToWatch*"),
    resp("who takes no answers of a transaction holds everybody up", ("src/server/clients/resp_client.h", "    answer_.keep(all_large_bytes_max());\n", ""), ("src/server/clients/resp_client.h", "    answer_.send_kept();\n", ""), gtest_filter="RespTransactionsTest.WhoTakes*"),
    resp("a transaction is carried out without what could not be queued", (RESP_CLIENT, "  transaction_.is_refused = transaction_.is_begun;\n", ""), gtest_filter="RespTransactionsTest.ARequestThatCannot*"),
    resp("a transaction outlives an EXEC that is refused", (RESP_CLIENT, "  end_transaction();\n", ""), gtest_filter="RespTransactionsTest.AnExec*"),
    resp("plain requests of a transaction do not wait for EXEC", (RESP_CLIENT, " || transaction_.is_begun) return false;", ") return false;"), gtest_filter="RespTransactionsTest.*"),
    resp("a transaction outlives the connection's reset", ("src/server/clients/resp_connection.cc", "  end_transaction();\n", ""), gtest_filter="RespTransactionsTest.NothingIs*"),
    net("a part of a value begins at its first byte", (STREAM, "items.read(item, offset, part_.bytes().first(most))", "items.read(item, 0, part_.bytes().first(most))"), gtest_filter="StreamValuesTest.Parts*"),
    net("what follows a value's first part is that once more", (STREAM, "    part_bytes_ = *read;\n  }\n  part_.reset();", "    part_bytes_ = *read;\n    if (auto again = items.read(item, 0, part_.bytes().first(*read)); !again) return std::unexpected(again.error());\n  }\n  part_.reset();"), gtest_filter="StreamValuesTest.*"),
    resp("a scan ends where a cache has dropped a value", ("src/server/items/walk.cc", "      if (!read && read.error().number == ESTALE) continue;\n", ""), gtest_filter="RespCacheScansTest.*"),
    client("times of calls are summed up by their mean", ("src/server/clients/metrics.cc", "static_cast<double>(latency.sum_ns) / 1e9", "static_cast<double>(latency.count * latency.mean_ns) / 1e9"), gtest_filter="MetricsTest.TheSum*"),
    client("a quotation mark ends a label", (METRICS_PAGE, "(first == '\"' && is_quoted)", "false"), gtest_filter="MetricsPage.WhatHas*"),
    client("a quotation mark of a help is escaped", (METRICS_PAGE, "(first == '\"' && is_quoted)", "first == '\"'"), gtest_filter="MetricsPage.WhatHas*"),
    client("half a character is in a metric", (METRICS_PAGE, "    if (bytes == 0)\n      to += kNoCharacter;\n    else if", "    if"), gtest_filter="MetricsPage.WhatIsNo*"),
    client("a metric is told of without a sample", (METRICS_PAGE, "append(type).append(\"\\n\");\n", "append(type).append(\"\\n\");\n  text_ += std::exchange(head_, {});\n"), gtest_filter="MetricsPage.Without*"),
    of_serve("a browser runs whatever the dashboard loads", ("src/server/clients/make_dashboard.py", "\"default-src 'none'\"", "\"default-src *\"")),
    of_serve("the dashboard is for any method", ("src/server/clients/metrics.cc", "  const bool is_known = is_head || head.starts_with(\"GET \");", "  const bool is_known = true;")),
    of_serve("the dashboard draws what is not told", ("src/server/clients/dashboard.html", "keys: 'store_keys'", "keys: 'store_items'")),
    of_serve("a store that takes no writes is like any other to who watches it", ("src/server/clients/metrics.cc", "static_cast<uint64_t>(counts.error)", "uint64_t{0}")),
    of_serve("clients of Redis are told that all is saved while nothing is", ("src/server/clients/resp_info.cc", "counts.error == 0 ? \"ok\" : \"err\"", "\"ok\"")),
    of_serve("only the client that met a failure knows of it", ("tools/spillway/serve_options.cc", "  options.store.logs_told_failures = true;\n", "")),
    of_serve("a failure is told as text where all is JSON", ("tools/spillway/serve.cc", "  } catch (const WrongInput& error) {\n    return tell_failure(error.what(), kWrongInput);\n", "  } catch (const WrongInput& error) {\n    throw;\n")),
    of_serve("nobody is told of connections that are refused", ("src/server/front/server.cc", "      if (hub_->verbosity.load(std::memory_order_relaxed) > 0)\n        base::log({.name = \"connection_refused\"", "      if (false)\n        base::log({.name = \"connection_refused\"")),
    of_serve("an address that a name has twice is listened at twice", (ADDRESS, "    if (std::ranges::any_of(all, [&](const Address& other) { return is_same(other, address); })) continue;\n", "")),
    of_serve("the peak of memory is also that of who started the server", ("src/server/clients/resp_info.cc", "sys::peak_resident_bytes()", "[] { rusage usage; getrusage(RUSAGE_SELF, &usage); return uint64_t(usage.ru_maxrss) * 1024; }()")),
    of_serve("the pid file goes while the store is still being closed", ("tools/spillway/serve.cc", "  store.close();\n", "  pid_file.reset();\n  store.close();\n")),
    of_serve("a pid file is written wherever it is", ("tools/spillway/serve_options.cc", "       check_file_to_write(concat(\"serve: \", name), std::string(value));\n       line.options.pid_file", "       line.options.pid_file")),
    front("the log goes on in the file that was moved away", (LOG_FILE, "dup2(file, STDERR_FILENO) >= 0", "true"), gtest_filter="LogFileTest.*"),
    front("what was in the log is lost when it is opened", (LOG_FILE, "O_APPEND", "O_TRUNC"), gtest_filter="LogFileTest.*"),
    of_serve("who reads the log slowly holds up clients", (LOG_FILE, "O_APPEND | O_NONBLOCK |", "O_APPEND |")),
    of_serve("workers take connections' descriptors", ("tools/spillway/serve.cc", "rlim_t kOthers = sys::kMaxOwnDescriptors + 64;", "rlim_t kOthers = 64;")),
    of_serve("a daemon's log goes nowhere", ("tools/spillway/serve.cc", "  daemon.serves(!options.server.log_file.empty());\n", "  daemon.serves(false);\n")),
    of_serve("connections are told of while nobody may come or go", (STATS, "all.emplace_back(number + \"addr\"", "tell(number + \"addr\""), (STATS, "all.emplace_back(number + \"listen_addr\"", "tell(number + \"listen_addr\""), (STATS, "all.emplace_back(number + \"secs_since_last_cmd\"", "tell(number + \"secs_since_last_cmd\"")),
    {"name": "who is refused and says nothing is waited for", "test": ("ctest", "^server_secure$"), "patches": [(SERVER, "kRefusalNs = 2 * kSecondNs", "kRefusalNs = 60 * kSecondNs")]},
    of_serve("it ends with whoever read what it says", ("tools/spillway/serve.cc", "  signal(SIGPIPE, SIG_IGN);\n", "")),
    of_serve("in a container no signal ends a server that opens its store", ("tools/spillway/serve.cc", "  _exit(128 + number);\n", "")),
    of_serve("a signal leaves half a store behind", ("tools/spillway/serve.cc", "  const uint64_t before = sys::block_signals(sys::kSentSignals);\n", "  const uint64_t before = 0;\n")),
    of_serve("a signal waits until the store is open", ("tools/spillway/serve.cc", "  block_signals({SIGHUP});\n", "  block_signals({SIGHUP, SIGTERM, SIGINT});\n")),
    of_serve("an empty password keeps everybody out", ("tools/spillway/serve_options.cc", "    if (*password == 0) refuse(", "    if (false) refuse(")),
    of_serve("an option whose argument is empty counts as left out", ("tools/spillway/serve_options.cc", "  if (argument.empty()) refuse(", "  if (false) refuse(")),
    of_serve("idle_timeout=0 ends each connection at once", ("tools/spillway/serve_options.cc", "idle_ns == 0 ? task::kNever : idle_ns;", "idle_ns;")),
    of_serve("who is to listen at all IPv4 interfaces listens at others, too", ("tools/spillway/serve_options.cc", "is_bare ? concat('[', host, ']') : host;", "is_bare ? concat('[', host, ']') : host == \"0.0.0.0\" ? \"*\" : host;")),
    of_serve("who reads a pipe that is to be the log sees its end", ("tools/spillway/program.cc", "  if (is_there && S_ISFIFO(there.st_mode) && access(path.c_str(), W_OK) == 0) return;\n", "")),
    of_serve("who has all keys listed holds up the end", ("src/server/clients/resp_keys.cc", "connection.is_killed.load(std::memory_order_relaxed) || ", "")),
    of_serve("who asks for many keys holds up the end", ("src/server/clients/resp_client.h", "return is_in_transaction_ || !connection_.is_killed.load(std::memory_order_relaxed);", "return true;")),
    of_serve("who has sent many requests holds up the end", (CLIENT, "    if (connection_.is_killed.load(std::memory_order_relaxed)) return {};\n", "")),
    of_serve("a server that cannot begin leaves what it has opened", (SERVER, "Server::~Server() { close(); }", "Server::~Server() = default;")),
    {"name": "a password that was taken away admits its user", "test": ("ctest", "^server_secure$"), "patches": [(HUB, "  newer_accounts_ = std::move(accounts);\n", "  newer_accounts_.reset();\n")]},
    of_serve("SIGHUP opens no log again", (SERVER, "  if (has_log) reopen_log();\n", "")),
    of_serve("SIGHUP says nothing where there is nothing to do", (SERVER, "  if (!has_log && !has_certificate && !has_passwords)\n", "  if (false)\n")),
    front("an address that the kernel knows not is an error without a name", ("src/base/error.cc", "    case EAFNOSUPPORT: return \"address family not supported\";\n", ""), gtest_filter="Address.OneThatTheKernel*"),
    of_serve("a socket in the file system stays that of who started it", ("tools/spillway/serve.cc", "    if (listening.is_given) continue;\n", "    continue;\n")),
    of_serve("the user keeps the groups of who started it", ("tools/spillway/privileges.cc", "initgroups(user.pw_name, user.pw_gid) != 0 || ", "")),
    of_serve("a dump has what a server has flushed", ("tools/spillway/kv_list.cc", "    if (flush) store->forget_below(flush->floor);\n", "")),
    of_serve("a dump says of flushes what was so in its store", ("tools/spillway/kv_list.cc", "if (const auto kept = flush->in_copy()) write_flush(*kept);", "write_flush(*flush);")),
    of_serve("a load takes what a dump says of flushes for what is so here", ("tools/spillway/kv_load.cc", "    if (!flush) return true;\n", "    if (!flush || true) return true;\n")),
    of_serve("a user keeps what it was started with", ("tools/spillway/privileges.cc", "  if (user.pw_uid != 0 && has_capabilities())\n", "  if (false && has_capabilities())\n")),
    of_serve("capabilities could come back", ("tools/spillway/privileges.cc", "    prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);\n", "    static_cast<void>(capability);\n")),
    of_serve("threads that are there keep what the server gives up", ("tools/spillway/serve.cc", "  if (user != nullptr) forbid_new_rights();\n", ""), ("tools/spillway/serve.cc", "  if (user != nullptr) become_user(*user);\n", "  if (user != nullptr) forbid_new_rights(), become_user(*user);\n")),
]
