// In a statically linked program nothing tells the C library's code from other libraries', except that operator
// new is never called by the C library: everybody else gets plain memory, as the C library must.
#include "spill/caller.h"

#include "spill/static/operator_new.h"

namespace spill {

Caller foreign_caller(const void*) {
  if (spillway_in_operator_new == 0) return Caller::kLibc;
  spillway_in_operator_new = 0;
  return Caller::kForeign;
}

void find_c_library() {}
base::Expected<void> check_search_order(bool (*)()) { return {}; }
bool is_replaced(const void*, const void*) { return false; }

const char* symbol_of(uint64_t) { return nullptr; }  // it exports nothing

}  // namespace spill
