// Formats and numbers by the names that libraries with formats of their own call (vprintf and vscanf and their kin), messages, and older names of
// what works on strings and streams. All they are given is spilled.
// flags: -fno-builtin
// levels: O2
// pages: 4K 16K
// chaos: 1
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "call_arguments.h"

extern char* __strdup(const char*);
extern char* __strndup(const char*, size_t);

// In each of these `result` is that of `call`, with the list of what follows `format`.
#define PASS_ON(call)      \
  va_list list;            \
  va_start(list, format);  \
  const int result = call; \
  va_end(list);            \
  return result

static int to_text(char* to, const char* format, ...) { PASS_ON(vsprintf(to, format, list)); }
static int to_room(char* to, size_t n, const char* format, ...) { PASS_ON(vsnprintf(to, n, format, list)); }
static int to_block(char** to, const char* format, ...) { PASS_ON(vasprintf(to, format, list)); }
static int to_descriptor(int to, const char* format, ...) { PASS_ON(vdprintf(to, format, list)); }
static int to_stream(FILE* to, const char* format, ...) { PASS_ON(vfprintf(to, format, list)); }
static int to_output(const char* format, ...) { PASS_ON(vprintf(format, list)); }
static int from_text(const char* from, const char* format, ...) { PASS_ON(vsscanf(from, format, list)); }
static int from_stream(FILE* from, const char* format, ...) { PASS_ON(vfscanf(from, format, list)); }
static int from_input(const char* format, ...) { PASS_ON(vscanf(format, list)); }
static int to_log(int priority, const char* format, ...) { PASS_ON((vsyslog(priority, format, list), 0)); }
static int to_warn(const char* format, ...) { PASS_ON((vwarn(format, list), 0)); }
static int to_warnx(const char* format, ...) { PASS_ON((vwarnx(format, list), 0)); }
static int to_err(int ends, const char* format, ...) { PASS_ON((verr(ends, format, list), 0)); }
static int to_errx(int ends, const char* format, ...) { PASS_ON((verrx(ends, format, list), 0)); }

static void printing(void) {
  char* to = zeros(4000);
  CHECK(to_text(to, text("%s %d|%5.1f"), text("first"), 2, 2.5) == 13);
  puts(to);
  CHECK(to_room(to, 6, text("%s %d"), text("second"), 3) == 8 && strcmp(to, "secon") == 0);
  char** block = NEW(char*);
  CHECK(to_block(block, text("<%s %ld>"), text("third"), 4000000000L) == 18);
  puts(*block);
  free(*block);
  fflush(stdout);
  CHECK(to_descriptor(1, text("%s %c\n"), text("fourth"), '!') == 9);
  CHECK(to_stream(stdout, text("%2$s %1$d\n"), 5, text("fifth")) == 8);
  CHECK(to_output(text("%-7s|%x\n"), text("sixth"), 255) == 11);
}

static void scanning(void) {
  int* number = NEW(int);
  char* word = zeros(100);
  double* real = NEW(double);
  CHECK(from_text(text("12 words 2.5"), text("%d %99s %lf"), number, word, real) == 3);
  printf("%d %s %g\n", *number, word, *real);
  char* path = text("formats-XXXXXX");
  const int made = mkstemp(path);
  CHECK(made >= 0 && write(made, text("77 other 1e3\n88 more 0.25\n"), 26) == 26 && close(made) == 0);
  FILE* stream = fopen(path, text("r"));
  CHECK(stream != NULL && from_stream(stream, text("%d %99s %lf"), number, word, real) == 3 &&
        fclose(stream) == 0);
  printf("%d %s %g\n", *number, word, *real);
  CHECK(freopen(path, text("r"), stdin) == stdin && scanf(text("%d %99s %lf"), number, word, real) == 3);
  printf("%d %s %g\n", *number, word, *real);
  CHECK(from_input(text("%d %99s %lf"), number, word, real) == 3);
  printf("%d %s %g\n", *number, word, *real);
  CHECK(from_input(text("%d"), number) == EOF && unlink(path) == 0);
}

