#include "spill/caller.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

#include <cstddef>

// Where the C library's code lies is where this lies.
extern "C" void* __libc_malloc(size_t);

namespace spill {
namespace {

constinit uint64_t libc_begin = 0;
constinit uint64_t libc_end = 0;

// dl_iterate_phdr's callback: notes where the C library's code lies.
int note_libc(dl_phdr_info* object, size_t, void*) {
  const auto known = reinterpret_cast<uint64_t>(&__libc_malloc);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const uint64_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || known - begin >= segment.p_memsz) continue;
    libc_begin = begin;
    libc_end = begin + segment.p_memsz;
    return 1;
  }
  return 0;
}

}  // namespace

Caller foreign_caller(const void* return_address) {
  return reinterpret_cast<uint64_t>(return_address) - libc_begin < libc_end - libc_begin ? Caller::kLibc
                                                                                         : Caller::kForeign;
}

void find_c_library() { dl_iterate_phdr(note_libc, nullptr); }

base::Expected<void> check_search_order() {
  const bool is_before = dlsym(RTLD_NEXT, "free") != nullptr;
  if (is_before && foreign_caller(dlsym(RTLD_DEFAULT, "free")) != Caller::kLibc) return {};
  Dl_info own;
  const bool known = dladdr(reinterpret_cast<void*>(&check_search_order), &own) != 0;
  return base::failure(
      ENOTSUP,
      "spillcc compiled a library of this program, but did not link the program, so that the C library "
      "comes first; link it with spillcc, or set LD_PRELOAD=",
      known ? own.dli_fname : "libspillway.so");
}

const char* symbol_of(uint64_t address) {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(address), &info) != 0 ? info.dli_sname : nullptr;
}

}  // namespace spill
