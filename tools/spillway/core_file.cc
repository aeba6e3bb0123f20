#include "core_file.h"

#include <cerrno>
#include <cstring>

#include "command.h"

namespace tools {

CoreFile::CoreFile(const std::string& path) : file_(path, std::ios::binary) {
  if (!file_ && errno != ENOENT)
    throw WrongInput(concat("cannot open '", printable(path), "': ", std::strerror(errno)));
  const auto header = file_ ? read_header(file_) : std::nullopt;
  auto segments = header && header->e_type == ET_CORE
                      ? read_at<Elf64_Phdr>(file_, header->e_phoff, header->e_phnum)
                      : std::nullopt;
  if (!segments) throw WrongInput(concat("'", printable(path), "' is neither a process id nor a core file"));
  if (header->e_phnum == PN_XNUM)
    throw WrongInput(concat("'", printable(path), "' has more than 65534 pieces; no more are understood"));
  for (const Elf64_Phdr& segment : *segments)
    if (segment.p_type == PT_LOAD) segments_.push_back(segment);
}

bool CoreFile::read(uint64_t address, void* to, size_t bytes) {
  char* next = static_cast<char*>(to);
  while (bytes > 0) {
    const Elf64_Phdr* holder = nullptr;
    for (const Elf64_Phdr& segment : segments_)
      if (address - segment.p_vaddr < segment.p_filesz) holder = &segment;
    if (holder == nullptr) return false;
    const uint64_t within = address - holder->p_vaddr;
    const auto n = std::min<uint64_t>(bytes, holder->p_filesz - within);
    const auto content = read_at<char>(file_, holder->p_offset + within, n);
    if (!content) return false;
    std::memcpy(next, content->data(), n);
    next += n, address += n, bytes -= n;
  }
  return true;
}

}  // namespace tools