static void numbers(void) {
  char** end = NEW(char*);
  char* digits = text("  -9223372036854775809z");
  errno = 0;
  CHECK(strtoll(digits, end, 10) == LLONG_MIN && errno == ERANGE && *end == digits + 22);
  CHECK(strtoq(digits = text("0x7fq"), end, 0) == 127 && *end == digits + 4);
  CHECK(strtouq(digits = text("777 "), end, 8) == 511 && *end == digits + 3);
  CHECK(strtoimax(digits = text("-zz"), end, 36) == -1295 && *end == digits + 3);
  CHECK(strtoumax(digits = text("18446744073709551615"), end, 10) == UINT64_MAX && *end == digits + 20);
  CHECK(atoll(text(" 123456789012x")) == 123456789012LL);
}

static void strings(void) {
  char *to = zeros(4000), *from = text("one two");
  bcopy(from, to, 8);
  CHECK(bcmp(from, to, 8) == 0);
  to[3] = '_';
  CHECK(bcmp(from, to, 8) != 0 && rindex(to, 'o') == to + 6 && rindex(to, '!') == NULL);
  bcopy(to, to + 2, 8);
  CHECK(strcmp(to, "onone_two") == 0);
  bzero(to + 5, 2);
  CHECK(memcmp(to, "onone\0\0wo", 10) == 0);
  explicit_bzero(to, 10);
  for (int i = 0; i < 10; ++i) CHECK(to[i] == 0);
  CHECK(strxfrm(to, from, 100) == 7 && strcmp(to, from) == 0 && strxfrm(to, from, 0) == 7);
  char *all = __strdup(from), *some = __strndup(from, 3);
  CHECK(strcmp(all, "one two") == 0 && strcmp(some, "one") == 0);
  char** rest = NEW(char*);
  CHECK(__strtok_r(all, text(" "), rest) == all && strcmp(all, "one") == 0);
  CHECK(__strtok_r(NULL, text(" "), rest) == all + 4 && __strtok_r(NULL, text(" "), rest) == NULL);
  free(all);
  free(some);
}

static void streams(void) {
  FILE* stream = tmpfile();
  setbuffer(stream, zeros(3000), 3000);
  CHECK(fputs_unlocked(text("a line\n"), stream) >= 0);
  CHECK(fwrite_unlocked(text("another;and more"), 1, 16, stream) == 16);
  rewind(stream);
  char* line = zeros(100);
  CHECK(fgets_unlocked(line, 100, stream) == line && strcmp(line, "a line\n") == 0);
  CHECK(ftrylockfile(stream) == 0);
  funlockfile(stream);
  char** block = NEW(char*);
  size_t* room = NEW(size_t);
  CHECK(__getdelim(block, room, ';', stream) == 8 && strcmp(*block, "another;") == 0);
  free(*block);
  CHECK(fclose(stream) == 0);
  stream = tmpfile();
  setbuf(stream, NULL);
  CHECK(fputs_unlocked(text("written at once"), stream) >= 0 && lseek(fileno(stream), 0, SEEK_END) == 15);
  CHECK(fclose(stream) == 0);
  stream = tmpfile();
  setbuf(stream, malloc(BUFSIZ));
  CHECK(fputs_unlocked(text("kept"), stream) >= 0 && lseek(fileno(stream), 0, SEEK_END) == 0);
  CHECK(fclose(stream) == 0);
}

// With which status a child ends that says this.
static int ends(void (*say)(char* format, char* word)) {
  char *format = text("%s, %d"), *word = text("the end");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    errno = ENOENT;
    say(format, word);
    _exit(100);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}
static void say_err(char* format, char* word) { err(3, format, word, 1); }
static void say_errx(char* format, char* word) { errx(4, format, word, 2); }
static void say_verr(char* format, char* word) { to_err(5, format, word, 3); }
static void say_verrx(char* format, char* word) { to_errx(6, format, word, 4); }

static void messages(void) {
  char *format = text("%s, %d"), *word = text("a word");
  program_invocation_short_name = "formats";
  errno = ENOSPC;
  warn(format, word, 1);
  errno = EIO;
  to_warn(format, word, 2);
  errno = ENOTDIR;
  perror(word);
  warnx(format, word, 3);
  to_warnx(format, word, 4);
  CHECK(ends(say_err) == 3 && ends(say_errx) == 4 && ends(say_verr) == 5 && ends(say_verrx) == 6);
  openlog("formats", LOG_PERROR, LOG_USER);
  syslog(LOG_DEBUG, format, word, 5);
  to_log(LOG_DEBUG, format, word, 6);
  closelog();
}

int main(void) {
  push_out(3 << 20);
  printing();
  scanning();
  numbers();
  strings();
  streams();
  messages();
  puts("end");
  return 0;
}
