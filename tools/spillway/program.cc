// Starting a program; and a look into its ELF file for the runtime that it uses.
#include "program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "elf_file.h"

namespace tools {
namespace {

// Whether a note of `owner` lies in the file's [offset, offset + bytes).
bool has_note(std::ifstream& file, uint64_t offset, uint64_t bytes, std::string_view owner) {
  auto notes = read_at<char>(file, offset, bytes);
  if (!notes) return false;
  std::string_view left(notes->data(), notes->size());
  while (left.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, left.data(), sizeof note);
    left.remove_prefix(sizeof note);
    if (left.substr(0, note.n_namesz) == std::string_view(owner.data(), owner.size() + 1)) return true;
    const uint64_t whole =
        ((uint64_t{note.n_namesz} + 3) & ~uint64_t{3}) + ((uint64_t{note.n_descsz} + 3) & ~uint64_t{3});
    left.remove_prefix(std::min<uint64_t>(whole, left.size()));
  }
  return false;
}

// Tries `path`; returns only when that failed, with errno.
void try_program(const std::string& path, std::vector<char*>& words) {
  if (access(path.c_str(), X_OK) == 0 && is_native_program(path))
    std::fprintf(
        stderr,
        "spillway: '%s' was not built by spillcc: the budget holds for what it starts or loads that was\n",
        printable(path).c_str());
  execve(path.c_str(), words.data(), environ);
}

}  // namespace

bool is_native_program(const std::string& path) {
  constexpr std::string_view kLibrary = "libspillway.so";
  constexpr const char kNoteOwner[] = "Spillway";  // src/spill/static/start.S
  std::ifstream file(path, std::ios::binary);
  const auto header = read_header(file);
  if (!header) return false;
  auto segments = read_at<Elf64_Phdr>(file, header->e_phoff, header->e_phnum);
  if (!segments) return false;
  std::vector<Elf64_Dyn> dynamic;
  for (const Elf64_Phdr& segment : *segments) {
    if (segment.p_type == PT_NOTE && has_note(file, segment.p_offset, segment.p_filesz, kNoteOwner))
      return false;
    if (segment.p_type != PT_DYNAMIC) continue;
    auto entries = read_at<Elf64_Dyn>(file, segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn));
    if (!entries) return false;
    dynamic = std::move(*entries);
  }
  // Names are given by their distance from an address; the segment that holds it says where that is in the
  // file.
  uint64_t names_address = 0;
  uint64_t names_bytes = 0;
  for (const Elf64_Dyn& entry : dynamic) {
    if (entry.d_tag == DT_STRTAB) names_address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) names_bytes = entry.d_un.d_val;
  }
  std::vector<char> names;
  for (const Elf64_Phdr& segment : *segments) {
    if (segment.p_type != PT_LOAD || names_address < segment.p_vaddr ||
        names_address - segment.p_vaddr >= segment.p_filesz)
      continue;
    auto read = read_at<char>(file, segment.p_offset + (names_address - segment.p_vaddr), names_bytes);
    if (!read) return false;
    names = std::move(*read);
  }
  for (const Elf64_Dyn& entry : dynamic) {
    if (entry.d_tag != DT_NEEDED || entry.d_un.d_val >= names.size()) continue;
    std::string_view name(names.data() + entry.d_un.d_val, names.size() - entry.d_un.d_val);
    if (name.substr(0, name.find('\0')) == kLibrary) return false;
  }
  return true;
}

void become(Arguments program) {
  std::vector<char*> words(program.begin(), program.end());
  words.push_back(nullptr);
  std::string name = program[0];
  std::string found = name;
  int error = ENOENT;
  if (name.find('/') != std::string::npos) {
    try_program(name, words);
    error = errno;
  } else {
    const char* variable = std::getenv("PATH");
    std::string_view path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
    // As with execvp: a file that may not be executed does not end the search, anything else does.
    for (size_t at = 0; at <= path.size() && !name.empty() && (error == ENOENT || error == EACCES);) {
      size_t end = std::min(path.find(':', at), path.size());
      std::string candidate = (end == at ? "." : std::string(path.substr(at, end - at))) + "/" + name;
      at = end + 1;
      try_program(candidate, words);
      if (errno == ENOENT || errno == ENOTDIR) continue;
      error = errno;
      found = candidate;
    }
  }
  std::string shown = printable(found);
  switch (error) {
    case ENOENT:
      if (access(name.c_str(), F_OK) == 0 && name.find('/') != std::string::npos)
        throw WrongInput(
            concat("the interpreter or loader that '", shown, "' names is not there; install it"));
      throw WrongInput(concat("program '", shown, "' not found; give its path, or a name that PATH finds"));
    case EACCES:
      if (std::filesystem::is_directory(found))
        throw WrongInput(concat("'", shown, "' is a directory; name a program in it"));
      throw WrongInput(concat("program '", shown, "' is not executable; allow it with chmod +x"));
    case ENOEXEC:
      throw WrongInput(
          concat("'", shown,
                 "' is no program for this machine; build it for x86-64 Linux, or begin a script with #!"));
    case E2BIG:
      throw WrongInput(concat("the arguments and environment of '", shown, "' are too long; shorten them"));
    default: throw WrongInput(concat("cannot start '", shown, "': ", std::strerror(error)));
  }
}

}  // namespace tools
