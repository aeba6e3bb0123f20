// Fuzzes what reads core files. Whatever the file holds, its pages are read, or one line says why not; nothing else is thrown,
// and nothing runs past an end.
//
//   first byte even   the rest is the file
//   odd               the rest changes a small core file that is whole: pieces of 10 bytes, {where, 8 bytes to put there}; a last
//                     incomplete one says where the file ends
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "base/check.h"
#include "command.h"
#include "core_file.h"
#include "process.h"

namespace {

// One piece of memory from kPublished on: the published page, and behind it what that leads to.
struct Memory {
  alignas(base::kOsPageBytes) spill::Published published;
  alignas(base::kOsPageBytes) spill::ChunkUse chunk_use[64];
  uint64_t page_bits[64];
  uint32_t directory[64];
  bool is_fork_child;
  alignas(64) uint32_t leaves[1024];
  alignas(64) cache::Frame frames[4];
  alignas(base::kOsPageBytes) char pages[4][base::kOsPageBytes];
};

struct Core {
  Elf64_Ehdr header;
  Elf64_Phdr piece;
  alignas(base::kOsPageBytes) Memory memory;
};

uint64_t address_of(const Core& core, const void* member) {
  return spill::kPublished + (static_cast<const char*>(member) - reinterpret_cast<const char*>(&core.memory));
}

std::unique_ptr<Core> whole_core() {
  auto core = std::make_unique<Core>();
  std::memcpy(core->header.e_ident, ELFMAG, SELFMAG);
  core->header.e_type = ET_CORE;
  core->header.e_machine = EM_X86_64;
  core->header.e_phentsize = sizeof(Elf64_Phdr);
  core->header.e_phoff = offsetof(Core, piece);
  core->header.e_phnum = 1;
  core->piece.p_type = PT_LOAD;
  core->piece.p_offset = offsetof(Core, memory);
  core->piece.p_vaddr = spill::kPublished;
  core->piece.p_filesz = core->piece.p_memsz = sizeof(Memory);
  Memory& memory = core->memory;
  memory.chunk_use[0] = spill::ChunkUse::kSome;
  memory.page_bits[0] = 15;
  memory.directory[0] = 1;
  for (uint32_t i = 0; i < 4; ++i) {
    memory.leaves[i] = 0x80000000 | i;
    memory.frames[i].add();
    memory.frames[i].page = base::PageId{i};
    memory.frames[i].claim();
    memory.frames[i].loaded();
  }
  spill::Published& published = memory.published;
  published.magic = spill::Published::kMagic;
  published.layout_version = spill::kLayoutVersion;
  published.is_fork_child = address_of(*core, &memory.is_fork_child);
  published.storage_memory = address_of(*core, memory.pages);
  published.address_maps.chunk_use = address_of(*core, memory.chunk_use);
  published.address_maps.page_bits = address_of(*core, memory.page_bits);
  cache::Layout& layout = published.cache;
  layout.range_bytes = uint64_t{1} << spill::kAddressBits;
  layout.page_bytes = base::kOsPageBytes;
  layout.directory = address_of(*core, memory.directory);
  layout.partition_count = 1;
  layout.parts[0].leaves = address_of(*core, memory.leaves);
  layout.parts[0].frames = address_of(*core, memory.frames);
  layout.parts[0].memory = address_of(*core, memory.pages);
  layout.parts[0].frame_count = 4;
  return core;
}

// Pages read.
int read_all(const std::string& path) {
  int read_count = 0;
  try {
    tools::Process process(std::make_unique<tools::CoreFile>(path));
    if (process.is_fork_child()) return 0;
    alignas(base::kOsPageBytes) char page[base::kOsPageBytes];
    for (uint64_t at : {0, 1, 3, 600}) {
      const uint64_t address = at * base::kOsPageBytes;
      if (!process.is_allocated(address)) continue;
      process.read_os_page(address, page);
      ++read_count;
    }
  } catch (const std::runtime_error& error) {
    const std::string line = error.what();
    CHECK(!line.empty() && line.find('\n') == std::string::npos);
  }
  return read_count;
}

int read_bytes(int descriptor, const void* bytes, size_t size) {
  CHECK_EQ(ftruncate(descriptor, 0), 0);
  CHECK_EQ(pwrite(descriptor, bytes, size, 0), static_cast<ssize_t>(size));
  return read_all(tools::concat("/proc/self/fd/", descriptor));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int descriptor = memfd_create("core", MFD_CLOEXEC);
  static const std::unique_ptr<Core> whole = whole_core();
  static const bool once = read_bytes(descriptor, whole.get(), sizeof *whole) == 3;
  CHECK(once);
  if (size == 0) return 0;
  if (*data % 2 == 0) {
    read_bytes(descriptor, data + 1, size - 1);
    return 0;
  }
  auto core = std::make_unique<Core>();
  std::memcpy(static_cast<void*>(core.get()), whole.get(), sizeof *core);
  size_t core_bytes = sizeof *core;
  for (size_t i = 1; i + 2 <= size; i += 10) {
    uint16_t where = 0;
    std::memcpy(&where, data + i, sizeof where);
    if (i + 10 > size)
      core_bytes = where % sizeof *core;
    else
      std::memcpy(reinterpret_cast<char*>(core.get()) + where % (sizeof *core - 8), data + i + 2, 8);
  }
  read_bytes(descriptor, core.get(), core_bytes);
  return 0;
}
