#include "core_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "command.h"

namespace tools {

CoreFile::CoreFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    file_.open(path, std::ios::binary);
    if (!file_) throw WrongInput(concat("cannot open '", printable(path), "': ", std::strerror(errno)));
  }
  const auto header = file_.is_open() ? read_header(file_) : std::nullopt;
  if (!header || header->e_type != ET_CORE)
    throw WrongInput(concat("'", printable(path), "' is neither a process id nor a core file"));
  if (header->e_phnum == PN_XNUM)
    throw WrongInput(concat("'", printable(path), "' has more than 65534 pieces; no more are understood"));
  const auto pieces = read_at<Elf64_Phdr>(file_, header->e_phoff, header->e_phnum);
  if (!pieces) throw WrongInput(concat("the core file '", printable(path), "' was cut short"));
  for (const Elf64_Phdr& piece : *pieces)
    if (piece.p_type == PT_LOAD) pieces_.push_back(piece);
  std::sort(pieces_.begin(), pieces_.end(),
            [](const Elf64_Phdr& a, const Elf64_Phdr& b) { return a.p_vaddr < b.p_vaddr; });
  uint64_t free_from = 0;
  for (const Elf64_Phdr& piece : pieces_) {
    uint64_t file_end = 0;
    if (piece.p_vaddr < free_from || piece.p_filesz > piece.p_memsz ||
        __builtin_add_overflow(piece.p_vaddr, piece.p_memsz, &free_from) ||
        __builtin_add_overflow(piece.p_offset, piece.p_filesz, &file_end))
      throw WrongInput(concat("the core file '", printable(path), "' is garbled: its pieces overlap"));
  }
}

bool CoreFile::read(uint64_t address, void* to, size_t bytes) {
  char* next = static_cast<char*>(to);
  while (bytes > 0) {
    const auto after =
        std::upper_bound(pieces_.begin(), pieces_.end(), address,
                         [](uint64_t value, const Elf64_Phdr& piece) { return value < piece.p_vaddr; });
    const Elf64_Phdr* piece = after == pieces_.begin() ? nullptr : &*(after - 1);
    const uint64_t within = piece == nullptr ? 0 : address - piece->p_vaddr;
    if (piece == nullptr || within >= piece->p_memsz) {
      problem_ = concat("has nothing at ", std::hex, std::showbase, address);
      return false;
    }
    if (within >= piece->p_filesz) {
      problem_ = concat("has nothing at ", std::hex, std::showbase, address,
                        ": /proc/PID/coredump_filter left that memory out");
      return false;
    }
    const auto n = std::min<uint64_t>(bytes, piece->p_filesz - within);
    const auto content = read_at<char>(file_, piece->p_offset + within, n);
    if (!content) {
      problem_ = concat("was cut short: it ends before what was at ", std::hex, std::showbase, address);
      return false;
    }
    std::memcpy(next, content->data(), n);
    next += n, address += n, bytes -= n;
  }
  return true;
}

}  // namespace tools
