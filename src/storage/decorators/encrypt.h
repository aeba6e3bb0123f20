// The encrypt decorator: a device over a device that holds everything encrypted (xts_cipher.h).
//
//   write   is encrypted into memory of the queue, 1 MiB at most, and written from there, since the caller may use and change its own
//           memory meanwhile. A write of more than 256 KiB, or of more than there is room for, goes in pieces, one after the other; while
//           there is no room at all it waits
//   read    is decrypted in the caller's memory before it completes
//
// Invariants
//  1 a sector of 512 bytes is encrypted under its number, whatever the medium's blocks are, so that the encrypted bytes can be copied to
//    another medium. Each sector is encrypted by itself: a power cut leaves of a write what it would leave without encryption
//  2 a sector of zeros on the medium was never written, or was discarded, and reads as zeros. (Written sectors whose encrypted bytes are
//    all zeros are not to be expected before 2^4096 sectors have been written.)
//  3 whereabouts() are nowhere: the bytes of the medium are of no use to another process that inspects this one
//  4 keys lie in memory of the device's own, which is kept out of core files and, where the system's limits allow it, out of swap; closing
//    the device overwrites them. A child of fork has them, too, and keeps its own out of both from when it opens its first queue
//
// Otherwise requests behave as those of the inner device: errors, ends and resumptions, discards, flushes, and registered memory (for
// reads). It does not notice if somebody else has changed the medium (docs/security.md).
#pragma once
#include "storage/decorators/xts_cipher.h"
#include "storage/device.h"

namespace storage {

// Owns `inner` from now on, also on errors, and closes it when it is closed. The key is not used afterwards. Errors: ENOMEM.
// REQUIRES: XtsCipher::check_cpu().
base::Expected<Device*> make_encrypt_device(Device* inner, const XtsKey& key);

}  // namespace storage
