// Replays a trace over policies at one cache size or several, and prints one line of JSON:
//
//   PROGRAM TRACE MOST SIZES POLICIES
//
//   TRACE      zipfleaf and the like (generate.h), or FORMAT:FILE (read_trace.h)
//   MOST       accesses, from the first on; 0: all
//   SIZES      numbers of pages with commas between, or shares of the trace's different pages, as 9.1%
//   POLICIES   lru and the like: fully associative (whole.h); lru/16 and the like: in sets of so many ways, 8, 16 or 32
//              (cache/sets/set_policy.h); with commas between; or all
//
//   {"accesses": N, "pages": N, "results": [{"policy": "lru/16", "size": N, "hits": N}, ...]}
//
// What cannot be done is one line and status 2. A share of fewer pages than 32 is 32.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "hitrate/generate.h"
#include "hitrate/read_trace.h"
#include "hitrate/sets.h"
#include "hitrate/whole.h"

namespace {

using hitrate::Trace;

constexpr uint32_t kWays[] = {8, 16, 32};
constexpr uint64_t kMinSize = 32, kMaxSize = uint64_t{1} << 26;

[[noreturn]] void refuse(std::string_view message) {
  std::fprintf(stderr, "hitrate: %.*s\n", static_cast<int>(message.size()), message.data());
  std::exit(2);
}
template <class T>
T must(base::Expected<T>&& got) {
  if (!got) refuse(got.error().message);
  return std::move(*got);
}

std::vector<std::string> split(std::string_view words) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= words.size();) {
    const size_t end = std::min(words.find(',', begin), words.size());
    parts.emplace_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

uint64_t parse_count(const std::string& word) {
  uint64_t count = 0;
  const auto [stop, wrong] = std::from_chars(word.data(), word.data() + word.size(), count);
  if (wrong != std::errc() || stop != word.data() + word.size())
    refuse("'" + word + "' is no number of accesses");
  return count;
}

// A size before the trace is known: pages, or a share.
struct Size {
  uint64_t pages = 0;
  double share = 0;

  uint64_t of(const Trace& trace) const {
    return pages != 0 ? pages : std::max(static_cast<uint64_t>(share * trace.page_count), kMinSize);
  }
};

Size parse_size(const std::string& word) {
  const char* const begin = word.data();
  const char* end = begin + word.size();
  Size size;
  if (word.ends_with('%')) {
    const auto [stop, wrong] = std::from_chars(begin, --end, size.share);
    if (wrong == std::errc() && stop == end && size.share > 0 && size.share <= 100) {
      size.share /= 100;
      return size;
    }
  } else {
    const auto [stop, wrong] = std::from_chars(begin, end, size.pages);
    if (wrong == std::errc() && stop == end && size.pages >= kMinSize && size.pages <= kMaxSize) return size;
  }
  refuse("'" + word + "' is no size: give a number of pages from 32 to 67108864, or a share as 9.1%");
}

// A policy by its name: of sets, or of a cache that is one.
struct Policy {
  std::string name;
  const hitrate::WholePolicy* whole = nullptr;
  cache::SetPolicy of_set{};
  uint32_t ways = 0;

  uint64_t count_hits(const Trace& trace, uint64_t size) const {
    return whole != nullptr ? whole->count_hits(trace, size)
                            : hitrate::count_set_hits(trace, size, of_set, ways);
  }
};

Policy parse_policy(const std::string& word) {
  const size_t slash = word.find('/');
  if (slash == std::string::npos) {
    std::string names;
    for (const auto& whole : hitrate::whole_policies()) {
      if (word == whole.name) return {.name = word, .whole = &whole};
      names.append(names.empty() ? "" : ", ").append(whole.name);
    }
    refuse("no fully associative policy is called '" + word + "'; there are " + names +
           "; one of sets is NAME/WAYS");
  }
  for (const uint32_t ways : kWays)
    if (word.substr(slash + 1) == std::to_string(ways))
      return {.name = word, .of_set = must(cache::parse_set_policy(word.substr(0, slash))), .ways = ways};
  refuse("'" + word + "': sets have 8, 16 or 32 ways");
}

std::vector<Policy> parse_policies(std::string_view words) {
  std::vector<Policy> policies;
  if (words != "all") {
    for (const std::string& word : split(words)) policies.push_back(parse_policy(word));
    return policies;
  }
  for (const auto& whole : hitrate::whole_policies())
    policies.push_back({.name = std::string(whole.name), .whole = &whole});
  for (const uint32_t ways : kWays)
    for (const cache::SetPolicy policy : cache::kSetPolicies)
      policies.push_back(
          {.name = name_of(policy) + ("/" + std::to_string(ways)), .of_set = policy, .ways = ways});
  return policies;
}

Trace load(const std::string& words, uint64_t most) {
  const size_t colon = words.find(':');
  if (colon != std::string::npos)
    return must(hitrate::read_trace_file(must(hitrate::parse_format(words.substr(0, colon))),
                                         words.c_str() + colon + 1, most));
  return must(hitrate::generate(words, most));
}

}  // namespace

int main(int count, char** words) {
  if (count != 5)
    refuse("give a trace, the number of accesses, sizes and policies (bench/hitrate/hitrate.cc)");
  const uint64_t most = parse_count(words[2]);
  std::vector<Size> sizes;
  for (const std::string& word : split(words[3])) sizes.push_back(parse_size(word));
  const std::vector<Policy> policies = parse_policies(words[4]);
  const Trace trace = load(words[1], most);
  std::printf("{\"accesses\": %zu, \"pages\": %u, \"results\": [", trace.accesses.size(), trace.page_count);
  const char* separator = "";
  for (const Size& wish : sizes)
    for (const Policy& policy : policies) {
      const uint64_t size = wish.of(trace);
      std::printf("%s{\"policy\": \"%s\", \"size\": %lu, \"hits\": %lu}", separator, policy.name.c_str(),
                  size, policy.count_hits(trace, size));
      separator = ", ";
    }
  std::printf("]}\n");
  return 0;
}
