#include "sites.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "tools/spillway/elf_file.h"

namespace persist_check {
namespace {

// What a program prints to standard output; empty if it cannot be started. `arguments` begin with its name.
std::string output_of(const std::vector<std::string>& arguments) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  std::string text;
  if (error == 0) {
    char piece[4096];
    for (ssize_t got; (got = read(pipe_ends[0], piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR);)
      if (got > 0) text.append(piece, static_cast<size_t>(got));
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  close(pipe_ends[0]);
  return text;
}

// The address that debug information has for this offset in the file; the offset itself if no segment of the file contains it.
uint64_t linked_address(const std::string& path, uint64_t offset) {
  std::ifstream file(path, std::ios::binary);
  const auto header = tools::read_header(file);
  if (!header) return offset;
  const auto segments = tools::read_at<Elf64_Phdr>(file, header->e_phoff, header->e_phnum);
  if (!segments) return offset;
  for (const Elf64_Phdr& segment : *segments)
    if (segment.p_type == PT_LOAD && offset - segment.p_offset < segment.p_filesz)
      return offset - segment.p_offset + segment.p_vaddr;
  return offset;
}

std::string hex(uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

std::string last_part(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace

Sites::Sites(const History& history, std::span<const uint64_t> sites) {
  std::map<size_t, std::vector<uint64_t>> by_module;
  for (const uint64_t site : sites) {
    if (site == 0) continue;
    names_.emplace(site, Named{"code at " + hex(site), "", ""});
    for (size_t i = 0; i < history.modules.size(); ++i)
      if (site >= history.modules[i].begin && site < history.modules[i].end) {
        by_module[i].push_back(site);
        break;
      }
  }
  for (const auto& [module, of_it] : by_module) ask(history.modules[module], of_it);
  names_[0] = {"unknown code", "", ""};
}

void Sites::ask(const Module& module, const std::vector<uint64_t>& sites) {
  constexpr size_t kMaxAtOnce = 1000;
  for (size_t first = 0; first < sites.size(); first += kMaxAtOnce) {
    const size_t count = std::min(kMaxAtOnce, sites.size() - first);
    std::vector<std::string> addresses;
    for (size_t i = first; i < first + count; ++i) {
      const uint64_t offset = sites[i] - module.begin + module.offset;
      Named& named = names_[sites[i]];
      named.library = last_part(module.path);
      named.name = named.library + "+" + hex(offset);
      // A site is a return address, which lies behind the call.
      addresses.push_back(hex(linked_address(module.path, offset) - 1));
    }
    std::vector<std::string> ask = {"addr2line", "-a", "-f", "-i", "-C", "-e", module.path};
    ask.insert(ask.end(), addresses.begin(), addresses.end());
    std::string answer = output_of(ask);
    for (const char* const symbolizer : {"llvm-symbolizer-19", "llvm-symbolizer"}) {
      if (!answer.empty()) break;
      ask = {symbolizer, "--output-style=GNU", "--addresses", "--functions", "--inlines", "-C",
             "-e",       module.path};
      ask.insert(ask.end(), addresses.begin(), addresses.end());
      answer = output_of(ask);
    }
    take_answer(answer, std::span(sites).subspan(first, count));
  }
}

// The answer has, for each address, a line with it, and two lines for each function there, the innermost first: its name, and FILE:LINE.
// "??" stands for what is not known.
void Sites::take_answer(const std::string& answer, std::span<const uint64_t> sites) {
  std::istringstream lines(answer);
  std::string line, place;
  for (size_t next = 0; std::getline(lines, line);) {
    if (!line.starts_with("0x")) continue;
    if (next == sites.size() || !std::getline(lines, line) || !std::getline(lines, place)) return;
    Named& named = names_[sites[next++]];
    place = place.substr(0, place.find(" (discriminator"));
    if (!place.starts_with("??") && !place.ends_with(":?") && !place.ends_with(":0")) {
      named.place = place;
      named.name = last_part(place);
    }
    if (!line.starts_with("??")) named.name += " (" + line + ")";
  }
}

const Sites::Named& Sites::find(uint64_t site) const {
  const auto found = names_.find(site);
  return found == names_.end() ? names_.at(0) : found->second;
}

const std::string& Sites::name(uint64_t site) const { return find(site).name; }

const std::string& Sites::place(uint64_t site) const { return find(site).place; }

const std::string& Sites::library(uint64_t site) const { return find(site).library; }

}  // namespace persist_check
