// The mem* functions on spilled memory. Each goes piece by piece (a piece ends where one of the
// operands reaches the end of an OS page) and lets the C library's function do each piece, so it never touches a
// page that the call does not reach.
#include "spill/intercept/intercept.h"
#include "spill/intercept/quick.h"

extern "C" [[noreturn]] void __chk_fail(void);

namespace spill {

void buffer_overflow() { __chk_fail(); }

namespace {

// f(raw_a, raw_b, length) for the pieces of two ranges of n bytes in order; f returns false to stop.
template <class F>
void for_each_pair(const void* a, const void* b, size_t n, F&& f) {
  auto* x = static_cast<const char*>(a);
  auto* y = static_cast<const char*>(b);
  while (n > 0) {
    const size_t length = piece_length(y, piece_length(x, n));
    char* raw_x = raw(x, kHoldA);
    char* raw_y = raw(y, kHoldB);
    if (!f(raw_x, raw_y, length)) break;
    x += length, y += length, n -= length;
  }
  release(kHoldA);
  release(kHoldB);
}

// How many of the n bytes before `end` lie in the OS page of the last one. Not only for spilled ones: at a global's end plain bytes may follow.
size_t piece_length_before(const char* end, size_t n) {
  return std::min(n, ((reinterpret_cast<uint64_t>(end) - 1) & (base::kOsPageBytes - 1)) + 1);
}

// From the last byte to the first: right when `to` lies above `from`. Pieces that overlap are on the same OS page,
// hence at the same distance in its frame, so memmove handles the overlap.
void move_backward(char* to, const char* from, size_t n) {
  while (n > 0) {
    const size_t length = piece_length_before(from + n, piece_length_before(to + n, n));
    n -= length;
    memmove(raw(to + n, kHoldA), raw(from + n, kHoldB), length);
  }
  release(kHoldA);
  release(kHoldB);
}

void* move_spilled(void* to, const void* from, size_t n) {
  if (reinterpret_cast<uint64_t>(to) - reinterpret_cast<uint64_t>(from) < n)
    move_backward(static_cast<char*>(to), static_cast<const char*>(from), n);
  else
    for_each_pair(to, from, n,
                  [](char* t, char* f, size_t length) { return memmove(t, f, length) != nullptr; });
  return to;
}

__attribute__((noinline)) void* move_anyhow(void* to, const void* from, size_t n) {
  return plain(to, from) ? memmove(to, from, n) : move_spilled(to, from, n);
}

// The caller gets `to`, not its translation.
__attribute__((noinline)) void* move_in_page(void* to, char* raw_to, const char* raw_from, size_t n) {
  memmove(raw_to, raw_from, n);
  return to;
}

__attribute__((noinline)) void* set_spilled(void* to, int byte, size_t n) {
  for_each_piece(to, n, kHoldA,
                 [byte](char* t, size_t length) { return memset(t, byte, length) != nullptr; });
  return to;
}

int compare_spilled(const void* a, const void* b, size_t n) {
  int result = 0;
  for_each_pair(a, b, n,
                [&result](char* x, char* y, size_t length) { return (result = memcmp(x, y, length)) == 0; });
  return result;
}

__attribute__((noinline)) int compare_anyhow(const void* a, const void* b, size_t n) {
  return plain(a, b) ? memcmp(a, b, n) : compare_spilled(a, b, n);
}

__attribute__((noinline)) void* find_spilled(const void* memory, int byte, size_t n) {
  auto* start = static_cast<char*>(const_cast<void*>(memory));
  char* found = nullptr;
  size_t before = 0;
  for_each_piece(memory, n, kHoldA, [&](char* piece, size_t length) {
    if (auto* at = static_cast<char*>(memchr(piece, byte, length))) {
      found = start + before + (at - piece);
      return false;
    }
    before += length;
    return true;
  });
  return found;
}

__attribute__((noinline)) void* find_last_spilled(const void* memory, int byte, size_t n) {
  auto* start = static_cast<char*>(const_cast<void*>(memory));
  char* found = nullptr;
  while (n > 0 && found == nullptr) {
    const size_t length = piece_length_before(start + n, n);
    n -= length;
    char* piece = hold(start + n, kHoldA);
    if (auto* at = static_cast<char*>(memrchr(piece, byte, length))) found = start + n + (at - piece);
  }
  release(kHoldA);
  return found;
}

// Copies windows of the haystack to plain memory; they overlap by the needle's length less one byte. Windows start
// small because most searches end early.
__attribute__((noinline)) void* search_spilled(const void* haystack, size_t n, const void* needle, size_t m) {
  auto* start = static_cast<char*>(const_cast<void*>(haystack));
  if (m == 0) return start;
  if (m > n) return nullptr;
  PlainBytes plain_needle(needle, m, PlainBytes::kIn);
  for (size_t at = 0, window = std::max<size_t>(1024, 2 * m); at + m <= n;) {
    const size_t length = std::min(window, n - at);
    PlainBytes plain_haystack(start + at, length, PlainBytes::kIn);
    if (plain_needle.data() == nullptr || plain_haystack.data() == nullptr) return nullptr;
    if (auto* found = static_cast<char*>(memmem(plain_haystack.data(), length, plain_needle.data(), m)))
      return start + at + (found - plain_haystack.data());
    at += length - m + 1;
    window = std::max(std::min<size_t>(2 * window, 64 << 10), 2 * m);
  }
  return nullptr;
}

}  // namespace
}  // namespace spill

