#include "code_map.h"

#include <algorithm>
#include <sstream>

#include "command.h"
#include "elf_file.h"

namespace tools {
namespace {

constexpr uint64_t kMaxName = 1024;

// The name of the function that `address` of the file lies in, from the table of sections of this type.
std::string find_symbol(std::ifstream& file, const Elf64_Ehdr& header, uint32_t type, uint64_t address) {
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return "";
  const auto sections = read_at<Elf64_Shdr>(file, header.e_shoff, header.e_shnum);
  if (!sections) return "";
  for (const Elf64_Shdr& section : *sections) {
    if (section.sh_type != type || section.sh_link >= sections->size()) continue;
    const auto symbols = read_at<Elf64_Sym>(file, section.sh_offset, section.sh_size / sizeof(Elf64_Sym));
    if (!symbols) continue;
    const Elf64_Shdr& names = (*sections)[section.sh_link];
    for (const Elf64_Sym& symbol : *symbols) {
      const auto kind = ELF64_ST_TYPE(symbol.st_info);
      if ((kind != STT_FUNC && kind != STT_GNU_IFUNC) || address - symbol.st_value >= symbol.st_size ||
          symbol.st_name >= names.sh_size)
        continue;
      const auto name = read_at<char>(file, names.sh_offset + symbol.st_name,
                                      std::min(kMaxName, names.sh_size - symbol.st_name));
      if (name) return std::string(name->begin(), std::find(name->begin(), name->end(), '\0'));
    }
  }
  return "";
}

}  // namespace

const CodePlace& CodeMap::find(uint64_t address) {
  auto known = known_.find(address);
  if (known == known_.end()) known = known_.emplace(address, look_up(address)).first;
  return known->second;
}

CodePlace CodeMap::look_up(uint64_t address) const {
  CodePlace place;
  place.offset = address;
  // begin-end rwxp offset device inode    path
  std::ifstream mappings(concat("/proc/", pid_, "/maps"));
  uint64_t offset = 0;
  for (std::string line; std::getline(mappings, line);) {
    std::istringstream fields(line);
    uint64_t begin = 0, end = 0, from = 0;
    char dash = 0;
    std::string access, device, inode, path;
    fields >> std::hex >> begin >> dash >> end >> access >> from >> device >> inode >> std::ws;
    std::getline(fields, path);
    if (address < begin || address >= end || path.empty() || path.front() != '/') continue;
    place.module = path;
    offset = address - begin + from;
    break;
  }
  if (place.module.empty()) return place;
  std::ifstream file(concat("/proc/", pid_, "/root", place.module), std::ios::binary);
  const auto header = read_header(file);
  const auto segments = header ? read_at<Elf64_Phdr>(file, header->e_phoff, header->e_phnum) : std::nullopt;
  if (!segments) return place;
  for (const Elf64_Phdr& segment : *segments) {
    if (segment.p_type != PT_LOAD || offset - segment.p_offset >= segment.p_filesz) continue;
    place.offset = offset - segment.p_offset + segment.p_vaddr;
    place.symbol = find_symbol(file, *header, SHT_SYMTAB, place.offset);
    if (place.symbol.empty()) place.symbol = find_symbol(file, *header, SHT_DYNSYM, place.offset);
    break;
  }
  return place;
}

}  // namespace tools
