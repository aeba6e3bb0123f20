#include "storage/decorators/xts_cipher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "storage/testing/test_xts_vectors.h"

namespace storage {
namespace {

constexpr size_t kSector = XtsCipher::kSectorBytes;

TEST(XtsCipher, DoesWhatTheStandardSays) {
  ASSERT_TRUE(XtsCipher::check_cpu()) << "these tests need a CPU with AES instructions";
  XtsKey key;
  set_to_vectors_key(key);
  const XtsCipher cipher(key);
  unsigned char text[kSector], other[kSector], back[kSector];
  fill_with_vectors_text(text);
  for (const XtsVector& vector : kXtsVectors) {
    SCOPED_TRACE("vector " + std::to_string(vector.number));
    cipher.encrypt(text, other, vector.sector);
    EXPECT_TRUE(is_encrypted_as(vector, other)) << to_hex(other, kSector);
    cipher.decrypt(other, back, vector.sector);
    EXPECT_TRUE(std::ranges::equal(back, text));
    cipher.decrypt(other, other, vector.sector);
    EXPECT_TRUE(std::ranges::equal(other, text)) << "in place";
  }
}

TEST(XtsCipher, MemoryNeedNotBeAligned) {
  XtsKey key;
  set_to_vectors_key(key);
  const XtsCipher cipher(key);
  unsigned char text[kSector + 3], other[kSector + 5];
  fill_with_vectors_text(text + 3);
  cipher.encrypt(text + 3, other + 5, kXtsVectors[0].sector);
  EXPECT_TRUE(is_encrypted_as(kXtsVectors[0], other + 5));
}

// Each half of the key counts, and each bit of the sector's number does.
TEST(XtsCipher, DependsOnTheWholeKeyAndPlace) {
  unsigned char text[kSector] = {}, one[kSector], other[kSector];
  XtsKey key;
  set_to_vectors_key(key);
  const XtsCipher cipher(key);
  cipher.encrypt(text, one, 5);
  for (const size_t byte : {0, 31, 32, 63}) {
    XtsKey changed;
    set_to_vectors_key(changed);
    changed.bytes[byte] ^= 1;
    XtsCipher(changed).encrypt(text, other, 5);
    EXPECT_FALSE(std::ranges::equal(one, other)) << byte;
  }
  for (int bit = 0; bit < 64; ++bit) {
    cipher.encrypt(text, other, 5 ^ (uint64_t{1} << bit));
    EXPECT_FALSE(std::ranges::equal(one, other)) << bit;
  }
}

TEST(XtsCipher, LeavesNoKeyInMemory) {
  alignas(XtsCipher) unsigned char memory[sizeof(XtsCipher)];
  XtsKey key;
  set_to_vectors_key(key);
  auto* const cipher = new (memory) XtsCipher(key);
  EXPECT_TRUE(std::ranges::any_of(memory, [](unsigned char byte) { return byte != 0; }));
  cipher->~XtsCipher();
  EXPECT_TRUE(std::ranges::all_of(memory, [](unsigned char byte) { return byte == 0; }));

  alignas(XtsKey) unsigned char key_memory[sizeof(XtsKey)];
  auto* const own = new (key_memory) XtsKey;
  set_to_vectors_key(*own);
  EXPECT_NE(key_memory[0], 0);
  own->~XtsKey();
  EXPECT_TRUE(std::ranges::all_of(key_memory, [](unsigned char byte) { return byte == 0; }));
}

}  // namespace
}  // namespace storage
