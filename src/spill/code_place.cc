#include "spill/code_place.h"

#include <fcntl.h>
#include <link.h>

#include "spill/caller.h"
#include "sys/kernel.h"

namespace spill {
namespace {

struct Search {
  uint64_t address;
  CodePlace& place;
};

// dl_iterate_phdr's callback.
int visit_object(dl_phdr_info* object, size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD ||
        search.address - (object->dlpi_addr + segment.p_vaddr) >= segment.p_memsz)
      continue;
    search.place.offset = search.address - object->dlpi_addr;
    if (object->dlpi_name != nullptr && object->dlpi_name[0] != 0) {
      search.place.module << object->dlpi_name;
      return 1;
    }
    // The program itself has no name there.
    char path[256];
    const long length = sys::syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof path);
    search.place.module << (length > 0 ? std::string_view(path, static_cast<size_t>(length)) : "program");
    return 1;
  }
  return 0;
}

}  // namespace

void find_code_place(uint64_t address, CodePlace& place) {
  place.offset = address;
  Search search = {address, place};
  dl_iterate_phdr(visit_object, &search);
  if (const char* symbol = symbol_of(address)) place.symbol << symbol;
}

}  // namespace spill
