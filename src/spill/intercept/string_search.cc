// Searches for strings, character sets and tokens in spilled strings.
#include "spill/intercept/intercept.h"

namespace spill {
namespace {

// Copies windows of the haystack to plain memory; they overlap by the needle's length less one byte. They start
// small because most searches end early, and the haystack may be far longer than what is searched. The first ones
// end with a page, as in first_window().
template <class Find>
char* search_string(const char* haystack, const char* needle, Find find) {
  PlainString plain_needle(needle);
  if (plain(haystack)) return find(const_cast<char*>(haystack), plain_needle);
  const size_t m = strlen(plain_needle);
  for (size_t at = 0, kept = 0, step = std::max<size_t>(512, 2 * m);;) {
    const size_t window = kept + (at < kLongTextBytes ? first_window(haystack + at + kept, step) : step);
    const size_t length = string_length(haystack + at, window);
    Scratch text(length + 1);
    if (text.data() == nullptr) return nullptr;
    copy(text.data(), haystack + at, length);
    text.data()[length] = 0;
    if (char* found = find(text.data(), plain_needle))
      return const_cast<char*>(haystack) + at + (found - text.data());
    if (length < window) return nullptr;
    kept = std::min(length, m - 1);
    at += length - kept;
    step = std::max(std::min<size_t>(2 * step, 32 << 10), 2 * m);
  }
}

struct CharacterSet {
  explicit CharacterSet(const char* characters) {
    PlainString plain_characters(characters);
    for (const char* c = plain_characters; *c != 0; ++c) member[static_cast<unsigned char>(*c)] = true;
  }
  bool member[256] = {};
};

// Bytes of text before the first that is (members true) or is not in the set, or before its end.
size_t span_until(const char* text, const CharacterSet& set, bool members) {
  size_t length = 0;
  for_each_piece(text, ~size_t{0}, kHoldA, [&](const char* piece, size_t n) {
    size_t i = 0;
    while (i < n && piece[i] != 0 && set.member[static_cast<unsigned char>(piece[i])] != members) ++i;
    length += i;
    return i == n;
  });
  return length;
}

// span(raw_text, set), which is strspn or strcspn, for a string that ends on the OS page it begins on.
template <class Span>
bool span_in_page(const char* text, const char* set, size_t& length, Span span) {
  if (!plain(set)) return false;
  const size_t room = bytes_to_page_end(text);
  const char* raw = hold(text, kHoldA);
  const bool ends = strnlen(raw, room) < room;
  if (ends) length = span(raw, set);
  release(kHoldA);
  return ends;
}

// Ends the token at `text` and says where the next search starts.
char* cut_token(char* text, const CharacterSet& set, char* at_end) {
  char* end = text + span_until(text, set, true);
  if (load(end) == 0) return at_end == nullptr ? nullptr : end;
  store(end, '\0');
  return end + 1;
}

}  // namespace
}  // namespace spill

using spill::plain;

SPILL_EXPORT char* __spill_strstr(const char* haystack, const char* needle) {
  if (plain(haystack, needle)) [[likely]]
    return const_cast<char*>(strstr(haystack, needle));
  return spill::search_string(haystack, needle,
                              [](char* text, const char* part) { return strstr(text, part); });
}

SPILL_EXPORT char* __spill_strcasestr(const char* haystack, const char* needle) {
  if (plain(haystack, needle)) [[likely]]
    return const_cast<char*>(strcasestr(haystack, needle));
  return spill::search_string(haystack, needle,
                              [](char* text, const char* part) { return strcasestr(text, part); });
}

SPILL_EXPORT size_t __spill_strspn(const char* text, const char* set) {
  if (plain(text, set)) [[likely]]
    return strspn(text, set);
  size_t length;
  if (spill::span_in_page(text, set, length, [](auto... arguments) { return strspn(arguments...); }))
    return length;
  return spill::span_until(text, spill::CharacterSet(set), false);
}

SPILL_EXPORT size_t __spill_strcspn(const char* text, const char* set) {
  if (plain(text, set)) [[likely]]
    return strcspn(text, set);
  size_t length;
  if (spill::span_in_page(text, set, length, [](auto... arguments) { return strcspn(arguments...); }))
    return length;
  return spill::span_until(text, spill::CharacterSet(set), true);
}

SPILL_EXPORT char* __spill_strpbrk(const char* text, const char* set) {
  if (plain(text, set)) [[likely]]
    return const_cast<char*>(strpbrk(text, set));
  const char* found = text + spill::span_until(text, spill::CharacterSet(set), true);
  return spill::load(found) != 0 ? const_cast<char*>(found) : nullptr;
}

SPILL_EXPORT char* __spill_strtok_r(char* text, const char* set, char** next) {
  char* at = text != nullptr ? text : spill::load(next);
  if (at == nullptr) return nullptr;
  if (plain(at, set, next)) [[likely]]
    return strtok_r(text, set, next);
  const spill::CharacterSet separators(set);
  at += spill::span_until(at, separators, false);
  if (spill::load(at) == 0) {
    spill::store(next, at);
    return nullptr;
  }
  spill::store(next, spill::cut_token(at, separators, at));
  return at;
}

SPILL_EXPORT char* __spill___strtok_r(char* text, const char* set, char** next) {
  return __spill_strtok_r(text, set, next);
}

SPILL_EXPORT char* __spill_strtok(char* text, const char* set) {
  static char* next;
  return __spill_strtok_r(text, set, &next);
}

SPILL_EXPORT char* __spill_strsep(char** text, const char* set) {
  char* at = spill::load(text);
  if (at == nullptr || plain(at, set, text)) [[likely]]
    return at == nullptr ? nullptr : strsep(text, set);
  spill::store(text, spill::cut_token(at, spill::CharacterSet(set), nullptr));
  return at;
}
