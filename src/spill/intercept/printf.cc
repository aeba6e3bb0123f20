// The printf family. Spilled formats, strings and counts are made plain (format.h); spilled output is
// formatted into Scratch and copied.
#include <err.h>
#include <errno.h>
#include <error.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include "spill/intercept/format.h"
#include "sys/c_library.h"

// What programs compiled with -D_FORTIFY_SOURCE call; `flag` > 0 refuses %n in writable formats.
extern "C" {
int __vprintf_chk(int flag, const char* format, va_list arguments);
int __vfprintf_chk(FILE* stream, int flag, const char* format, va_list arguments);
int __vsprintf_chk(char* to, int flag, size_t room, const char* format, va_list arguments);
int __vsnprintf_chk(char* to, size_t n, int flag, size_t room, const char* format, va_list arguments);
int __vasprintf_chk(char** to, int flag, const char* format, va_list arguments);
int __vdprintf_chk(int descriptor, int flag, const char* format, va_list arguments);
void __vsyslog_chk(int priority, int flag, const char* format, va_list arguments);
}

namespace spill {
namespace {

// Formats into spilled memory at `to`, at most n bytes with the 0: first into a small buffer, then, if necessary,
// into one of the size that the first attempt returned.
int print_spilled(char* to, size_t n, int flag, const char* format, va_list arguments) {
  size_t capacity = std::min<size_t>(n, 1024);
  for (;;) {
    Scratch text(capacity);
    if (capacity > 0 && text.data() == nullptr) return fail(ENOMEM);
    va_list again;
    va_copy(again, arguments);
    const int length = __vsnprintf_chk(text.data(), capacity, flag, capacity, format, again);
    va_end(again);
    if (length < 0) return length;
    const size_t bytes = static_cast<size_t>(length) + 1;
    if (bytes > capacity && capacity < n) {
      capacity = std::min(n, bytes);
      continue;
    }
    if (capacity > 0) copy(to, text.data(), std::min(bytes, capacity));
    return length;
  }
}

int print_to_memory(char* to, size_t n, int flag, const char* format, va_list arguments) {
  return with_printf_arguments(format, arguments, [&](const char* f, va_list a) {
    if (plain(to)) return __vsnprintf_chk(to, n, flag, n, f, a);
    return print_spilled(to, n, flag, f, a);
  });
}

// sprintf: the program promises that there is room, or the compiler knows how much.
int print_unbounded(char* to, size_t room, int flag, const char* format, va_list arguments) {
  return with_printf_arguments(format, arguments, [&](const char* f, va_list a) {
    if (plain(to)) return room == ~size_t{0} ? vsprintf(to, f, a) : __vsprintf_chk(to, flag, room, f, a);
    const int length = print_spilled(to, std::min<size_t>(room, INT_MAX), flag, f, a);
    if (length >= 0 && static_cast<size_t>(length) >= room) buffer_overflow();
    return length;
  });
}

}  // namespace
}  // namespace spill

using spill::with_printf_arguments;

#define SPILL_VARIADIC(T, call) \
  va_list arguments;            \
  va_start(arguments, format);  \
  T spill_result = call;        \
  va_end(arguments);            \
  return spill_result

