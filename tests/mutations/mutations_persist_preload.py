"""Breakages of src/capi/persist/preload, and of what it is given: programs over libpmem that nobody compiled."""

PMEM = "src/capi/persist/preload/pmem.cc"
PMEM2 = "src/capi/persist/preload/pmem2.cc"
MAPPINGS = "src/capi/persist/preload/mappings.cc"
OWN = "src/persist/own/own.cc"


def mutation(name, *patches):
    return {"name": name, "test": ("ctest", "^persist_pmem$"), "patches": list(patches)}


MUTATIONS = [
    mutation("libpmem's drain is no fence", (PMEM, "SPILLWAY_EXPORT void pmem_drain(void) { __spillway_persist_fence_surely_from(SPILLWAY_SITE); }", "SPILLWAY_EXPORT void pmem_drain(void) {}")),
    mutation("libpmem's copy without a drain has one", (PMEM, "  __spillway_persist_copy_from(to, from, bytes, caches_of(flags), site);\n  if ((flags & kNoDrain) == 0) ", "  __spillway_persist_copy_from(to, from, bytes, caches_of(flags), site);\n  ")),
    mutation("libpmem's copy without a flush has one", (PMEM, "  if ((flags & kNoFlush) != 0) {\n    memmove", "  if ((flags & kNoFlush) > kNoFlush) {\n    memmove")),
    mutation("memmove of libpmem as memcpy", ("src/persist/copy.h", "  if (distance < bytes || -distance < bytes) caches = Caches::kThrough;\n", "")),
    mutation("what libpmem writes by the kernel is flushed by lines", (PMEM, "  if (__spillway_persist_is_file(address)) {", "  if (true) {")),
    mutation("unmapped memory stays a domain", (MAPPINGS, "int munmap(void* address, size_t bytes) noexcept {\n  __spillway_persist_end_mapping(address, bytes);", "int munmap(void* address, size_t bytes) noexcept {")),
    mutation("moved memory stays a domain", (MAPPINGS, "  va_end(more);\n  __spillway_persist_end_mapping(address, bytes);", "  va_end(more);")),
    mutation("memory that is mapped over stays a domain", (MAPPINGS, "  if ((flags & MAP_FIXED) != 0) __spillway_persist_end_mapping(address, bytes);\n", "")),
    mutation("a mapping is taken for what went before it without a word", (MAPPINGS, "  if ((flags & MAP_FIXED) == 0 && mapped != MAP_FAILED) __spillway_persist_end_mapping(mapped, bytes);\n", "")),
    mutation("what a mapping grows by is taken for what went before it without a word", (MAPPINGS, "  if ((flags & MREMAP_FIXED) == 0 && mapped != MAP_FAILED) __spillway_persist_end_mapping(mapped, new_bytes);\n", "")),
    mutation("memory that cannot be read stays a domain", (MAPPINGS, "  if ((protection & PROT_READ) == 0) __spillway_persist_end_mapping(address, bytes);\n", "")),
    mutation("pages of libpmem2 taken for memory", (PMEM2, "map_granularity.get()(map) != kPage);\n}\n\n// Does", "map_granularity.get()(map) <= kPage);\n}\n\n// Does")),
    mutation("mapping that grew is not found", (OWN, "  const uintptr_t begin = std::max(mapping.begin, gap.domain.begin);", "  const uintptr_t begin = mapping.begin;")),
    mutation("preloaded library finds no domains", (OWN, "  if (__spillway_persist_preloaded != nullptr) options.domain", "  if (false) options.domain")),
    mutation("no threads in a library that a preloaded one needs", ("src/sys/c_library.cc", "  return found != nullptr ? found : dlsym(RTLD_DEFAULT, name);", "  return found;")),
]
