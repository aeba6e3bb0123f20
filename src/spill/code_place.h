// An address of code in terms that a user knows: the file that it was loaded from, the place in that file, and the function.
#pragma once
#include <cstdint>

#include "base/text.h"

namespace spill {

struct CodePlace {
  base::Text<256> module;  // path of the program or library; empty: made at run time, or unloaded since
  uint64_t offset;         // as addr2line, objdump and nm count; the address itself without a module
  base::Text<256> symbol;  // exported function that it is part of, as the linker calls it; empty: not known
};

// May take the loader's lock: not for handlers.
void find_code_place(uint64_t address, CodePlace& place);

}  // namespace spill
