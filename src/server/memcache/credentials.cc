#include "server/memcache/credentials.h"

#include <algorithm>

#include "server/memcache/command.h"
#include "server/memcache/messages.h"
#include "server/memcache/words.h"
#include "server/text.h"

namespace server::memcache {

Parsed parse_credentials(std::string_view input, Credentials& credentials) {
  const size_t line_bytes = input.substr(0, kMaxLineBytes + 1).find('\n') + 1;
  if (line_bytes == 0) {
    if (input.size() <= kMaxLineBytes) return {};
    Parsed refused = refuse({});
    refused.refusal.closes = true;
    return refused;
  }
  std::string_view line = input.substr(0, line_bytes - 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  Words words(line);
  const bool is_set = words.next() == "set";
  for (int i = 0; i < 3; ++i) words.next();  // key, flags and exptime may be any
  const auto bytes = parse_number<uint32_t>(words.next());
  if (!is_set || !bytes) return refuse(messages::kUnauthenticated).consuming(line_bytes);
  const size_t block_bytes = size_t{*bytes} + kBlockEndBytes;
  if (*bytes > kMaxCredentialsBytes) {
    Parsed refused = refuse(messages::kBadCredentials);
    refused.refusal.swallow_bytes = block_bytes;
    return refused.consuming(line_bytes);
  }
  if (input.size() - line_bytes < block_bytes) return {};
  const size_t used_bytes = line_bytes + block_bytes;
  if (!is_block_end(input.substr(used_bytes - kBlockEndBytes, kBlockEndBytes)))
    return refuse(messages::kBadCredentialsEnd).consuming(used_bytes);
  const std::string_view both = input.substr(line_bytes, *bytes);
  const size_t blank = std::min(both.find(' '), both.size());
  credentials.user = both.substr(0, blank);
  credentials.password = both.substr(std::min(blank + 1, both.size()));
  if (credentials.password.empty()) return refuse(messages::kBadCredentials).consuming(used_bytes);
  return accept().consuming(used_bytes);
}

bool parse_plain(std::string_view message, Credentials& credentials) {
  const size_t first = message.find('\0');
  const size_t second = first == std::string_view::npos ? first : message.find('\0', first + 1);
  if (second == std::string_view::npos) return false;
  credentials.user = message.substr(first + 1, second - first - 1);
  credentials.password = message.substr(second + 1);
  return !credentials.user.empty();
}

}  // namespace server::memcache
