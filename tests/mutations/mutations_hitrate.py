"""Breakages of the set policies of src/cache and of what replays traces over them, bench/hitrate: a page that should have stayed goes, a
trace is not what its file says."""

LRU = "src/cache/sets/set_policy_lru.h"
LFU = "src/cache/sets/set_policy_lfu.h"
WAYS = "src/cache/sets/set_ways.h"
GCLOCK = "src/cache/sets/set_policy_gclock.h"
S3FIFO = "src/cache/sets/set_policy_s3fifo.h"
HISTORY = "src/cache/sets/set_history.h"
READ = "bench/hitrate/read_trace.cc"
WHOLE = "bench/hitrate/whole.cc"


def of_policy(name, gtest_filter, *patches):
    return {"name": name, "test": ("set_policy_test", gtest_filter), "patches": list(patches)}


def of_simulator(name, gtest_filter, *patches):
    return {"name": name, "test": ("hitrate_test", gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # Sets
    of_policy("uses change their order when stamps are renumbered", "*Lru*", (LRU, "rank += stamps[other] < stamps[way]", "rank += stamps[other] > stamps[way]")),
    of_policy("clock of a set begins anew at its end", "*Lru*", (LRU, "(now == kEnd ? kEnd : now + 1)", "(now + 1)")),
    of_policy("highest way of those used least often goes", "*Lfu*", (WAYS, "      least = std::min(least, uint32_t{numbers[way].get()} * kMaxWays + way);", "      least = std::min(least, uint32_t{numbers[way].get()} * kMaxWays + kMaxWays - 1 - way);"), (WAYS, "(uint32_t{numbers[way].get()} * kMaxWays + way) |", "(uint32_t{numbers[way].get()} * kMaxWays + kMaxWays - 1 - way) |"), (WAYS, "kNoWay : least % kMaxWays;", "kNoWay : kMaxWays - 1 - least % kMaxWays;")),
    of_policy("counts of pages that left are not halved", "*Nrlfu*", (LFU, "    if (hits_.add(way)) history_.halve();\n", "    hits_.add(way);\n")),
    of_policy("counts do not age", "*Alfu*", (LFU, "      this->halve();\n", "")),
    of_policy("page that comes back begins anew", "*Nrlfu*", (LFU, "    history_.take(fingerprint, hits);\n", "")),
    of_policy("page whose content is gone is remembered", "*Nrlfu*", (LFU, "removal == Removal::kEvicted && hits_.get(way) > 0", "hits_.get(way) > 0")),
    of_policy("history loses what left last", "*Nrlfu*:*S3fifo*", (HISTORY, "      begin_ = static_cast<uint8_t>((begin_ + 1) % Entries);\n", "")),
    of_policy("older of two pages that look the same comes back", "*Nrlfu*", (HISTORY, "    uint32_t place = count_;\n    while (place-- > 0) {\n", "    for (uint32_t place = 0; place < count_; ++place) {\n")),
    of_policy("spared page of a set goes", "*Gclock*", (GCLOCK, "      if ((candidates & way_bit(way)) == 0) continue;\n", "")),
    of_policy("hand takes from pages that it has not passed", "*Gclock*", (GCLOCK, "set(victim == kNoWay ? static_cast<uint8_t>(left - 1) : left);", "set(static_cast<uint8_t>(left == 0 ? 0 : left - 1));")),
    of_policy("one hit is enough for the main queue", "*S3fifo*", (S3FIFO, "hits <= (from_small ? 1 : 0)", "hits <= 0")),
    of_policy("page of the main queue is remembered", "*S3fifo*", (S3FIFO, "place < small_count_ && removal == Removal::kEvicted", "removal == Removal::kEvicted")),
    of_policy("page that is remembered enters the small queue", "*S3fifo*", (S3FIFO, "    if (ghosts_.take(fingerprint, unused))\n", "    if (ghosts_.take(fingerprint, unused) && false)\n")),
    of_policy("queue that only has spared pages gives the victim", "*S3fifo*", (S3FIFO, "const bool from_small = in_main == kNone || (in_small != kNone && small_count_ >= kSmall);", "const bool from_small = small_count_ >= kSmall;")),

    # Traces
    of_simulator("record that ends early read", "ReadTraceTest.*", (READ, "    if (content.size() - at < bytes)\n", "    if (content.size() - at < sizeof(Id))\n")),
    of_simulator("only the first page of a request counts", "ReadTraceTest.*", (READ, "page <= (begin + bytes - 1) / kPageBytes", "page <= begin / kPageBytes")),
    of_simulator("request that ends with a page asks for the next, too", "ReadTraceTest.*", (READ, "page <= (begin + bytes - 1) / kPageBytes", "page <= (begin + bytes) / kPageBytes")),
    of_simulator("empty lines are not counted", "ReadTraceTest.*", (READ, "      ++number_;\n", "      number_ += !line.empty();\n")),
    of_simulator("number with something behind it taken for one", "ReadTraceTest.*", (READ, "  return wrong == std::errc() && stop == end;\n", "  return wrong == std::errc();\n")),
    of_simulator("trace without an access accepted", "ReadTraceTest.*", (READ, "  if (to.is_empty()) return", "  if (false) return")),

    # Fully associative policies
    of_simulator("best policy goes by the last use", "WholeTest.*", (WHOLE, "    ends.emplace(next[i], page);\n", "    ends.emplace(i, page);\n")),
    of_simulator("hit in A1in counts as one of Am", "WholeTest.*", (WHOLE, "    if (queue == kIn) continue;\n", "")),
    of_simulator("page of Linux's inactive list is forgotten when it goes back", "WholeTest.*", (WHOLE, "    used[page] = true;\n    if (queue != kNone) continue;\n    if (pages.size(kInactive)", "    used[page] = queue != kActive;\n    if (queue != kNone) continue;\n    if (pages.size(kInactive)")),
    of_simulator("hand begins at the oldest page each time", "WholeTest.*", (WHOLE, "      if (hand == kNone) hand = pages.back(0);\n      while", "      hand = pages.back(0);\n      while")),
]
