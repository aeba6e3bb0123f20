// A program's command line, and its start; and a look into its ELF file for what its memory comes from.
#include "program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "elf_file.h"
#include "sys/user_faults.h"

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

// The program that a script names in its first line; empty when `path` is no script.
std::string interpreter_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("#!")) return "";
  const size_t begin = line.find_first_not_of(" \t", 2);
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_first_of(" \t\r", begin) - begin);
}

// The names of libraries that the program needs. Nothing when they cannot be understood.
std::optional<std::vector<std::string>> needed_libraries(std::ifstream& file,
                                                         std::span<const Elf64_Phdr> segments) {
  std::vector<Elf64_Dyn> dynamic;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    auto entries = read_at<Elf64_Dyn>(file, segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn));
    if (!entries) return std::nullopt;
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
  std::optional<uint64_t> names_offset;
  for (const Elf64_Phdr& segment : segments)
    if (segment.p_type == PT_LOAD && names_address >= segment.p_vaddr &&
        names_address - segment.p_vaddr < segment.p_filesz)
      names_offset = segment.p_offset + (names_address - segment.p_vaddr);
  // One by one: with what a program exports, names may be many megabytes.
  constexpr uint64_t kMaxName = 1024;
  std::vector<std::string> needed;
  for (const Elf64_Dyn& entry : dynamic) {
    const uint64_t begin = entry.d_un.d_val;
    if (entry.d_tag != DT_NEEDED || !names_offset || begin >= names_bytes) continue;
    const auto name = read_at<char>(file, *names_offset + begin, std::min(kMaxName, names_bytes - begin));
    if (!name) return std::nullopt;
    needed.emplace_back(name->begin(), std::ranges::find(*name, '\0'));
  }
  return needed;
}

Kind kind_of_file(const std::string& path) {
  constexpr const char kNoteOwner[] = "Spillway";  // src/spill/static/start.S
  std::ifstream file(path, std::ios::binary);
  const auto identity = read_at<unsigned char>(file, 0, EI_NIDENT);
  if (identity && std::memcmp(identity->data(), ELFMAG, SELFMAG) == 0 && (*identity)[EI_CLASS] == ELFCLASS32)
    return Kind::k32Bit;
  const auto header = read_header(file);
  if (!header) return Kind::kUnknown;
  const auto segments = read_at<Elf64_Phdr>(file, header->e_phoff, header->e_phnum);
  if (!segments) return Kind::kUnknown;
  std::string loader;
  for (const Elf64_Phdr& segment : *segments) {
    if (segment.p_type == PT_NOTE && has_note(file, segment.p_offset, segment.p_filesz, kNoteOwner))
      return Kind::kCompiled;
    if (segment.p_type != PT_INTERP) continue;
    const auto name = read_at<char>(file, segment.p_offset, segment.p_filesz);
    if (!name) return Kind::kUnknown;
    loader.assign(name->data(), strnlen(name->data(), name->size()));
  }
  const auto needed = needed_libraries(file, *segments);
  if (!needed) return Kind::kUnknown;
  if (std::ranges::find(*needed, "libspillway.so") != needed->end()) return Kind::kCompiled;
  if (loader.empty()) return Kind::kStatic;
  return loader.ends_with("/ld-linux-x86-64.so.2") ? Kind::kDynamic : Kind::kForeign;
}

}  // namespace

ProgramLine parse_program_line(std::string_view subcommand, Arguments arguments,
                               const FindProgramOption& find) {
  ProgramLine line;
  LeadingOptions options(arguments);
  const std::string help = concat("spillway ", subcommand, " --help");
  for (std::string_view flag; !(flag = options.next()).empty();) {
    if (flag == "--help" || flag == "-h") {
      line.help = true;
      return line;
    }
    const std::optional<ProgramOption> option = find(flag);
    if (!option) throw WrongInput(concat(subcommand, " has no option '", printable(flag), "'; see ", help));
    if (!option->twice.empty() && line.values.contains(option->name))
      throw WrongInput(std::string(option->twice));
    const bool is_switched_on = option->is_switch && !options.has_value();
    line.values[option->name] = is_switched_on ? "1" : options.value(option->needs, help);
  }
  line.program = options.rest();
  return line;
}

std::string privilege_of(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return "";
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) return "setuid";
  if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getegid())
    return "setgid";
  if (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
    return "privileged (setcap)";
  return "";
}

void preload_into_children(std::string_view name, std::string_view instead) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path root = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  if (error)
    throw WrongInput(concat("cannot find ", name, ": /proc/self/exe cannot be read; mount /proc", instead));
  fs::path library;
  for (const char* directory : {"lib", SPILLWAY_LIBRARY_DIRECTORY}) {
    if (library.empty() && fs::exists(root / directory / name, error)) library = root / directory / name;
  }
  if (library.empty())
    throw WrongInput(
        concat(name, " is not beside this program; build or install Spillway completely", instead));
  // LD_PRELOAD is a list.
  if (library.native().find_first_of(": \t\n") != std::string::npos)
    throw WrongInput(concat("the loader takes no path with a blank or colon: '", printable(library.native()),
                            "'; install Spillway elsewhere", instead));
  const char* before = std::getenv("LD_PRELOAD");
  const std::string all =
      before != nullptr && *before != 0 ? concat(library.native(), ":", before) : library.native();
  setenv("LD_PRELOAD", all.c_str(), 1);
}