using spill::plain;

// The quick case calls nothing, or makes only a tail call, so that it saves no registers.
SPILL_EXPORT void* __spill_memcpy(void* to, const void* from, size_t n) {
  const spill::QuickPair quick(to, from, n);
  // Overlap is allowed, as in the C library's memcpy: some programs rely on that unknowingly.
  if (!quick.ready) [[unlikely]]
    return spill::move_anyhow(to, from, n);
  if (n > spill::kMaxMovedInline) return spill::move_in_page(to, quick.a, quick.b, n);
  spill::move_inline(quick.a, quick.b, n);
  return to;
}

SPILL_EXPORT void* __spill_memmove(void* to, const void* from, size_t n) {
  const spill::QuickPair quick(to, from, n);
  if (!quick.ready) [[unlikely]]
    return spill::move_anyhow(to, from, n);
  if (n > spill::kMaxMovedInline) return spill::move_in_page(to, quick.a, quick.b, n);
  spill::move_inline(quick.a, quick.b, n);
  return to;
}

SPILL_EXPORT void* __spill_memset(void* to, int byte, size_t n) {
  const spill::QuickRange quick(to, n);
  if (!quick.ready) [[unlikely]]
    return plain(to) ? memset(to, byte, n) : spill::set_spilled(to, byte, n);
  memset(quick.raw, byte, n);
  return to;
}

SPILL_EXPORT int __spill_memcmp(const void* a, const void* b, size_t n) {
  const spill::QuickPair quick(a, b, n);
  if (!quick.ready) [[unlikely]]
    return spill::compare_anyhow(a, b, n);
  return memcmp(quick.a, quick.b, n);
}

SPILL_EXPORT int __spill_bcmp(const void* a, const void* b, size_t n) { return __spill_memcmp(a, b, n); }

SPILL_EXPORT void* __spill_memchr(const void* memory, int byte, size_t n) {
  const spill::QuickRange quick(memory, n);
  if (!quick.ready) [[unlikely]]
    return plain(memory) ? const_cast<void*>(memchr(memory, byte, n)) : spill::find_spilled(memory, byte, n);
  auto* found = static_cast<char*>(memchr(quick.raw, byte, n));
  return found != nullptr ? const_cast<char*>(static_cast<const char*>(memory)) + (found - quick.raw)
                          : nullptr;
}

SPILL_EXPORT void* __spill_memrchr(const void* memory, int byte, size_t n) {
  if (plain(memory)) [[likely]]
    return const_cast<void*>(memrchr(memory, byte, n));
  return spill::find_last_spilled(memory, byte, n);
}

SPILL_EXPORT void* __spill_rawmemchr(const void* memory, int byte) {
  if (plain(memory)) [[likely]]
    return const_cast<void*>(rawmemchr(memory, byte));
  return spill::find_spilled(memory, byte, ~size_t{0});
}

SPILL_EXPORT void* __spill_mempcpy(void* to, const void* from, size_t n) {
  return static_cast<char*>(__spill_memcpy(to, from, n)) + n;
}

SPILL_EXPORT void* __spill_memmem(const void* haystack, size_t n, const void* needle, size_t m) {
  if (plain(haystack, needle)) [[likely]]
    return memmem(haystack, n, needle, m);
  return spill::search_spilled(haystack, n, needle, m);
}

SPILL_EXPORT void* __spill_memccpy(void* to, const void* from, int byte, size_t n) {
  if (plain(to, from)) [[likely]]
    return memccpy(to, from, byte, n);
  auto* found = static_cast<char*>(__spill_memchr(from, byte, n));
  const size_t length =
      found != nullptr ? static_cast<size_t>(found + 1 - static_cast<const char*>(from)) : n;
  spill::move_spilled(to, from, length);
  return found != nullptr ? static_cast<char*>(to) + length : nullptr;
}

SPILL_EXPORT void __spill_bcopy(const void* from, void* to, size_t n) { __spill_memmove(to, from, n); }
SPILL_EXPORT void __spill_bzero(void* to, size_t n) { __spill_memset(to, 0, n); }

SPILL_EXPORT void __spill_explicit_bzero(void* to, size_t n) {
  if (plain(to)) [[likely]]
    return explicit_bzero(to, n);
  spill::set_spilled(to, 0, n);
}

SPILL_EXPORT void* __spill___memcpy_chk(void* to, const void* from, size_t n, size_t room) {
  if (room < n) spill::buffer_overflow();
  return __spill_memcpy(to, from, n);
}

SPILL_EXPORT void* __spill___memmove_chk(void* to, const void* from, size_t n, size_t room) {
  if (room < n) spill::buffer_overflow();
  return __spill_memmove(to, from, n);
}

SPILL_EXPORT void* __spill___memset_chk(void* to, int byte, size_t n, size_t room) {
  if (room < n) spill::buffer_overflow();
  return __spill_memset(to, byte, n);
}

SPILL_EXPORT void* __spill___mempcpy_chk(void* to, const void* from, size_t n, size_t room) {
  if (room < n) spill::buffer_overflow();
  return __spill_mempcpy(to, from, n);
}

SPILL_EXPORT void __spill___explicit_bzero_chk(void* to, size_t n, size_t room) {
  if (room < n) spill::buffer_overflow();
  __spill_explicit_bzero(to, n);
}
