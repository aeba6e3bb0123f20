// The mem* interceptors against the C library on equal data: all alignments at page edges, random
// lengths and overlaps, spilled and plain operands mixed.
#include <string.h>

#include "spill/testing/mirrored.h"

extern "C" {
void* __spill_memcpy(void*, const void*, size_t);
void* __spill_mempcpy(void*, const void*, size_t);
void* __spill_memmove(void*, const void*, size_t);
void* __spill_memset(void*, int, size_t);
int __spill_memcmp(const void*, const void*, size_t);
void* __spill_memchr(const void*, int, size_t);
void* __spill_memrchr(const void*, int, size_t);
void* __spill_rawmemchr(const void*, int);
void* __spill_memmem(const void*, size_t, const void*, size_t);
void* __spill_memccpy(void*, const void*, int, size_t);
void* __spill___memcpy_chk(void*, const void*, size_t, size_t);
}

namespace {

using fake::Mirrored;
using Memory = fake::SpillTest;

int sign(int value) { return (value > 0) - (value < 0); }

struct Cut {
  size_t at, length;
};

// A piece of a buffer that often starts or ends at a page edge.
Cut random_cut(std::mt19937_64& random, const Mirrored& buffer) {
  size_t at = random() % buffer.size();
  size_t end = at + random() % (buffer.size() - at + 1);
  const auto base = reinterpret_cast<uint64_t>(buffer.spilled);
  if (random() % 3 == 0) end = std::min<size_t>(buffer.size(), ((base + at + 4095) & ~size_t{4095}) - base);
  if (random() % 4 == 0) end = buffer.size();
  if (random() % 4 == 0) end = std::min(buffer.size(), at + random() % 40);
  if (end < at) end = at;
  return {at, end - at};
}

TEST_F(Memory, CopyBetweenSpilledAndPlain) {
  for (int round = 0; round < 400; ++round) {
    Mirrored to(9000, random() % 4096), from(9000, 4096 - 9000 % 4096);
    from.randomize(random, 250);
    Cut cut = random_cut(random, from);
    const size_t at = random() % (to.size() - cut.length + 1);
    EXPECT_EQ(__spill_memcpy(to.spilled + at, from.spilled + cut.at, cut.length), to.spilled + at);
    memcpy(&to.twin[at], &from.twin[cut.at], cut.length);
    to.expect_equal("memcpy");
    std::string plain(cut.length + 1, 'x');
    EXPECT_EQ(__spill_mempcpy(plain.data(), from.spilled + cut.at, cut.length), plain.data() + cut.length);
    EXPECT_EQ(plain, from.twin.substr(cut.at, cut.length) + "x");
    __spill_memcpy(to.spilled + at, plain.data(), cut.length);
    to.expect_equal("memcpy from plain");
  }
}

TEST_F(Memory, MoveOverlappingBothWays) {
  Mirrored buffer(20000, 4096 - 20000 % 4096);
  for (int round = 0; round < 1500; ++round) {
    if (round % 50 == 0) buffer.randomize(random, 251);
    Cut cut = random_cut(random, buffer);
    size_t to = random() % (buffer.size() - cut.length + 1);
    if (round % 2 == 0) {  // a short distance, so that they overlap
      const size_t distance = random() % 5000;
      to = random() % 2 == 0 && cut.at >= distance ? cut.at - distance : cut.at + distance;
      if (to + cut.length > buffer.size()) continue;
    }
    const auto move = round % 3 == 0 ? __spill_memcpy : __spill_memmove;
    EXPECT_EQ(move(buffer.spilled + to, buffer.spilled + cut.at, cut.length), buffer.spilled + to);
    memmove(&buffer.twin[to], &buffer.twin[cut.at], cut.length);
    buffer.expect_equal("memmove");
    if (HasFailure()) break;
  }
}

TEST_F(Memory, MoveEveryShortLength) {
  Mirrored buffer(5000, 4000);
  for (size_t n = 0; n <= 140; ++n)
    for (const int distance : {-70, -33, -16, -7, -1, 0, 1, 5, 8, 31, 64})
      for (const size_t at :
           {size_t{100}, 4192 - n, size_t{4160}}) {  // inside a page, up to an edge, across one
        buffer.randomize(random, 251);
        const size_t to = at + static_cast<size_t>(distance);
        EXPECT_EQ(__spill_memmove(buffer.spilled + to, buffer.spilled + at, n), buffer.spilled + to);
        memmove(&buffer.twin[to], &buffer.twin[at], n);
        buffer.expect_equal("memmove");
        if (HasFailure()) return;
      }
}

TEST_F(Memory, Set) {
  Mirrored buffer(13000, 4096 - 13000 % 4096);
  for (int round = 0; round < 500; ++round) {
    Cut cut = random_cut(random, buffer);
    const int byte = static_cast<int>(random());
    EXPECT_EQ(__spill_memset(buffer.spilled + cut.at, byte, cut.length), buffer.spilled + cut.at);
    memset(&buffer.twin[cut.at], byte, cut.length);
    buffer.expect_equal("memset");
  }
}

TEST_F(Memory, CompareUsesUnsignedBytesAcrossPages) {
  for (int round = 0; round < 600; ++round) {
    Mirrored a(9000, random() % 4096), b(9000, 4096 - 9000 % 4096);
    a.randomize(random, 256);
    b.fill(0, a.twin.data(), a.size());
    if (round % 4 != 0) {
      const char byte = static_cast<char>(random());
      b.fill(random() % b.size(), &byte, 1);
    }
    const size_t n = random() % (a.size() + 1);
    const int expected = sign(memcmp(a.twin.data(), b.twin.data(), n));
    EXPECT_EQ(sign(__spill_memcmp(a.spilled, b.spilled, n)), expected);
    EXPECT_EQ(sign(__spill_memcmp(a.twin.data(), b.spilled, n)), expected);
    EXPECT_EQ(sign(__spill_memcmp(b.spilled, a.spilled, n)), -expected);
  }
}

TEST_F(Memory, Find) {
  Mirrored buffer(10000, 4096 - 10000 % 4096);
  for (int round = 0; round < 1000; ++round) {
    if (round % 20 == 0) {
      buffer.randomize(random, 3);
      for (int i = 0; i < 3; ++i) {
        const char rare = 'r';
        buffer.fill(random() % buffer.size(), &rare, 1);
      }
      buffer.fill(buffer.size() - 1, "e", 1);
    }
    Cut cut = random_cut(random, buffer);
    const int byte = random() % 2 == 0 ? 'r' : static_cast<int>(random() % 4);
    auto offset = [](const void* found, const void* base) {
      return found == nullptr ? -1 : static_cast<const char*>(found) - static_cast<const char*>(base);
    };
    EXPECT_EQ(offset(__spill_memchr(buffer.spilled + cut.at, byte, cut.length), buffer.spilled),
              offset(memchr(&buffer.twin[cut.at], byte, cut.length), buffer.twin.data()));
    EXPECT_EQ(offset(__spill_memrchr(buffer.spilled + cut.at, byte, cut.length), buffer.spilled),
              offset(memrchr(&buffer.twin[cut.at], byte, cut.length), buffer.twin.data()));
    EXPECT_EQ(offset(__spill_rawmemchr(buffer.spilled + cut.at, 'e'), buffer.spilled),
              static_cast<long>(buffer.size()) - 1);
    // The C library's memchr stops at the byte, whatever the length says.
    EXPECT_EQ(offset(__spill_memchr(buffer.spilled + cut.at, 'e', ~size_t{0}), buffer.spilled),
              static_cast<long>(buffer.size()) - 1);
  }
}

TEST_F(Memory, Search) {
  Mirrored haystack(70000, 4096 - 70000 % 4096);
  haystack.randomize(random, 2);
  for (int round = 0; round < 300; ++round) {
    const size_t at = random() % haystack.size();
    const size_t m = std::min(haystack.size() - at, random() % (round % 10 == 0 ? 9000 : 30));
    Mirrored needle(m + 1, random() % 4096);
    needle.fill(0, &haystack.twin[at], m);
    if (round % 5 == 0 && m > 0) needle.fill(m - 1, "\7", 1);
    auto* expected = static_cast<char*>(memmem(haystack.twin.data(), haystack.size(), needle.twin.data(), m));
    auto* found = static_cast<char*>(__spill_memmem(haystack.spilled, haystack.size(), needle.spilled, m));
    if (expected == nullptr)
      EXPECT_EQ(found, nullptr);
    else
      EXPECT_EQ(found - haystack.spilled, expected - haystack.twin.data());
  }
}

// Searches look at windows; whatever their edges are, a match may lie across one.
TEST_F(Memory, SearchFindsTheOnlyMatchAnywhere) {
  Mirrored haystack(9000, 4000), needle(std::string("needle"));
  for (size_t at = 0; at + 6 <= haystack.size(); at += at % 1024 < 1016 && at > 4 ? 5 : 1) {
    haystack.fill(at, "needle", 6);
    EXPECT_EQ(__spill_memmem(haystack.spilled, haystack.size(), needle.spilled, 6), haystack.spilled + at);
    haystack.fill(at, "\0\0\0\0\0\0", 6);
  }
}

TEST_F(Memory, CopyToByte) {
  for (int round = 0; round < 200; ++round) {
    Mirrored to(9000, 4096 - 9000 % 4096), from(9000, random() % 4096);
    from.randomize(random, 255);
    const size_t n = random() % from.size();
    const int byte = static_cast<int>(random() % 255);
    auto* expected = static_cast<char*>(memccpy(to.twin.data(), from.twin.data(), byte, n));
    auto* end = static_cast<char*>(__spill_memccpy(to.spilled, from.spilled, byte, n));
    if (expected == nullptr)
      EXPECT_EQ(end, nullptr);
    else
      EXPECT_EQ(end - to.spilled, expected - to.twin.data());
    to.expect_equal("memccpy");
  }
}

// spill::copy, which the other interceptors and realloc use.
TEST_F(Memory, CopyHoldsBothSides) {
  for (int round = 0; round < 100; ++round) {
    Mirrored to(9000, random() % 4096), from(9000, random() % 4096);
    from.randomize(random, 250);
    Cut cut = random_cut(random, from);
    const size_t at = random() % (to.size() - cut.length + 1);
    spill::copy(to.spilled + at, from.spilled + cut.at, cut.length);
    memcpy(&to.twin[at], &from.twin[cut.at], cut.length);
    to.expect_equal("copy");
  }
}

TEST_F(Memory, CheckedCopyEndsTheProcess) {
  char* to = fake::allocate(16, 0);
  EXPECT_EQ(__spill___memcpy_chk(to, "0123456789abcdef", 16, 16), to);
  EXPECT_DEATH(__spill___memcpy_chk(to, "0123456789abcdef", 16, 15), "buffer overflow");
}

TEST_F(Memory, WiredRangeCoversAPrefixThatItsPinsAllow) {
  char* address = fake::allocate(100000, 4000);
  spill::WiredRange wired(address, 100000, spill::Need::kRead);
  EXPECT_EQ(wired.size(), 96 + 6 * 4096u);  // the fake runtime allows 7 pins
  size_t bytes = 0;
  for (const iovec& piece : wired.pieces()) bytes += piece.iov_len;
  EXPECT_EQ(bytes, wired.size());
  spill::WiredRange plain("plain", 5, spill::Need::kRead);
  EXPECT_EQ(plain.size(), 5u);
  EXPECT_EQ(spill::WiredRange(address, 0, spill::Need::kRead).pieces().size(), 0u);
}

// As if by several threads.
TEST_F(Memory, WiredRangesTogetherPinLittleMoreThanOneMay) {
  char* address = fake::allocate(100000, 4000);
  const spill::WiredRange first(address, 5000, spill::Need::kRead);
  const spill::WiredRange second(address, 100000, spill::Need::kRead);
  EXPECT_EQ(second.size(), 96 + 3 * 4096u);  // of 7 pins the first has 3
  const spill::WiredRange third(address, 100000, spill::Need::kRead);
  EXPECT_EQ(third.size(), 96u);  // one in any case
}

}  // namespace
