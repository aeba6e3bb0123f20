// For tests: the vectors of IEEE 1619-2007, annex B, for AES-256 and data units of 512 bytes, 10 to 14. All have the same key, and the bytes
// 0 to 255 twice as their text.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "storage/decorators/xts_cipher.h"

namespace storage {

struct XtsVector {
  int number;
  uint64_t sector;
  // The first and the last 64 bytes of what it is encrypted to.
  const char* first;
  const char* last;
};

inline constexpr XtsVector kXtsVectors[] = {
    {10, 0xff,
     "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b"
     "5d31e276f8fe4a8d66b317f9ac683f44680a86ac35adfc3345befecb4bb188fd",
     "1ad77f16f541dfd269d50d6a5f14fb0aab1cbb4c1550be97f7ab4066193c4caa"
     "773dad38014bd2092fa755c824bb5e54c4f36ffda9fcea70b9c6e693e148c151"},
    {11, 0xffff,
     "77a31251618a15e6b92d1d66dffe7b50b50bad552305ba0217a610688eff7e11"
     "e1d0225438e093242d6db274fde801d4cae06f2092c728b2478559df58e837c2",
     "6e0d7345c69ed50cdc2a8b332b1f8824108ac937eb050585608ee734097fc090"
     "54fbff89eeaeea791f4a7ab1f9868294a4f9e27b42af8100cb9d59cef9645803"},
    {12, 0xffffff,
     "e387aaa58ba483afa7e8eb469778317ecf4cf573aa9d4eac23f2cdf914e4e200"
     "a8b490e42ee646802dc6ee2b471b278195d60918ececb44bf79966f83faba049",
     "231cc949e5b96fe76ffc21063fddc83a6b8679c00d35e09576a875305bed5f36"
     "ed242c8900dd1fa965bc950dfce09b132263a1eef52dd6888c309f5a7d712826"},
    {13, 0xffffffff,
     "bf53d2dade78e822a4d949a9bc6766b01b06a8ef70d26748c6a7fc36d80ae4c5"
     "520f7c4ab0ac8544424fa405162fef5a6b7f229498063618d39f0003cb5fb8d1",
     "6cec37325759533ce8f25f367c87bb5578d667ae93f9e2fd99bcbc5f2fbba88c"
     "f6516139420fcff3b7361d86322c4bd84c82f335abb152c4a93411373aaa8220"},
    {14, 0xffffffffff,
     "64497e5a831e4a932c09be3e5393376daa599548b816031d224bbf50a818ed23"
     "50eae7e96087c8a0db51ad290bd00c1ac1620857635bf246c176ab463be30b80",
     "81d70ea737134cdfce93b6f82ae22423274e58a0821cc5502e2d0ab4585e94de"
     "6975be5e0b4efce51cd3e70c25a1fbbbd609d273ad5b0d59631c531f6a0a57b9"},
};

inline std::vector<unsigned char> from_hex(const std::string& text) {
  std::vector<unsigned char> bytes;
  for (size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<unsigned char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

inline std::string to_hex(const unsigned char* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

inline void set_to_vectors_key(XtsKey& key) {
  const auto bytes = from_hex(
      "2718281828459045235360287471352662497757247093699959574966967627"
      "3141592653589793238462643383279502884197169399375105820974944592");
  for (size_t i = 0; i < XtsKey::kBytes; ++i) key.bytes[i] = bytes[i];
}

inline void fill_with_vectors_text(unsigned char* sector) {
  for (size_t i = 0; i < XtsCipher::kSectorBytes; ++i) sector[i] = static_cast<unsigned char>(i);
}

// Is the sector what the vector's text is encrypted to?
inline bool is_encrypted_as(const XtsVector& vector, const unsigned char* sector) {
  constexpr size_t kCompared = 64;
  return to_hex(sector, kCompared) == vector.first &&
         to_hex(sector + XtsCipher::kSectorBytes - kCompared, kCompared) == vector.last;
}

}  // namespace storage
