// For tests of the process's own runtime: each runs in a process of its own (a child), since a process has one runtime.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <initializer_list>
#include <utility>

namespace persist {

// Runs it in a child with these environment variables; returns its exit status, or 128 + the signal that killed it.
inline int in_child(std::initializer_list<std::pair<const char*, const char*>> variables,
                    const std::function<int()>& run) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    const int status = run();
    fflush(nullptr);
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace persist

// For a function that returns 0 if all of them hold: otherwise it returns a number made of the line of the first that does not.
#define REQUIRE(condition) \
  if (!(condition)) return __LINE__ % 100 + 100;
