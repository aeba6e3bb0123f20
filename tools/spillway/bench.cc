// spillway bench: becomes the driver of the benchmarks, which lies beside the programs in a build tree and in
// an installation: ../share/spillway/bench.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "command.h"

namespace tools {

int bench(Arguments arguments) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) throw WrongInput("cannot find the benchmarks: /proc/self/exe cannot be read; mount /proc");
  fs::path folder = program.parent_path();
  std::string driver = folder.parent_path() / "share/spillway/bench/driver/bench.py";
  if (!fs::exists(driver, error))
    throw WrongInput(concat("'", driver, "' is not there; build or install Spillway completely"));

  // -B: no caches of compiled scripts are left behind.
  std::vector<std::string> words = {"python3", "-B", driver, folder};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  throw WrongInput(concat("cannot start python3: ", std::strerror(errno), "; install it"));
}

}  // namespace tools
