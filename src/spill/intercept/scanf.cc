// The scanf family, under the names that it has in different editions of the C library's headers.
#include <stdio.h>

#include "spill/intercept/format.h"

namespace spill {
namespace {

int scan_stream(FILE* stream, const char* format, va_list targets) {
  return with_scanf_targets(format, targets, [=](const char* f, va_list a) { return vfscanf(stream, f, a); });
}

int scan_string(const char* text, const char* format, va_list targets) {
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
