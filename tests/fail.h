// For programs that a script starts and may kill: how they end if they find something wrong.
#pragma once
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

// Prints a line on standard error and ends the process with status 3.
[[noreturn, gnu::format(printf, 1, 2)]] inline void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  _exit(3);
}
