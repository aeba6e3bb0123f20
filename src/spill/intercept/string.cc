// Strings on spilled memory: lengths, copies, comparisons, single-character searches.
// Searches for strings and tokens are in string_search.cc, numbers in number.cc.
#include <emmintrin.h>
#include <errno.h>

#include "spill/intercept/intercept.h"
#include "spill/intercept/quick.h"

extern "C" {
void* __spill_memcpy(void* to, const void* from, size_t n);
void* __spill_memset(void* to, int byte, size_t n);
char* __spill_strchrnul(const char* text, int c);
}

namespace spill {
namespace {

// Copies n bytes of text and appends a 0; returns where the 0 is.
char* put_string(char* to, const char* text, size_t n) {
  __spill_memcpy(to, text, n);
  store(to + n, '\0');
  return to + n;
}

// compare(raw_a, raw_b, length) is strncmp or strncasecmp, which looks at no byte beyond a 0.
template <class Compare>
int compare_strings(const char* a, const char* b, size_t n, Compare compare) {
  int result = 0;
  while (n > 0) {
    const size_t length = piece_length(b, piece_length(a, n));
    const char* raw_a = raw(a, kHoldA);
    const char* raw_b = raw(b, kHoldB);
    result = compare(raw_a, raw_b, length);
    if (result != 0 || strnlen(raw_a, length) < length) break;
    a += length, b += length, n -= length;
  }
  release(kHoldA);
  release(kHoldB);
  return result;
}

// Bytes before the first c or 0 among the `room` bytes at `raw`, which end with an OS page; `room` if there is none. Reads
// whole vectors, which lie in that page too.
size_t span_to(const char* raw, char c, size_t room) {
  const __m128i wanted = _mm_set1_epi8(c), zero = _mm_setzero_si128();
  const size_t skipped = reinterpret_cast<uint64_t>(raw) % sizeof(__m128i);
  const char* at = raw - skipped;
  unsigned ignored = (1u << skipped) - 1;
  for (const char* end = raw + room; at < end; at += sizeof(__m128i), ignored = 0) {
    const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i stops = _mm_or_si128(_mm_cmpeq_epi8(bytes, wanted), _mm_cmpeq_epi8(bytes, zero));
    const unsigned found = static_cast<unsigned>(_mm_movemask_epi8(stops)) & ~ignored;
    if (found != 0) return static_cast<size_t>(at - raw) + static_cast<size_t>(__builtin_ctz(found));
  }
  return room;
}

// The first c in a string, or its end.
struct Stop {
  char* at;
  char byte;  // c or 0
};
Stop find_or_end(const char* text, int c) {
  Stop stop;
  size_t length = 0;
  const auto look = [&](const char* piece, size_t n) {
    const size_t before = span_to(piece, static_cast<char>(c), n);
    length += before;
    if (before == n) return true;
    stop = {const_cast<char*>(text) + length, piece[before]};
    return false;
  };
  const size_t room = bytes_to_page_end(text);
  if (const QuickRange quick(text, room); quick.ready && !look(quick.raw, room)) return stop;
  length = 0;
  for_each_piece(text, ~size_t{0}, kHoldA, look);
  return stop;
}

char* find_last(const char* text, int c) {
  const char* last = nullptr;
  const char* at = text;
  for_each_piece(text, ~size_t{0}, kHoldA, [&](const char* piece, size_t n) {
    const size_t end = strnlen(piece, n);
    // The 0 at the end counts as a part of the string.
    if (auto* found = static_cast<const char*>(memrchr(piece, c, end < n ? end + 1 : n)))
      last = at + (found - piece);
    at += end;
    return end == n;
  });
  return const_cast<char*>(last);
}

char* duplicate(const char* text, size_t n) {
  auto* block = static_cast<char*>(__spill_malloc(n + 1));
  if (block == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  put_string(block, text, n);
  return block;
}

}  // namespace
}  // namespace spill

using spill::plain;

SPILL_EXPORT size_t __spill_strlen(const char* text) {
  if (plain(text)) [[likely]]
    return strlen(text);
  const size_t room = spill::bytes_to_page_end(text);
  if (const spill::QuickRange quick(text, room); quick.ready) {
    const size_t length = strnlen(quick.raw, room);
    if (length < room) return length;
  }
  return spill::string_length(text);
}

SPILL_EXPORT size_t __spill_strnlen(const char* text, size_t limit) {
  return spill::string_length(text, limit);
}

SPILL_EXPORT char* __spill_strcpy(char* to, const char* from) {
  if (plain(to, from)) [[likely]]
    return strcpy(to, from);
  spill::put_string(to, from, spill::string_length(from));
  return to;
}

SPILL_EXPORT char* __spill_stpcpy(char* to, const char* from) {
  if (plain(to, from)) [[likely]]
    return stpcpy(to, from);
  return spill::put_string(to, from, spill::string_length(from));
}

SPILL_EXPORT char* __spill_stpncpy(char* to, const char* from, size_t n) {
  if (plain(to, from)) [[likely]]
    return stpncpy(to, from, n);
  const size_t length = spill::string_length(from, n);
  __spill_memcpy(to, from, length);
  __spill_memset(to + length, 0, n - length);
  return to + length;
}

SPILL_EXPORT char* __spill_strncpy(char* to, const char* from, size_t n) {
  if (plain(to, from)) [[likely]]
    return strncpy(to, from, n);
  __spill_stpncpy(to, from, n);
  return to;
}

SPILL_EXPORT char* __spill_strcat(char* to, const char* from) {
  if (plain(to, from)) [[likely]]
    return strcat(to, from);
  spill::put_string(to + spill::string_length(to), from, spill::string_length(from));
  return to;
}

SPILL_EXPORT char* __spill_strncat(char* to, const char* from, size_t n) {
  if (plain(to, from)) [[likely]]
    return strncat(to, from, n);
  spill::put_string(to + spill::string_length(to), from, spill::string_length(from, n));
  return to;
}

SPILL_EXPORT int __spill_strcmp(const char* a, const char* b) {
  if (plain(a, b)) [[likely]]
    return strcmp(a, b);
  return spill::compare_strings(a, b, ~size_t{0}, [](auto... arguments) { return strncmp(arguments...); });
}

SPILL_EXPORT int __spill_strncmp(const char* a, const char* b, size_t n) {
  if (plain(a, b)) [[likely]]
    return strncmp(a, b, n);
  return spill::compare_strings(a, b, n, [](auto... arguments) { return strncmp(arguments...); });
}

SPILL_EXPORT int __spill_strcasecmp(const char* a, const char* b) {
  if (plain(a, b)) [[likely]]
    return strcasecmp(a, b);
  return spill::compare_strings(a, b, ~size_t{0},
                                [](auto... arguments) { return strncasecmp(arguments...); });
}

SPILL_EXPORT int __spill_strncasecmp(const char* a, const char* b, size_t n) {
  if (plain(a, b)) [[likely]]
    return strncasecmp(a, b, n);
  return spill::compare_strings(a, b, n, [](auto... arguments) { return strncasecmp(arguments...); });
}

SPILL_EXPORT char* __spill_strchrnul(const char* text, int c) {
  if (plain(text)) [[likely]]
    return const_cast<char*>(strchrnul(text, c));
  return spill::find_or_end(text, c).at;
}

SPILL_EXPORT char* __spill_strchr(const char* text, int c) {
  if (plain(text)) [[likely]]
    return const_cast<char*>(strchr(text, c));
  const spill::Stop stop = spill::find_or_end(text, c);
  return stop.byte == static_cast<char>(c) ? stop.at : nullptr;
}

SPILL_EXPORT char* __spill_index(const char* text, int c) { return __spill_strchr(text, c); }

SPILL_EXPORT char* __spill_strrchr(const char* text, int c) {
  if (plain(text)) [[likely]]
    return const_cast<char*>(strrchr(text, c));
  return spill::find_last(text, c);
}

SPILL_EXPORT char* __spill_rindex(const char* text, int c) { return __spill_strrchr(text, c); }

SPILL_EXPORT char* __spill_strdup(const char* text) {
  return spill::duplicate(text, spill::string_length(text));
}
SPILL_EXPORT char* __spill___strdup(const char* text) {
  return spill::duplicate(text, spill::string_length(text));
}
SPILL_EXPORT char* __spill_strndup(const char* text, size_t n) {
  return spill::duplicate(text, spill::string_length(text, n));
}
SPILL_EXPORT char* __spill___strndup(const char* text, size_t n) { return __spill_strndup(text, n); }

SPILL_EXPORT int __spill_strcoll(const char* a, const char* b) {
  spill::PlainString plain_a(a), plain_b(b);
  return strcoll(plain_a, plain_b);
}

SPILL_EXPORT size_t __spill_strxfrm(char* to, const char* from, size_t n) {
  spill::PlainString plain_from(from);
  if (plain(to)) return strxfrm(to, plain_from, n);
  // n may exceed the real room, of which only what the result needs may be touched: its length is guessed first.
  for (size_t room = std::min(n, 8 * strlen(plain_from) + 64);;) {
    spill::PlainBytes plain_to(to, room, spill::PlainBytes::kOut);
    const size_t length = strxfrm(plain_to.data(), plain_from, room);
    if (length < room) plain_to.store(length + 1);
    if (length < room || room == n) return length;
    room = std::min(n, length + 1);
  }
}

SPILL_EXPORT char* __spill_strerror_r(int number, char* to, size_t n) {
  if (plain(to)) [[likely]]
    return strerror_r(number, to, n);
  spill::PlainBytes plain_to(to, n, spill::PlainBytes::kInOut);
  const char* message = strerror_r(number, plain_to.data(), n);
  return message == plain_to.data() ? to : const_cast<char*>(message);
}

extern "C" int __xpg_strerror_r(int number, char* to, size_t n);
SPILL_EXPORT int __spill___xpg_strerror_r(int number, char* to, size_t n) {
  spill::PlainBytes plain_to(to, n, spill::PlainBytes::kInOut);
  return __xpg_strerror_r(number, plain_to.data(), n);
}

SPILL_EXPORT char* __spill___strcpy_chk(char* to, const char* from, size_t room) {
  if (spill::string_length(from) >= room) spill::buffer_overflow();
  return __spill_strcpy(to, from);
}

SPILL_EXPORT char* __spill___stpcpy_chk(char* to, const char* from, size_t room) {
  if (spill::string_length(from) >= room) spill::buffer_overflow();
  return __spill_stpcpy(to, from);
}

SPILL_EXPORT char* __spill___strncpy_chk(char* to, const char* from, size_t n, size_t room) {
  if (n > room) spill::buffer_overflow();
  return __spill_strncpy(to, from, n);
}

SPILL_EXPORT char* __spill___stpncpy_chk(char* to, const char* from, size_t n, size_t room) {
  if (n > room) spill::buffer_overflow();
  return __spill_stpncpy(to, from, n);
}

SPILL_EXPORT char* __spill___strcat_chk(char* to, const char* from, size_t room) {
  if (spill::string_length(to) + spill::string_length(from) >= room) spill::buffer_overflow();
  return __spill_strcat(to, from);
}

SPILL_EXPORT char* __spill___strncat_chk(char* to, const char* from, size_t n, size_t room) {
  if (spill::string_length(to) + spill::string_length(from, n) >= room) spill::buffer_overflow();
  return __spill_strncat(to, from, n);
}
