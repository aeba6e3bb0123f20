// The words of a benchmark's program: what they mean, and what it says of wrong ones. C++20, as random.h.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace load {

inline const char* program_name = "load";

[[noreturn]] inline void fail(int status, const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program_name, message.c_str());
  _exit(status);  // other threads are at work
}

// A word NAME=VALUE. Of one without "=" the value is empty.
struct Word {
  explicit Word(const char* word)
      : whole(word),
        name(whole.substr(0, whole.find('='))),
        text(word + name.size() + (name.size() < whole.size() ? 1 : 0)) {}
  std::string whole, name;
  const char* text;
};

inline uint64_t count_of(const std::string& name, const char* text, uint64_t most) {
  char* end = nullptr;
  const uint64_t number = std::strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != 0 || number > most)
    fail(2, name + " is a number up to " + std::to_string(most) + ", not '" + text + "'");
  return number;
}

inline void check_range(const std::string& name, uint64_t number, uint64_t least, uint64_t most) {
  if (number < least || number > most)
    fail(2, name + " is a number from " + std::to_string(least) + " to " + std::to_string(most));
}

inline double share_of(const std::string& name, const char* text, double most) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  if (end == text || *end != 0 || !(number >= 0 && number <= most))
    fail(2, name + " is a number from 0 to " + std::to_string(most) + ", not '" + text + "'");
  return number;
}

inline std::string word_of(const std::string& name, const char* text, std::vector<std::string> words) {
  std::string all;
  for (const std::string& word : words) {
    if (word == text) return word;
    all += (all.empty() ? "" : ", ") + word;
  }
  fail(2, name + " is one of " + all + ", not '" + text + "'");
}

}  // namespace load
