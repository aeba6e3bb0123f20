#include "storage/decorators/xts_cipher.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

// Hidden, so that no library exports them.
#define SPILLWAY_AES extern "C" __attribute__((visibility("hidden")))
// Lengths of keys are in bits; the functions return 0.
SPILLWAY_AES int spillway_aes_set_encrypt_key(const unsigned char* key, int bits, void* schedule);
SPILLWAY_AES int spillway_aes_set_decrypt_key(const unsigned char* key, int bits, void* schedule);
SPILLWAY_AES void spillway_aes_xts_encrypt(const void* from, void* to, size_t bytes, const void* schedule,
                                           const void* tweak_schedule, const uint64_t tweak[2]);
SPILLWAY_AES void spillway_aes_xts_decrypt(const void* from, void* to, size_t bytes, const void* schedule,
                                           const void* tweak_schedule, const uint64_t tweak[2]);
// What OpenSSL has found out about the CPU: nothing here, which only chooses the other one of two ways to expand a key.
SPILLWAY_AES const uint32_t spillway_aes_cpu[4];
const uint32_t spillway_aes_cpu[4] = {};

namespace storage {
namespace {

// Like memset, but the compiler cannot omit it where the memory is not read any more.
void wipe(void* memory, size_t bytes) {
  memset(memory, 0, bytes);
  asm volatile("" : : "r"(memory) : "memory");
}

constexpr int kKeyBits = 256;

}  // namespace

XtsKey::~XtsKey() { wipe(bytes, sizeof bytes); }

base::Expected<void> XtsCipher::check_cpu() {
  if (__builtin_cpu_supports("aes")) return {};
  return base::failure(ENOTSUP,
                       "storage: encrypt: this CPU has no AES instructions; encrypt below, by dm-crypt");
}

XtsCipher::XtsCipher(const XtsKey& key) {
  const unsigned char* const tweak_key = key.bytes + XtsKey::kBytes / 2;
  CHECK_EQ(spillway_aes_set_encrypt_key(key.bytes, kKeyBits, &encrypting_), 0);
  CHECK_EQ(spillway_aes_set_decrypt_key(key.bytes, kKeyBits, &decrypting_), 0);
  CHECK_EQ(spillway_aes_set_encrypt_key(tweak_key, kKeyBits, &tweaking_), 0);
}

XtsCipher::~XtsCipher() { wipe(this, sizeof *this); }

void XtsCipher::encrypt(const void* from, void* to, uint64_t sector) const {
  const uint64_t tweak[2] = {sector, 0};
  spillway_aes_xts_encrypt(from, to, kSectorBytes, &encrypting_, &tweaking_, tweak);
}

void XtsCipher::decrypt(const void* from, void* to, uint64_t sector) const {
  const uint64_t tweak[2] = {sector, 0};
  spillway_aes_xts_decrypt(from, to, kSectorBytes, &decrypting_, &tweaking_, tweak);
}

}  // namespace storage
