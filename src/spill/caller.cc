#include "spill/caller.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstddef>

// A function of the C library, whose address tells where the library's code lies.
extern "C" void* __libc_malloc(size_t);

namespace spill {
namespace {

// Where code lies; nowhere until find_c_library was called.
struct Code {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool contains(uint64_t address) const { return address - begin < end - begin; }
};

constinit Code libc;
constinit Code loader;

// dl_iterate_phdr's callback: notes where the C library's code lies, and the loader's.
int note_code(dl_phdr_info* object, size_t, void*) {
  const auto known = reinterpret_cast<uint64_t>(&__libc_malloc);
  // The kernel tells no address of a loader that was itself told to run the program (ld.so PROGRAM).
  const bool is_loader = object->dlpi_addr != 0 && object->dlpi_addr == getauxval(AT_BASE);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const uint64_t begin = object->dlpi_addr + segment.p_vaddr;
    const Code code = {begin, begin + segment.p_memsz};
    if (code.contains(known)) libc = code;
    if (is_loader) loader = code;
  }
  return 0;
}

}  // namespace

Caller foreign_caller(const void* return_address) {
  const auto address = reinterpret_cast<uint64_t>(return_address);
  return libc.contains(address) || loader.contains(address) ? Caller::kLibc : Caller::kForeign;
}

void find_c_library() { dl_iterate_phdr(note_code, nullptr); }

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
// A sanitizer's malloc comes first, and counts as the C library's.
base::Expected<void> check_search_order(bool (*)()) { return {}; }
// So do its operators new and delete.
bool is_replaced(const void*, const void*) { return false; }
#else
base::Expected<void> check_search_order(bool (*heap_serves_others)()) {
  // As other libraries find it. RTLD_DEFAULT would search on behalf of this library, which finds its own names first (-Bsymbolic).
  void* const everybodys = dlopen(nullptr, RTLD_LAZY);
  auto* const malloc = reinterpret_cast<void* (*)(size_t)>(dlsym(everybodys, "malloc"));
  auto* const free = reinterpret_cast<void (*)(void*)>(dlsym(everybodys, "free"));
  const bool is_behind =
      dlsym(RTLD_NEXT, "free") == nullptr || foreign_caller(reinterpret_cast<void*>(malloc)) == Caller::kLibc;
  Dl_info about;
  if (is_behind) {
    const bool known = dladdr(reinterpret_cast<void*>(&check_search_order), &about) != 0;
    return base::failure(
        ENOTSUP,
        "spillcc compiled a library of this program, but did not link the program, so that the C "
        "library comes first; link it with spillcc, or set LD_PRELOAD=",
        known ? about.dli_fname : "libspillway.so");
  }
  // A malloc that comes first and calls the next one is fine: profilers do so.
  if (!heap_serves_others()) free(malloc(1));
  if (heap_serves_others()) return {};
  const bool known = dladdr(reinterpret_cast<void*>(malloc), &about) != 0;
  return base::failure(ENOTSUP, "malloc is that of ", known ? about.dli_fname : "something else",
                       " here, and blocks of two heaps do not go together; leave it out (of LD_PRELOAD?)");
}

namespace {

// Where the program or library that defines the function begins in memory; null: unknown. (A program that only calls a function may have a PLT
// entry that everyone takes for its address.)
const void* definer_of(const void* function) {
  Dl_info about;
  void* symbol = nullptr;
  if (function == nullptr || dladdr1(function, &about, &symbol, RTLD_DL_SYMENT) == 0 || symbol == nullptr)
    return nullptr;
  return static_cast<const ElfW(Sym)*>(symbol)->st_shndx != SHN_UNDEF ? about.dli_fbase : nullptr;
}

}  // namespace

bool is_replaced(const void* function, const void* neighbour) {
  const void* const own = definer_of(function);
  const void* const library = definer_of(neighbour);
  return own != nullptr && library != nullptr && own != library &&
         own != definer_of(dlsym(RTLD_NEXT, "malloc"));
}
#endif

const char* symbol_of(uint64_t address) {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(address), &info) != 0 ? info.dli_sname : nullptr;
}

}  // namespace spill
