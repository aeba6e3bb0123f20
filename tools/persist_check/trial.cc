#include "trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <stdexcept>

#include "tools/spillway/descriptor.h"

namespace persist_check {
namespace {

using tools::Descriptor;

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw std::runtime_error(what + " '" + path + "': " + strerror(errno));
}

// Replaces each `word` of the text.
void replace(std::string& text, const std::string& word, const std::string& by) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
    text.replace(at, word.size(), by);
}

constexpr int kEndings[] = {SIGINT, SIGTERM, SIGHUP};

// The command that runs, or 0. It is in a group of its own, which a terminal's Ctrl-C does not reach.
constinit std::atomic<pid_t> running = 0;

// While it exists, signals that end this process end the command first.
class EndsWithUs {
 public:
  EndsWithUs() {
    struct sigaction action = {};
    action.sa_handler = end_both;
    sigemptyset(&action.sa_mask);
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (size_t i = 0; i < std::size(kEndings); ++i) {
      sigaction(kEndings[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(kEndings[i], &action, nullptr);
    }
  }
  ~EndsWithUs() {
    running = 0;
    for (size_t i = 0; i < std::size(kEndings); ++i) sigaction(kEndings[i], &before_[i], nullptr);
  }
  EndsWithUs(const EndsWithUs&) = delete;
  EndsWithUs& operator=(const EndsWithUs&) = delete;

 private:
  static void end_both(int number) {
    if (const pid_t child = running; child > 0) kill(-child, SIGKILL);
    raise(number);  // SA_RESETHAND has removed this handler
  }

  struct sigaction before_[std::size(kEndings)];
};

// Starts the command in a process group of its own, with its output in the file `said`. Throws.
pid_t start(const std::string& command, const std::string& said) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  // No signal must come between the start of the command and the store to `running`.
  sigset_t endings, before;
  sigemptyset(&endings);
  for (const int number : kEndings) sigaddset(&endings, number);
  pthread_sigmask(SIG_BLOCK, &endings, &before);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &before);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  const char* const arguments[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t child = 0;
  const int error =
      posix_spawn(&child, "/bin/sh", &actions, &attributes, const_cast<char* const*>(arguments), environ);
  if (error == 0) running = child;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    errno = error;
    fail("cannot start", command);
  }
  return child;
}

// Returns whether the child ended in time.
bool wait_for_end(pid_t child, std::chrono::milliseconds timeout) {
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  if (*process < 0) return true;  // the caller's waitpid() waits
  pollfd ended = {*process, POLLIN, 0};
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (poll(&ended, 1, static_cast<int>(std::min<int64_t>(left.count(), 1'000'000))) == 1) return true;
  }
}

}  // namespace

std::string quoted(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string inside = text;
  replace(inside, "'", "'\\''");
  return "'" + inside + "'";
}

Trial::Trial(const History& history, const TrialOptions& options) : history_(history), options_(options) {
  for (size_t i = 0; i < history.files.size(); ++i)
    write_image(image_path("image", i), history.files[i], history.files[i].initial);
}

Trial::~Trial() {
  for (size_t i = 0; i < history_.files.size(); ++i) unlink(image_path("image", i).c_str());
  unlink((options_.folder + "/recovery.txt").c_str());
}

std::string Trial::image_path(const std::string& name, size_t file) const {
  const std::string path = options_.folder + "/" + (name == "image" ? name : name + ".image");
  return file == 0 ? path : path + std::to_string(file + 1);
}

std::string Trial::command_for(const std::string& name, const std::string& marker) const {
  std::string command = options_.command;
  replace(command, "{}", quoted(image_path(name, 0)));
  for (size_t i = 0; i < history_.files.size(); ++i)
    replace(command, "{" + std::to_string(i + 1) + "}", quoted(image_path(name, i)));
  replace(command, "{marker}", quoted(marker));
  return command;
}

// Only pages that differ are written: the last recovery changed few, and the next image differs from the last one in few.
void Trial::write_image(const std::string& path, const File& file, const std::vector<Units>& content) const {
  struct stat status;
  // The command may have put something else in its place.
  if (lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) std::filesystem::remove_all(path);
  const Descriptor image(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (*image < 0) fail("cannot write", path);
  const uint64_t bytes = std::min<uint64_t>(file.image_bytes, content.size() * sizeof(Units));
  // Behind what was mapped there are zeros, whatever the last command wrote there.
  if (ftruncate(*image, static_cast<off_t>(bytes)) != 0 ||
      ftruncate(*image, static_cast<off_t>(file.image_bytes)) != 0)
    fail("cannot write", path);
  if (file.image_bytes == 0) return;
  const char* const wanted = reinterpret_cast<const char*>(content.data());
  void* const mapped = mmap(nullptr, file.image_bytes, PROT_READ, MAP_SHARED, *image, 0);
  if (mapped == MAP_FAILED) fail("cannot map", path);
  const char* const there = static_cast<const char*>(mapped);
  bool is_written = true;
  for (uint64_t at = 0; at < bytes && is_written; at += base::kOsPageBytes) {
    const uint64_t length = std::min<uint64_t>(base::kOsPageBytes, bytes - at);
    if (memcmp(there + at, wanted + at, length) == 0) continue;
    is_written = pwrite(*image, wanted + at, length, static_cast<off_t>(at)) == static_cast<ssize_t>(length);
  }
  munmap(mapped, file.image_bytes);
  if (!is_written) fail("cannot write", path);
}

Outcome Trial::run(const std::vector<std::vector<Units>>& content, const std::string& marker) {
  for (size_t i = 0; i < content.size(); ++i)
    write_image(image_path("image", i), history_.files[i], content[i]);
  const EndsWithUs while_it_runs;
  const pid_t child = start(command_for("image", marker), options_.folder + "/recovery.txt");
  const bool is_in_time = wait_for_end(child, options_.timeout);
  if (!is_in_time) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-child, SIGKILL);  // processes that it left behind could change the next image
  if (!is_in_time) return {false, "no end within " + std::to_string(options_.timeout.count()) + " ms"};
  if (WIFSIGNALED(status))
    return {false, "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")"};
  return {WEXITSTATUS(status) == 0, "exit status " + std::to_string(WEXITSTATUS(status))};
}

std::string Trial::keep(const std::vector<std::vector<Units>>& content, const std::string& marker,
                        const std::string& name) {
  for (size_t i = 0; i < content.size(); ++i) write_image(image_path(name, i), history_.files[i], content[i]);
  std::error_code ignored;  // the command's output is only for people
  std::filesystem::copy_file(options_.folder + "/recovery.txt", options_.folder + "/" + name + ".txt",
                             std::filesystem::copy_options::overwrite_existing, ignored);
  return command_for(name, marker);
}

}  // namespace persist_check
