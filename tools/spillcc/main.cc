// spillcc, spillc++: clang 19 with Spillway's plugin and runtime (command_line.h). One program; its name
// tells which language's driver to run. Replaces itself by clang.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "command_line.h"
#include "response_file.h"

namespace {

namespace fs = std::filesystem;

constexpr int kWrongInput = 2;
// The kernel limits arguments and environment together to a quarter of the stack limit, 2 MiB by default, and each
// argument to 128 KiB.
constexpr size_t kMaxArgumentBytes = 1 << 20;
constexpr size_t kMaxOneArgumentBytes = 128 << 10;
constexpr size_t kSpareBytes = 16 << 10;  // for clang's own name, and SPILLWAY_COMPILER_OPTIONS

int fail(const std::string& name, const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), message.c_str());
  return kWrongInput;
}

// The directory ../lib of an installation or build tree that holds the plugin.
fs::path find_libraries(const fs::path& program) {
  const fs::path root = program.parent_path().parent_path();
  for (const char* directory : {"lib", SPILLCC_LIBRARY_DIRECTORY}) {
    std::error_code error;
    if (fs::exists(root / directory / SPILLCC_PLUGIN, error)) return root / directory;
  }
  return root / "lib";
}

std::string quoted(const std::string& argument) {
  std::string result = "\"";
  for (const char c : argument) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"\n";
}

// How many bytes arguments may take beside the environment. As in the kernel, each string counts with a pointer to it.
size_t room_for_arguments() {
  size_t taken = kSpareBytes;
  for (char** variable = environ; *variable != nullptr; ++variable)
    taken += std::strlen(*variable) + 1 + sizeof(char*);
  const auto whole = static_cast<size_t>(sysconf(_SC_ARG_MAX));
  return std::min(kMaxArgumentBytes, whole - std::min(whole, taken));
}

// If the arguments are too long for the kernel, replaces them by a response file: an unnamed one that clang inherits.
// Returns false if it cannot be written.
bool shorten(std::vector<std::string>& arguments) {
  size_t bytes = 0, longest = 0;
  for (const std::string& argument : arguments) {
    bytes += argument.size() + 1 + sizeof(char*);
    longest = std::max(longest, argument.size() + 1);
  }
  if (bytes <= room_for_arguments() && longest <= kMaxOneArgumentBytes) return true;
  std::string text;
  for (const std::string& argument : arguments) text += quoted(argument);
  const int file = memfd_create("spillcc-arguments", 0);
  if (file < 0) return false;
  for (size_t written = 0; written < text.size();) {
    const ssize_t count = write(file, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    written += static_cast<size_t>(count);
  }
  arguments = {"@/proc/self/fd/" + std::to_string(file)};
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = fs::path(argv[0]).filename();
  const bool cxx = name.ends_with("++");
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return fail(name, "/proc/self/exe: " + error.message() + "; mount /proc");

  spillcc::Toolchain toolchain;
  toolchain.clang = cxx ? SPILLCC_CLANG "++" : SPILLCC_CLANG;
  if (access(toolchain.clang.c_str(), X_OK) != 0) toolchain.clang = cxx ? "clang++-19" : "clang-19";
  const fs::path libraries = find_libraries(program);
  toolchain.libraries = libraries;
  toolchain.plugin = libraries / SPILLCC_PLUGIN;

  const std::vector<std::string> given(argv + 1, argv + argc);
  if (std::ranges::find(given, "--help") != given.end()) {
    std::fputs(spillcc::kHelp, stdout);
    std::fflush(stdout);
  }
  auto planned = spillcc::plan(spillcc::expand_response_files(given), toolchain);
  if (!planned) return fail(name, planned.error());
  // Our own message for a missing file, instead of clang's or the linker's.
  for (const std::string& file :
       {toolchain.plugin, toolchain.libraries + "/libspillway-hide.so",
        toolchain.libraries + "/spillway-static.o", toolchain.libraries + "/libspillway_persist.so"}) {
    const bool needed = std::ranges::any_of(
        planned->arguments, [&](const std::string& a) { return a.find(file) != std::string::npos; });
    if (needed && access(file.c_str(), R_OK) != 0)
      return fail(name, file + ": " + std::strerror(errno) + "; build or install Spillway completely");
  }
  if (!shorten(planned->arguments))
    return fail(name, std::string("too many arguments: ") + std::strerror(errno));

  if (!planned->plugin_options.empty()) {
    setenv("SPILLWAY_COMPILER_OPTIONS", planned->plugin_options.c_str(), /*overwrite=*/1);
  }

  std::vector<char*> words = {toolchain.clang.data()};
  for (std::string& argument : planned->arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const char* const advice = errno == E2BIG ? "; make the environment smaller" : "; install clang 19";
  return fail(name, toolchain.clang + ": " + std::strerror(errno) + advice);
}
