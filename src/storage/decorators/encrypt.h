// The encrypt decorator: a device over another device, on which everything is encrypted (xts_cipher.h).
//
//   write   is encrypted into memory of the queue, 1 MiB at most, and written from there, since the caller may use and change its own
//           memory meanwhile. A write of more than 256 KiB, or of more than there is room for, is done in pieces, one after the other; while
//           there is no room at all it waits
//   read    is decrypted in the caller's memory before it completes
//
// Invariants
//  1 a sector of 512 bytes is encrypted under its number, whatever the medium's block size, so that the encrypted bytes can be copied to
//    another medium. Each sector is encrypted by itself: after a power cut a write is as complete as it would be without encryption
//  2 a sector of zeros on the medium was never written, or was discarded, and reads as zeros. (A written sector whose encrypted bytes are
//    all zeros is not to be expected before 2^4096 sectors have been written.)
//  3 whereabouts() are nowhere: the medium's bytes are of no use to another process that inspects this one
//  4 keys are in memory of the device's own, which is kept out of core files and, where the system's limits allow it, out of swap; closing
//    the device overwrites them. A child of fork has them, too, and keeps its copy out of both once it has opened its first queue
//
// Otherwise requests behave like those of the inner device: errors, ends and resumptions, discards, flushes, and registered memory (for
// reads). It does not notice if somebody else has changed the medium (docs/security.md).
#pragma once
#include "storage/decorators/xts_cipher.h"
#include "storage/device.h"

namespace storage {

// Takes over `inner`, even on errors, and closes it when it is closed itself. The key is not used afterwards. Errors: ENOMEM.
// REQUIRES: XtsCipher::check_cpu().
base::Expected<Device*> make_encrypt_device(Device* inner, const XtsKey& key);

}  // namespace storage
