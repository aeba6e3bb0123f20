// Interceptors that only replace their spilled arguments: one line each.
#pragma once
#include "spill/intercept/intercept.h"
#include "spill/next.h"

using spill::plain;
using spill::PlainBytes;
using spill::PlainIn;
using spill::PlainObject;
using spill::PlainString;

// Calls the C library's function with `arguments`, in which Plain* objects stand for the spilled ones; copies
// live until it returned.
#define SPILL_CALL(T, name, parameters, arguments) \
  SPILL_EXPORT T __spill_##name parameters { return name arguments; }

// The same for a name that the runtime exports too: calls the C library's function of that name.
#define SPILL_NEXT(T, name, parameters, arguments) \
  SPILL_EXPORT T __spill_##name parameters { return LIBC(name) arguments; }

// SPILL_CALL for a call that may wait: clears all slots first.
#define SPILL_WAIT(T, name, parameters, arguments) \
  SPILL_EXPORT T __spill_##name parameters {       \
    spill::clear_slots();                          \
    return name arguments;                         \
  }
