// For tests of the process's own runtime: each is a process of its own (a child), since there is one runtime in each.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <initializer_list>
#include <utility>

namespace persist {

// Runs it in a child, in whose environment the variables are; returns its exit status, 128 + the signal that killed it.
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

// 0: all of them hold; else the line of the first that does not.
#define REQUIRE(condition) \
  if (!(condition)) return __LINE__ % 100 + 100;
