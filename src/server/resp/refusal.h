// Refusal: why a request is not carried out, and its error reply.
#pragma once
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#include "server/resp/reply.h"

namespace server::resp {

using Arguments = std::span<const std::string_view>;  // of a request, the command's name first

enum class Problem : uint8_t {
#define PROBLEM(id, text) id,
#include "server/resp/problems.inc"
#undef PROBLEM
};

struct Refusal {
  Problem problem;
  std::string_view what = {};  // the command's name, or the argument that the reply names

  bool operator==(const Refusal&) const = default;
};

// What a request asks for, or why it is refused.
template <class T>
using Accepted = std::expected<T, Refusal>;

inline std::unexpected<Refusal> refuse(Problem problem, std::string_view what = {}) {
  return std::unexpected<Refusal>({problem, what});
}

// A reply shows at most kMaxShownBytes bytes of what a client has sent, and nothing from a zero byte on. So it has
// kMaxErrorBytes bytes at most.
inline constexpr size_t kMaxShownBytes = 128;
inline constexpr size_t kMaxErrorBytes = 512;

// Writes the error reply to the request with these arguments. For kHttp nothing is written: its connection is closed
// without a reply.
void write_refusal(ReplyWriter& reply, const Refusal& refusal, Arguments arguments);

}  // namespace server::resp