SPILL_EXPORT int __spill_vfprintf(FILE* stream, const char* format, va_list arguments) {
  return with_printf_arguments(format, arguments,
                               [=](const char* f, va_list a) { return vfprintf(stream, f, a); });
}
SPILL_EXPORT int __spill_fprintf(FILE* stream, const char* format, ...) {
  SPILL_VARIADIC(int, __spill_vfprintf(stream, format, arguments));
}
SPILL_EXPORT int __spill_vprintf(const char* format, va_list arguments) {
  return __spill_vfprintf(stdout, format, arguments);
}
SPILL_EXPORT int __spill_printf(const char* format, ...) {
  SPILL_VARIADIC(int, __spill_vfprintf(stdout, format, arguments));
}
SPILL_EXPORT int __spill_vdprintf(int descriptor, const char* format, va_list arguments) {
  return with_printf_arguments(format, arguments,
                               [=](const char* f, va_list a) { return vdprintf(descriptor, f, a); });
}
SPILL_EXPORT int __spill_dprintf(int descriptor, const char* format, ...) {
  SPILL_VARIADIC(int, __spill_vdprintf(descriptor, format, arguments));
}
SPILL_EXPORT int __spill_vsnprintf(char* to, size_t n, const char* format, va_list arguments) {
  return spill::print_to_memory(to, n, 0, format, arguments);
}
SPILL_EXPORT int __spill_snprintf(char* to, size_t n, const char* format, ...) {
  SPILL_VARIADIC(int, spill::print_to_memory(to, n, 0, format, arguments));
}
SPILL_EXPORT int __spill_vsprintf(char* to, const char* format, va_list arguments) {
  return spill::print_unbounded(to, ~size_t{0}, 0, format, arguments);
}
SPILL_EXPORT int __spill_sprintf(char* to, const char* format, ...) {
  SPILL_VARIADIC(int, spill::print_unbounded(to, ~size_t{0}, 0, format, arguments));
}
SPILL_EXPORT int __spill_vasprintf(char** to, const char* format, va_list arguments) {
  spill::PlainObject<char*> plain_to(to);
  return with_printf_arguments(format, arguments,
                               [&](const char* f, va_list a) { return vasprintf(plain_to, f, a); });
}
SPILL_EXPORT int __spill_asprintf(char** to, const char* format, ...) {
  SPILL_VARIADIC(int, __spill_vasprintf(to, format, arguments));
}

SPILL_EXPORT int __spill___vfprintf_chk(FILE* stream, int flag, const char* format, va_list arguments) {
  return with_printf_arguments(format, arguments,
                               [=](const char* f, va_list a) { return __vfprintf_chk(stream, flag, f, a); });
}
SPILL_EXPORT int __spill___fprintf_chk(FILE* stream, int flag, const char* format, ...) {
  SPILL_VARIADIC(int, __spill___vfprintf_chk(stream, flag, format, arguments));
}
SPILL_EXPORT int __spill___vprintf_chk(int flag, const char* format, va_list arguments) {
  return __spill___vfprintf_chk(stdout, flag, format, arguments);
}
SPILL_EXPORT int __spill___printf_chk(int flag, const char* format, ...) {
  SPILL_VARIADIC(int, __spill___vfprintf_chk(stdout, flag, format, arguments));
}
SPILL_EXPORT int __spill___vdprintf_chk(int descriptor, int flag, const char* format, va_list arguments) {
  return with_printf_arguments(
      format, arguments, [=](const char* f, va_list a) { return __vdprintf_chk(descriptor, flag, f, a); });
}
SPILL_EXPORT int __spill___dprintf_chk(int descriptor, int flag, const char* format, ...) {
  SPILL_VARIADIC(int, __spill___vdprintf_chk(descriptor, flag, format, arguments));
}
SPILL_EXPORT int __spill___vsnprintf_chk(char* to, size_t n, int flag, size_t room, const char* format,
                                         va_list arguments) {
  if (room < n) spill::buffer_overflow();
  return spill::print_to_memory(to, n, flag, format, arguments);
}
SPILL_EXPORT int __spill___snprintf_chk(char* to, size_t n, int flag, size_t room, const char* format, ...) {
  SPILL_VARIADIC(int, __spill___vsnprintf_chk(to, n, flag, room, format, arguments));
}
SPILL_EXPORT int __spill___vsprintf_chk(char* to, int flag, size_t room, const char* format,
                                        va_list arguments) {
  return spill::print_unbounded(to, room, flag, format, arguments);
}
SPILL_EXPORT int __spill___sprintf_chk(char* to, int flag, size_t room, const char* format, ...) {
  SPILL_VARIADIC(int, spill::print_unbounded(to, room, flag, format, arguments));
}
SPILL_EXPORT int __spill___vasprintf_chk(char** to, int flag, const char* format, va_list arguments) {
  spill::PlainObject<char*> plain_to(to);
  return with_printf_arguments(
      format, arguments, [&](const char* f, va_list a) { return __vasprintf_chk(plain_to, flag, f, a); });
}
SPILL_EXPORT int __spill___asprintf_chk(char** to, int flag, const char* format, ...) {
  SPILL_VARIADIC(int, __spill___vasprintf_chk(to, flag, format, arguments));
}

