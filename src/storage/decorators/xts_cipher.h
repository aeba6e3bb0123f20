// XtsCipher: AES-256 in XTS mode (IEEE 1619-2007, NIST SP 800-38E) for sectors of 512 bytes, the cipher of encrypted storage.
//
// The code is OpenSSL's for the CPU's AES instructions (cmake/SpillwayAes.cmake). It allocates nothing, calls nothing, and takes the same
// time for any key and data: some 0.1 us a sector. Any number of threads may use a cipher at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

namespace storage {

// A key; the destructor overwrites it.
struct XtsKey {
  static constexpr size_t kBytes = 64;

  XtsKey() = default;
  ~XtsKey();
  XtsKey(const XtsKey&) = delete;
  XtsKey& operator=(const XtsKey&) = delete;

  unsigned char bytes[kBytes] = {};
};

class XtsCipher {
 public:
  static constexpr size_t kSectorBytes = 512;

  // Does this CPU have the instructions? Errors: ENOTSUP.
  static base::Expected<void> check_cpu();
  // REQUIRES: check_cpu().
  explicit XtsCipher(const XtsKey& key);
  // Overwrites the expanded key.
  ~XtsCipher();
  XtsCipher(const XtsCipher&) = delete;
  XtsCipher& operator=(const XtsCipher&) = delete;

  // One sector. Its number is the tweak, so that equal bytes look different at each place. Others may store to `from` meanwhile: each of its
  // blocks of 16 bytes is encrypted as it was at some moment of the call. `to` may be `from`, and need not be aligned.
  void encrypt(const void* from, void* to, uint64_t sector) const;
  void decrypt(const void* from, void* to, uint64_t sector) const;

 private:
  // OpenSSL's AES_KEY.
  struct alignas(16) Schedule {
    unsigned char round_keys[15][16];
    int rounds;
  };

  Schedule encrypting_, decrypting_, tweaking_;
};

}  // namespace storage
