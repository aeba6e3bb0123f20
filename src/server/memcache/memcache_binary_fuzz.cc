// Fuzzes parse_binary. The first byte of an input chooses where the rest, a stream, is split, and the largest
// item: the stream means the same in pieces; at most one request without its value waits for more; and a
// command written as a request again is what was read.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "server/memcache/credentials.h"
#include "server/memcache/reply_buffer.h"
#include "server/memcache/test_transcript.h"

namespace {

using namespace server::memcache;

constexpr size_t kMaxRequestBytes = kHeaderBytes + kMaxKeyBytes + kMaxCredentialsBytes;

void write_extras(ReplyBuffer& to, const Command& command) {
  const auto exptime = static_cast<uint32_t>(command.exptime);
  if (command.verb == Verb::kIncr || command.verb == Verb::kDecr)
    to.put_big_endian(command.number)
        .put_big_endian(command.initial)
        .put_big_endian(static_cast<uint32_t>(command.create_exptime));
  else if (takes_value(command.verb) && command.has_exptime)
    to.put_big_endian(command.flags).put_big_endian(exptime);
  else if (command.has_exptime)
    to.put_big_endian(exptime);
}

// `read` is what the command was read from: all of it but the value.
void check_command(const Command& command, std::string_view read, uint64_t item_bytes_max) {
  CHECK_LE(read.size(), kMaxRequestBytes);
  if (takes_value(command.verb))
    CHECK(item_fits(command.key.size(), command.flags, command.value_bytes, item_bytes_max));
  else
    CHECK_EQ(command.value_bytes, 0u);
  const bool is_sasl = command.verb == Verb::kSaslAuth || command.verb == Verb::kSaslStep;
  Credentials credentials;
  if (is_sasl && parse_plain(command.arguments, credentials)) {
    CHECK(!credentials.user.empty());
    CHECK_LE(credentials.user.size() + credentials.password.size() + 2, command.arguments.size());
  }
  char memory[kMaxRequestBytes], extras_memory[20];
  ReplyBuffer written{std::span(memory)}, extras{std::span(extras_memory)};
  write_extras(extras, command);
  const size_t extras_bytes = extras.written().size();
  const std::string_view message = is_sasl ? command.arguments : std::string_view();
  written.put_big_endian(uint8_t{0x80})
      .put_big_endian(command.opcode)
      .put_big_endian(static_cast<uint16_t>(command.key.size()))
      .put_big_endian(static_cast<uint8_t>(extras_bytes));
  written << read.substr(5, 3);  // type and vbucket, which mean nothing
  written
      .put_big_endian(
          static_cast<uint32_t>(extras_bytes + command.key.size() + message.size() + command.value_bytes))
      .put_big_endian(command.opaque)
      .put_big_endian(command.cas);
  written << extras.written() << command.key << message;
  CHECK(written.written() == read);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint64_t item_bytes_max = (data[0] & 1) != 0 ? kDefaultMaxItemBytes : 100;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  Reader whole([&](std::string_view input, Command& command) {
    const Parsed parsed = parse_binary(input, item_bytes_max, command);
    if (parsed.outcome == Outcome::kMore) CHECK_EQ(parsed.consumed_bytes, 0u);
    if (parsed.outcome == Outcome::kCommand)
      check_command(command, input.substr(0, parsed.consumed_bytes), item_bytes_max);
    return parsed;
  });
  whole.receive(stream);
  CHECK_LT(whole.is_closed() ? 0 : whole.waiting_bytes(), kMaxRequestBytes);

  check_pieces(whole, binary_reader(item_bytes_max), stream, stream.size() * data[0] / 256);
  return 0;
}
