// The encrypt decorator: a device over a device that holds what it is given encrypted (xts_cipher.h).
//
//   write   encrypted into memory of the queue, 1 MiB at most, and written from there: what a caller writes may be in use, and be stored to.
//           A write of more than 256 KiB, or for which there is less room, goes in pieces, one after the other; without any it waits
//   read    decrypted where it was read to, before it is completed
//
// Invariants
//  1 a sector of 512 bytes is encrypted under its number, whatever the medium's blocks are: what was encrypted can be copied to another
//    medium. Sectors know nothing of each other: what a cut of power leaves of a write is what it would leave without encryption
//  2 a sector of zeros on the medium was never written, or discarded, and reads as zeros. (A written one that becomes zeros is not to be
//    expected before 2^4096 sectors have been written.)
//  3 whereabouts() are nowhere: what lies in the medium is no use to who looks into it
//  4 keys are in memory of the device's own, not in core files nor, where the system's limits allow it, in swap, and are overwritten at close
//
// Requests keep their contract otherwise: their errors, ends and resumptions, discards, flushes, registered memory (for reads) are the inner
// device's. It says nothing of who has changed the medium meanwhile: docs/security.md.
#pragma once
#include "storage/decorators/xts_cipher.h"
#include "storage/device.h"

namespace storage {

// Owns `inner` from now on, also on errors, and closes it when it is closed. The key is not used afterwards. Errors: ENOMEM.
// REQUIRES: XtsCipher::check_cpu().
base::Expected<Device*> make_encrypt_device(Device* inner, const XtsKey& key);

}  // namespace storage
