// Libraries that the program closes: their globals leave spilled memory with them.
#include <dlfcn.h>

#include "spill/globals.h"
#include "spill/intercept/intercept.h"
#include "spill/next.h"
#include "spill/thread.h"

SPILL_EXPORT int __spill_dlclose(void* library) {
  const spill::ClosingLibraries closing;
  const spill::Busy busy;  // destructors run while the dynamic linker's lock is held
  return LIBC(dlclose)(library);
}
