// Reading ELF files: input from outside, whose every offset and length is checked against the file.
#pragma once
#include <elf.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <vector>

namespace tools {

// The file's `count` objects at `offset`, or nothing when they do not lie in it.
template <class T>
std::optional<std::vector<T>> read_at(std::ifstream& file, uint64_t offset, uint64_t count) {
  constexpr uint64_t kMaxCount = 1 << 22;  // headers, names and symbols of real programs are fewer
  if (count > kMaxCount || offset > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  std::vector<T> objects(count);
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(objects.data()), static_cast<std::streamsize>(count * sizeof(T)));
  if (!file) return std::nullopt;
  return objects;
}

// Its header, when it is one for this machine with headers as <elf.h> has them.
inline std::optional<Elf64_Ehdr> read_header(std::ifstream& file) {
  auto header = read_at<Elf64_Ehdr>(file, 0, 1);
  if (!header) return std::nullopt;
  const Elf64_Ehdr& h = header->front();
  const bool is_ours =
      std::char_traits<char>::compare(reinterpret_cast<const char*>(h.e_ident), ELFMAG, SELFMAG) == 0 &&
      h.e_machine == EM_X86_64 && h.e_phentsize == sizeof(Elf64_Phdr);
  return is_ours ? std::optional(h) : std::nullopt;
}

}  // namespace tools