void check_file_to_write(std::string_view option, const std::string& path) {
  struct stat there = {};
  const bool is_there = stat(path.c_str(), &there) == 0;
  if (is_there && S_ISBLK(there.st_mode))
    throw WrongInput(concat(option, ": '", printable(path), "' is a disk; give a file"));
  // A pipe is not opened: its reader would see its end.
  if (is_there && S_ISFIFO(there.st_mode) && access(path.c_str(), W_OK) == 0) return;
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool created = file >= 0;
  // A file that is there keeps its content until then.
  if (!created && errno == EEXIST) file = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) {
    throw WrongInput(concat(option, ": cannot write '", printable(path), "': ", std::strerror(errno),
                            "; give a file in a directory that you may write to"));
  }
  close(file);
  if (created) unlink(path.c_str());
}

void check_pattern_to_write(std::string_view option, std::string_view pattern) {
  std::string path(pattern);
  if (size_t at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
  check_file_to_write(option, path);
}

namespace {

void say_native(const std::string& path, std::string_view why) {
  base::log({.name = "not_spilled", .fields = {{"program", path}}}, "'", printable(path),
            "' was not built by spillcc", why, ": the budget holds for what it starts or loads that was");
}

// Preload mode for the program at `path`, if it needs it. Throws WrongInput when it could not work.
void prepare_budget(const std::string& path, bool preload) {
  const Kind kind = kind_of_program(path);
  if (kind == Kind::kUnknown && access(path.c_str(), R_OK) != 0)
    return say_native(path, ", or may not be read to see");
  if (kind == Kind::kUnknown || kind == Kind::kCompiled) return;
  if (!preload) return say_native(path, "");
  constexpr std::string_view kInstead =
      "; build it with spillcc, or give --preload=0 to run it without a budget";
  if (kind == Kind::k32Bit)
    throw WrongInput(concat("'", printable(path),
                            "' is a 32-bit program, which has no room for spilled memory", kInstead));
  if (kind == Kind::kStatic)
    throw WrongInput(concat("'", printable(path),
                            "' is linked statically, so nothing can take its memory's place", kInstead));
  if (kind == Kind::kForeign)
    throw WrongInput(
        concat("'", printable(path), "' is not for glibc, whose memory alone can be spilled", kInstead));
  if (const std::string privilege = privilege_of(path); !privilege.empty())
    throw WrongInput(concat("'", printable(path), "' is ", privilege,
                            ", and the loader preloads nothing into it", kInstead));
  sys::UserFaults faults;
  if (auto opened = faults.open(); !opened)
    return say_native(path, concat(", and not spilled without it, since ", opened.error().message));
  faults.close();
  preload_into_children("libspillway-preload.so", ", or give --preload=0");
}

// Tries `path`; returns only when that failed, with errno.
void try_program(const std::string& path, std::vector<char*>& words, const Prepare& prepare) {
  if (access(path.c_str(), X_OK) == 0) prepare(path);
  execve(path.c_str(), words.data(), environ);
}

}  // namespace

Kind kind_of_program(const std::string& path) {
  constexpr int kMaxInterpreters = 4;  // as the kernel
  std::string program = path;
  for (int i = 0; i < kMaxInterpreters; ++i) {
    const std::string interpreter = interpreter_of(program);
    if (interpreter.empty()) break;
    program = interpreter;
  }
  return kind_of_file(program);
}

void become(Arguments program, bool preload) {
  become_prepared(program, [&](const std::string& path) { prepare_budget(path, preload); });
}

void become_prepared(Arguments program, const Prepare& prepare) {
  std::vector<char*> words(program.begin(), program.end());
  words.push_back(nullptr);
  std::string name = program[0];
  std::string found = name;
  int error = ENOENT;
  if (name.find('/') != std::string::npos) {
    try_program(name, words, prepare);
    error = errno;
  } else {
    const char* variable = std::getenv("PATH");
    std::string_view path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
    // As with execvp: a file that may not be executed does not end the search, anything else does.
    for (size_t at = 0; at <= path.size() && !name.empty() && (error == ENOENT || error == EACCES);) {
      size_t end = std::min(path.find(':', at), path.size());
      std::string candidate = (end == at ? "." : std::string(path.substr(at, end - at))) + "/" + name;
      at = end + 1;
      try_program(candidate, words, prepare);
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
    case EACCES: {
      struct stat facts = {};
      if (stat(found.c_str(), &facts) != 0)
        throw WrongInput(
            concat("'", shown, "' cannot be reached: a folder in its path is closed to this user"));
      if (S_ISDIR(facts.st_mode))
        throw WrongInput(concat("'", shown, "' is a directory; name a program in it"));
      if ((facts.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0)
        throw WrongInput(concat("program '", shown,
                                "' may not be executed by this user, or from its file system (noexec)"));
      throw WrongInput(concat("program '", shown, "' is not executable; allow it with chmod +x"));
    }
    case ENOEXEC:
      throw WrongInput(concat(
          "'", shown,
          "' is not a program for this machine; build it for x86-64 Linux, or begin a script with #!"));
    case E2BIG:
      throw WrongInput(concat("the arguments and environment of '", shown, "' are too long; shorten them"));
    default: throw WrongInput(concat("cannot start '", shown, "': ", std::strerror(error)));
  }
}

}  // namespace tools
