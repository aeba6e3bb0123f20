// Fuzzes the parser of requests and what reads their arguments.
//
//   input   limits, 1 byte | where the stream is split, 2 bytes | the stream
//
// The result does not depend on how the stream is split. A request, written back as an array, is parsed to
// the same arguments; queued requests come back unchanged. Whatever they are, the command's own parser
// accepts them or says why not.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "server/resp/administration.h"
#include "server/resp/arguments.h"
#include "server/resp/glob.h"
#include "server/resp/reply.h"
#include "server/resp/request_queue.h"
#include "server/resp/test_stream.h"

namespace {

using namespace server::resp;

constexpr int64_t kNowMs = 1'700'000'000'000;

RequestLimits limits_of(uint8_t bits) {
  return {.argument_count_max = (bits & 1) != 0 ? 20u : 1u << 20,
          .bulk_bytes_max = (bits & 2) != 0 ? 100u : 512u << 20,
          .large_bytes = (bits & 4) != 0   ? 10u
                         : (bits & 8) != 0 ? 1u
                                           : UINT64_MAX,
          .input_bytes_max = (bits & 16) != 0 ? 64u : 1u << 30,
          .is_authenticated = (bits & 32) == 0};
}

std::vector<Event> parse_in_two(std::string_view stream, size_t split, const RequestLimits& limits) {
  TestStream connection(limits);
  connection.receive(stream.substr(0, split));
  connection.receive(stream.substr(split));
  return connection.events();
}

void check_round_trip(const Event& event) {
  std::string text(64, '\0');
  for (const std::string& argument : event.arguments) text.resize(text.size() + argument.size() + 64);
  ReplyWriter writer(text, Protocol::kResp2);
  writer.array(event.arguments.size());
  for (const std::string& argument : event.arguments) writer.bulk(argument);
  CHECK(!writer.is_full());
  const std::vector<Event> again = parse_in_two(writer.view(), writer.size() / 2, {});
  CHECK_EQ(again.size(), 1u);
  CHECK(again[0] == event);
}

// What the command's own parser says; nothing: it has none.
template <class T>
std::optional<Refusal> problem_of(const Accepted<T>& accepted) {
  if (accepted) return std::nullopt;
  return accepted.error();
}

std::optional<Refusal> parse_own(const Command& command, Arguments arguments) {
  switch (command.id) {
    case CommandId::kSet:
    case CommandId::kSetnx:
    case CommandId::kSetex:
    case CommandId::kPsetex:
    case CommandId::kGetset: return problem_of(parse_set(command, arguments, kNowMs));
    case CommandId::kGetex: return problem_of(parse_getex(command, arguments, kNowMs));
    case CommandId::kExpire:
    case CommandId::kPexpire:
    case CommandId::kExpireat:
    case CommandId::kPexpireat: return problem_of(parse_expire(command, arguments, kNowMs));
    case CommandId::kMset:
    case CommandId::kMsetnx: return problem_of(parse_pairs(command, arguments));
    case CommandId::kIncr:
    case CommandId::kDecr:
    case CommandId::kIncrby:
    case CommandId::kDecrby: return problem_of(parse_increment(command, arguments));
    case CommandId::kIncrbyfloat: return problem_of(parse_float_argument(arguments[2]));
    case CommandId::kGetrange: return problem_of(parse_getrange(arguments));
    case CommandId::kSetrange: return problem_of(parse_setrange(arguments));
    case CommandId::kScan: return problem_of(parse_scan(arguments));
    case CommandId::kPing: return problem_of(parse_ping(arguments));
    case CommandId::kAuth: return problem_of(parse_auth(arguments));
    case CommandId::kHello: return problem_of(parse_hello(arguments));
    case CommandId::kSelect: return problem_of(parse_select(arguments, 16));
    case CommandId::kClientSetname: return problem_of(parse_client_setname(arguments));
    case CommandId::kClientSetinfo: return problem_of(parse_client_setinfo(arguments));
    case CommandId::kClientReply: return problem_of(parse_client_reply(arguments));
    case CommandId::kClientList: return problem_of(parse_client_list(arguments));
    case CommandId::kClientKill: return problem_of(parse_client_kill(arguments));
    case CommandId::kCommandGetkeys: return problem_of(parse_command_getkeys(arguments));
    case CommandId::kConfigSet: return problem_of(parse_config_set(arguments));
    case CommandId::kFlushall: return problem_of(parse_flush(arguments));
    case CommandId::kBgsave: return problem_of(parse_bgsave(arguments));
    case CommandId::kShutdown: return problem_of(parse_shutdown(arguments));
    case CommandId::kMemoryUsage: return problem_of(parse_memory_usage(arguments));
    case CommandId::kWait: return problem_of(parse_wait(arguments));
    default: return std::nullopt;
  }
}

void check_command(const Event& event) {
  const std::vector<std::string_view> arguments(event.arguments.begin(), event.arguments.end());
  const auto command = find_command(arguments);
  std::optional<Refusal> refusal;
  if (command) {
    const KeyRange keys = key_range(**command, arguments.size());
    CHECK_LE(keys.end, arguments.size());
    refusal = parse_own(**command, arguments);
  } else {
    refusal = command.error();
  }
  if (!refusal) return;
  std::array<char, kMaxErrorBytes> buffer;
  ReplyWriter reply(buffer, Protocol::kResp2);
  write_refusal(reply, *refusal, arguments);
  CHECK(!reply.is_full());
  if (refusal->problem != Problem::kHttp)
    CHECK(reply.view().starts_with('-') && reply.view().find_first_of("\r\n") == reply.size() - 2);
}

void check_queue(const std::vector<Event>& events) {
  RequestQueue queue;
  std::vector<const Event*> queued;
  for (const Event& event : events) {
    if (event.outcome != Parsed::kRequest) continue;
    const std::vector<std::string_view> arguments(event.arguments.begin(), event.arguments.end());
    if (queue.add(command_of(CommandId::kPing), arguments, 1 << 12)) queued.push_back(&event);
  }
  size_t i = 0;
  queue.for_each([&](const Command&, Arguments arguments) {
    CHECK_LT(i, queued.size());
    CHECK(std::ranges::equal(arguments, queued[i++]->arguments));
  });
  CHECK_EQ(i, queued.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const RequestLimits limits = limits_of(data[0]);
  const std::string_view stream(reinterpret_cast<const char*>(data) + 3, size - 3);
  const size_t split = (data[1] << 8 | data[2]) % (stream.size() + 1);
  const std::vector<Event> events = parse_in_two(stream, 0, limits);
  CHECK(parse_in_two(stream, split, limits) == events);
  if (stream.size() <= 256) {
    TestStream bytes(limits);
    for (const char& c : stream) bytes.receive({&c, 1});
    CHECK(bytes.events() == events);
  }
  check_queue(events);
  for (const Event& event : events) {
    if (event.outcome != Parsed::kRequest) continue;
    check_round_trip(event);
    check_command(event);
    if (event.arguments.size() > 1 && event.arguments[0].size() * event.arguments[1].size() < 1 << 16)
      glob_matches(event.arguments[0], event.arguments[1]);
  }
  return 0;
}
