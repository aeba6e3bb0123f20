// The scanf family, under the names that it has in different editions of the C library's headers.
#include <errno.h>
#include <stdio.h>

#include "spill/intercept/format.h"

namespace spill {
namespace {

int scan_stream(FILE* stream, const char* format, va_list targets) {
  return with_scanf_targets(format, targets, [=](const char* f, va_list a) {
    let_go_unless_buffered(stream, 1);
    return vfscanf(stream, f, a);
  });
}

// Texts up to this length are copied. Longer ones are read only as far as the format needs: a program that takes one
// item after another from a long text would otherwise copy all of it each time.
constexpr size_t kCopiedBytes = 4096;

// Fills a stream's buffer from the text.
ssize_t read_text(void* cookie, char* to, size_t n) {
  auto*& text = *static_cast<const char**>(cookie);
  const size_t length = string_length(text, n);
  copy(to, text, length);
  text += length;
  return static_cast<ssize_t>(length);
}

int scan_string(const char* text, const char* format, va_list targets) {
  if (!plain(text) && string_length(text, kCopiedBytes) == kCopiedBytes) {
    const char* rest = text;
    if (FILE* stream = fopencookie(&rest, "r", {.read = read_text, .write = {}, .seek = {}, .close = {}})) {
      const int result = scan_stream(stream, format, targets);
      const int error = errno;
      fclose(stream);
      errno = error;
      return result;
    }
  }
  PlainString plain_text(text);
  return with_scanf_targets(format, targets,
                            [&](const char* f, va_list a) { return vsscanf(plain_text, f, a); });
}

}  // namespace
}  // namespace spill

#define SPILL_VARIADIC(call)     \
  va_list targets;               \
  va_start(targets, format);     \
  const int spill_result = call; \
  va_end(targets);               \
  return spill_result

#define SPILL_SCANF(prefix)                                                                           \
  SPILL_EXPORT int __spill_##prefix##vfscanf(FILE* stream, const char* format, va_list targets) {     \
    return spill::scan_stream(stream, format, targets);                                               \
  }                                                                                                   \
  SPILL_EXPORT int __spill_##prefix##vscanf(const char* format, va_list targets) {                    \
    return spill::scan_stream(stdin, format, targets);                                                \
  }                                                                                                   \
  SPILL_EXPORT int __spill_##prefix##vsscanf(const char* text, const char* format, va_list targets) { \
    return spill::scan_string(text, format, targets);                                                 \
  }                                                                                                   \
  SPILL_EXPORT int __spill_##prefix##fscanf(FILE* stream, const char* format, ...) {                  \
    SPILL_VARIADIC(spill::scan_stream(stream, format, targets));                                      \
  }                                                                                                   \
  SPILL_EXPORT int __spill_##prefix##scanf(const char* format, ...) {                                 \
    SPILL_VARIADIC(spill::scan_stream(stdin, format, targets));                                       \
  }                                                                                                   \
  SPILL_EXPORT int __spill_##prefix##sscanf(const char* text, const char* format, ...) {              \
    SPILL_VARIADIC(spill::scan_string(text, format, targets));                                        \
  }
SPILL_SCANF()
SPILL_SCANF(__isoc99_)
SPILL_SCANF(__isoc23_)
