#include "server/memcache/base64.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

namespace server::memcache {
namespace {

std::optional<std::string> decode(std::string_view text) {
  std::string to(text.size() / 4 * 3, '?');
  const size_t bytes = decode_base64(text, std::span(to));
  if (bytes == 0) return std::nullopt;
  EXPECT_LE(bytes, to.size());
  return to.substr(0, bytes);
}

// By the book: the bits of the whole text, 6 at a time.
std::string encode(std::string_view bytes) {
  std::string bits, text;
  for (const unsigned char byte : bytes)
    for (int i = 7; i >= 0; --i) bits += (byte >> i & 1) != 0 ? '1' : '0';
  while (bits.size() % 6 != 0) bits += '0';
  for (size_t i = 0; i < bits.size(); i += 6)
    text += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[std::stoul(bits.substr(i, 6),
                                                                                          nullptr, 2)];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

TEST(Base64, TheExamplesOfItsStandard) {
  EXPECT_EQ(decode("Zg=="), "f");
  EXPECT_EQ(decode("Zm8="), "fo");
  EXPECT_EQ(decode("Zm9v"), "foo");
  EXPECT_EQ(decode("Zm9vYg=="), "foob");
  EXPECT_EQ(decode("Zm9vYmE="), "fooba");
  EXPECT_EQ(decode("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decode("+/+/"), "\xfb\xff\xbf");
  EXPECT_EQ(decode("AAA="), std::string(2, '\0'));
}

TEST(Base64, WhatNoEncoderWritesIsRefused) {
  for (const char* text : {"",
                           "Z",
                           "Zg",
                           "Zg=",
                           "Zg===",
                           "=",
                           "==",
                           "====",
                           "Z===",
                           "=Zg=",
                           "Zg==Zg==",
                           "Zm9v=",
                           "Zm9vZg",
                           "Zm-v",
                           "Zm_v",
                           "Zm 9",
                           "Zm9\n",
                           "Zh==",
                           "Zm9=",
                           "Zm\xff"
                           "v"})
    EXPECT_EQ(decode(text), std::nullopt) << text;
}

TEST(Base64, EveryBytesComeBack) {
  std::mt19937 random(7);
  for (size_t bytes = 1; bytes <= 187; ++bytes) {
    std::string from(bytes, '\0');
    for (char& c : from) c = static_cast<char>(random());
    EXPECT_EQ(decode(encode(from)), from) << bytes;
  }
}

// Each text of four characters out of eight: what is decoded is encoded to the same text.
TEST(Base64, WhatIsDecodedHasOneText) {
  constexpr std::string_view kCharacters = "AQgw/9=-";
  int decoded_count = 0;
  for (unsigned i = 0; i < 8 * 8 * 8 * 8; ++i) {
    std::string text;
    for (unsigned shift : {0, 3, 6, 9}) text += kCharacters[i >> shift & 7];
    const auto bytes = decode(text);
    if (!bytes) continue;
    ++decoded_count;
    EXPECT_EQ(encode(*bytes), text);
  }
  // Of six characters: four of any; or three, the last one of A, Q, g, w; or two, the last one of A, Q, g, w.
  EXPECT_EQ(decoded_count, 6 * 6 * 6 * 6 + 6 * 6 * 4 + 6 * 4);
}

}  // namespace
}  // namespace server::memcache
