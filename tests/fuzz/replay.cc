// Runs a fuzzer over inputs that are kept:  NAME_fuzz FILE [LINE]. Each line of FILE is one input in hexadecimal; LINE, from 1 on, is
// the only one to run. The ordinary build links each fuzzer with this instead of libFuzzer (spillway_fuzz() in cmake/SpillwayUnits.cmake).
//
// The inputs run in order in one child process, whose state one of them may leave to the next, as under libFuzzer. The parent says which
// line ended it: a CHECK, a signal, a sanitizer, or kHangSeconds without an end.
//
// Exit status: 0 all inputs ended well; 1 one did not; 2 FILE cannot be read, has no lines, or one that is no input.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr unsigned kHangSeconds = 240;

struct Input {
  size_t line = 0;
  std::vector<uint8_t> bytes;
};

[[noreturn]] void refuse(const char* path, size_t line, const char* why) {
  if (line == 0)
    fprintf(stderr, "replay: %s: %s\n", path, why);
  else
    fprintf(stderr, "replay: %s:%zu: %s\n", path, line, why);
  exit(2);
}

// The digit's value, or -1.
int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

std::vector<Input> read_inputs(const char* path) {
  std::ifstream file(path);
  if (!file) refuse(path, 0, strerror(errno));
  std::vector<Input> inputs;
  std::string text;
  for (size_t line = 1; std::getline(file, text); ++line) {
    if (text.empty() || text.size() % 2 != 0) refuse(path, line, "not a whole number of bytes");
    Input input = {.line = line, .bytes = {}};
    for (size_t at = 0; at < text.size(); at += 2) {
      const int high = value_of(text[at]), low = value_of(text[at + 1]);
      if (high < 0 || low < 0) refuse(path, line, "not hexadecimal in lower case");
      input.bytes.push_back(static_cast<uint8_t>(high << 4 | low));
    }
    inputs.push_back(std::move(input));
  }
  if (file.bad()) refuse(path, 0, "cannot be read");
  if (inputs.empty()) refuse(path, 0, "no inputs");
  return inputs;
}

// In the child. `line` is the one that runs.
[[noreturn]] void run(const std::vector<Input>& inputs, volatile size_t& line) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const Input& input : inputs) {
    line = input.line;
    alarm(kHangSeconds);
    LLVMFuzzerTestOneInput(input.bytes.data(), input.bytes.size());
  }
  alarm(0);
  line = 0;
  exit(0);
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 2 || argument_count > 3) {
    fprintf(stderr, "usage: %s FILE [LINE]\n", arguments[0]);
    return 2;
  }
  const char* const path = arguments[1];
  std::vector<Input> inputs = read_inputs(path);
  if (argument_count == 3) {
    const size_t only = strtoull(arguments[2], nullptr, 10);
    if (only == 0 || only > inputs.size()) refuse(path, 0, "has no such line");
    inputs = {inputs[only - 1]};
  }
  void* const shared =
      mmap(nullptr, sizeof(size_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) refuse(path, 0, strerror(errno));
  volatile size_t& line = *static_cast<volatile size_t*>(shared);
  const pid_t child = fork();
  if (child < 0) refuse(path, 0, strerror(errno));
  if (child == 0) run(inputs, line);
  int status = 0;
  if (waitpid(child, &status, 0) != child) refuse(path, 0, strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && line == 0) {
    printf("%zu inputs\n", inputs.size());
    return 0;
  }
  if (WIFSIGNALED(status))
    fprintf(stderr, "replay: signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    fprintf(stderr, "replay: exit status %d\n", WEXITSTATUS(status));
  if (line != 0) fprintf(stderr, "replay: it was this input: %s %s %zu\n", arguments[0], path, size_t{line});
  return 1;
}