// Messages: the C library's v-functions of these return nothing.
#define SPILL_MESSAGE(call)    \
  va_list arguments;           \
  va_start(arguments, format); \
  call;                        \
  va_end(arguments)

SPILL_EXPORT void __spill_vsyslog(int priority, const char* format, va_list arguments) {
  with_printf_arguments(format, arguments,
                        [=](const char* f, va_list a) { return vsyslog(priority, f, a), 0; });
}
SPILL_EXPORT void __spill_syslog(int priority, const char* format, ...) {
  SPILL_MESSAGE(__spill_vsyslog(priority, format, arguments));
}
SPILL_EXPORT void __spill___syslog_chk(int priority, int, const char* format, ...) {
  SPILL_MESSAGE(__spill_vsyslog(priority, format, arguments));
}
SPILL_EXPORT void __spill___vsyslog_chk(int priority, int, const char* format, va_list arguments) {
  __spill_vsyslog(priority, format, arguments);
}
SPILL_EXPORT void __spill_vwarn(const char* format, va_list arguments) {
  with_printf_arguments(format, arguments, [](const char* f, va_list a) { return vwarn(f, a), 0; });
}
SPILL_EXPORT void __spill_vwarnx(const char* format, va_list arguments) {
  with_printf_arguments(format, arguments, [](const char* f, va_list a) { return vwarnx(f, a), 0; });
}
SPILL_EXPORT void __spill_warn(const char* format, ...) { SPILL_MESSAGE(__spill_vwarn(format, arguments)); }
SPILL_EXPORT void __spill_warnx(const char* format, ...) { SPILL_MESSAGE(__spill_vwarnx(format, arguments)); }
// Prints the message first, since the C library's err() would end the process in the middle of the call.
SPILL_EXPORT void __spill_verr(int status, const char* format, va_list arguments) {
  __spill_vwarn(format, arguments);
  exit(status);
}
SPILL_EXPORT void __spill_verrx(int status, const char* format, va_list arguments) {
  __spill_vwarnx(format, arguments);
  exit(status);
}
SPILL_EXPORT void __spill_err(int status, const char* format, ...) {
  SPILL_MESSAGE(__spill_verr(status, format, arguments));
}
SPILL_EXPORT void __spill_errx(int status, const char* format, ...) {
  SPILL_MESSAGE(__spill_verrx(status, format, arguments));
}

// No variant of error() takes a va_list: show(text) gets the formatted message for the C library to print.
template <class Show>
static void with_message(const char* format, va_list arguments, Show show) {
  with_printf_arguments(format, arguments, [&](const char* f, va_list a) {
    va_list again;
    va_copy(again, a);
    const int length = vsnprintf(nullptr, 0, f, again);
    va_end(again);
    spill::Scratch text(length < 0 ? 0 : static_cast<size_t>(length) + 1);
    if (text.data() != nullptr) vsnprintf(text.data(), text.size(), f, a);
    show(text.data() != nullptr ? text.data() : f);
    return 0;
  });
}
SPILL_EXPORT void __spill_error(int status, int number, const char* format, ...) {
  SPILL_MESSAGE(
      with_message(format, arguments, [=](const char* text) { error(status, number, "%s", text); }));
}
// To show only one message per line the C library keeps the pointer to the last file's name, and compares the next name with it: so it gets a
// copy that lasts until then.
static const char* lasting_name(const char* file) {
  static char* newest = nullptr;
  static char* older = nullptr;
  if (newest != nullptr && strcmp(newest, file) == 0) return newest;
  auto* const name = static_cast<char*>(sys::c_malloc(strlen(file) + 1));
  if (name == nullptr) return file;
  sys::c_free(older);
  older = newest;
  newest = name;
  return strcpy(name, file);
}
SPILL_EXPORT void __spill_error_at_line(int status, int number, const char* file, unsigned line,
                                        const char* format, ...) {
  const spill::PlainString plain_file(file);
  const char* name = plain_file;
  if (error_one_per_line != 0 && name != nullptr && name != file) name = lasting_name(name);
  SPILL_MESSAGE(with_message(
      format, arguments, [&](const char* text) { error_at_line(status, number, name, line, "%s", text); }));
}
