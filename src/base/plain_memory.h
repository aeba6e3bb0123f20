// Memory primitives of the runtime itself.
//
// The runtime lives inside users' processes and replaces memcpy and its kin there, so it must never
// call them under their own names. This header is force-included into every runtime file: the
// assembler then resolves the calls that the compiler makes up (struct copies, array
// initialisation) to the functions below.
// Cost class: inline, no I/O, no locks. Safe in signal handlers.
#pragma once
#include <stddef.h>

extern "C" {
void* spillway_plain_memcpy(void* to, const void* from, size_t n) noexcept;
void* spillway_plain_memmove(void* to, const void* from, size_t n) noexcept;
void* spillway_plain_memset(void* to, int byte, size_t n) noexcept;
int spillway_plain_memcmp(const void* a, const void* b, size_t n) noexcept;
void* spillway_plain_memchr(const void* in, int byte, size_t n) noexcept;
size_t spillway_plain_strlen(const char* text) noexcept;
}

#if !defined(SPILLWAY_KEEP_LIBC_MEMORY)
asm("memcpy = spillway_plain_memcpy\n"
    "memmove = spillway_plain_memmove\n"
    "memset = spillway_plain_memset\n"
    "memcmp = spillway_plain_memcmp\n"
    "bcmp = spillway_plain_memcmp\n"
    "memchr = spillway_plain_memchr\n"
    "strlen = spillway_plain_strlen\n");
#endif
