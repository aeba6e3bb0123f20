// Error: an operating error (storage, memory, permissions) with the one line that a user reads.
// A normal outcome such as "full" or "not resident" is an enum of the call, never an Error.
#pragma once
#include <cerrno>
#include <expected>

#include "base/text.h"

namespace base {

struct Error {
  int number = EIO;        // an errno value
  char message[240] = {};  // what, where, what to do; no newline

  // Composes the message from `parts`, in order; what does not fit is cut off.
  template <class... Parts>
  static Error of(int number, const Parts&... parts) {
    Error error;
    error.number = number;
    TextRef text(error.message, sizeof error.message);
    (text << ... << parts);
    return error;
  }
};

template <class T>
using Expected = std::expected<T, Error>;

template <class... Parts>
std::unexpected<Error> failure(int number, const Parts&... parts) {
  return std::unexpected<Error>(Error::of(number, parts...));
}

// "No such file or directory" and the like for the errno values that the runtime can meet.
const char* error_name(int number);

}  // namespace base
