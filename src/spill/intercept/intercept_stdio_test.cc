// The stdio interceptors against the C library: every format with its strings, targets and output in
// spilled memory; lines and blocks of files whose edges fall on those of pages and buffers.
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <pwd.h>
#include <shadow.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <utility>

#include "spill/testing/mirrored.h"

extern "C" {
int __spill_snprintf(char*, size_t, const char*, ...) __attribute__((format(printf, 3, 4)));
int __spill_sprintf(char*, const char*, ...);
int __spill_asprintf(char**, const char*, ...);
int __spill_fprintf(FILE*, const char*, ...);
int __spill_dprintf(int, const char*, ...);
int __spill___sprintf_chk(char*, int, size_t, const char*, ...);
int __spill___snprintf_chk(char*, size_t, int, size_t, const char*, ...);
int __spill_sscanf(const char*, const char*, ...);
int __spill___isoc99_fscanf(FILE*, const char*, ...);
int __spill___isoc23_sscanf(const char*, const char*, ...);
int __spill___isoc23_fscanf(FILE*, const char*, ...);
int __spill___isoc23_scanf(const char*, ...);
int __spill___isoc23_vsscanf(const char*, const char*, va_list);
int __spill___isoc23_vfscanf(FILE*, const char*, va_list);
int __spill___isoc23_vscanf(const char*, va_list);
size_t __spill_fread(void*, size_t, size_t, FILE*);
size_t __spill___fread_chk(void*, size_t, size_t, size_t, FILE*);
size_t __spill_fwrite(const void*, size_t, size_t, FILE*);
char* __spill_fgets(char*, int, FILE*);
char* __spill___fgets_chk(char*, size_t, int, FILE*);
char* __spill___fgets_unlocked_chk(char*, size_t, int, FILE*);
int __spill_fputs(const char*, FILE*);
ssize_t __spill_getline(char**, size_t*, FILE*);
ssize_t __spill_getdelim(char**, size_t*, int, FILE*);
FILE* __spill_fopen(const char*, const char*);
int __spill_setvbuf(FILE*, char*, int, size_t);
int __spill_remove(const char*);
int __spill_putpwent(const passwd*, FILE*);
int __spill_putspent(const spwd*, FILE*);
int __spill_addmntent(FILE*, const mntent*);
}

namespace {

using fake::Mirrored;
using fake::read_string;
using fake::spilled_string;
using Stdio = fake::SpillTest;

template <class T>
T read_object(const void* spilled) {
  T value;
  spill::copy(&value, spilled, sizeof value);
  return value;
}

// Prints the same to spilled memory with a spilled format, with `strings` spilled, and natively.
#define EXPECT_PRINTS(format, ...)                                                                         \
  do {                                                                                                     \
    char expected[5000];                                                                                   \
    const int n = snprintf(expected, sizeof expected, format __VA_OPT__(, ) __VA_ARGS__);                  \
    char* to = fake::allocate(5000, 4090);                                                                 \
    spilling = true;                                                                                       \
    EXPECT_EQ(__spill_snprintf(to, 5000, spilled_string(format) __VA_OPT__(, ) __VA_ARGS__), n) << format; \
    EXPECT_EQ(read_string(to), expected);                                                                  \
    EXPECT_EQ(__spill_sprintf(to, format __VA_OPT__(, ) __VA_ARGS__), n) << format;                        \
    EXPECT_EQ(read_string(to), expected);                                                                  \
    char plain[5000];                                                                                      \
    EXPECT_EQ(__spill_snprintf(plain, sizeof plain, format __VA_OPT__(, ) __VA_ARGS__), n) << format;      \
    EXPECT_STREQ(plain, expected);                                                                         \
    spilling = false;                                                                                      \
  } while (0)

bool spilling;
// A string that is spilled for our calls and plain for the C library's.
const char* text(const char* plain) { return spilling ? spilled_string(plain) : plain; }
const wchar_t* wide(const wchar_t* plain) {
  if (!spilling) return plain;
  char* copy = fake::allocate((wcslen(plain) + 1) * 4, 4088);
  spill::copy(copy, plain, (wcslen(plain) + 1) * 4);
  return reinterpret_cast<wchar_t*>(copy);
}

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat"
#pragma clang diagnostic ignored "-Wformat-extra-args"

TEST_F(Stdio, PrintEveryKindOfArgument) {
  EXPECT_PRINTS("plain text, no arguments, 100%%");
  EXPECT_PRINTS("%s", text("hello"));
  EXPECT_PRINTS("[%d %5.3i %-8u| %o %x %#X %c]", -1, 7, 42u, 8, 255, 255, 'q');
  EXPECT_PRINTS("%s %hhd %hd %ld %lld %zu %jd %td %s", text("a"), 'x', (short)-3, LONG_MIN, LLONG_MAX,
                size_t{5}, intmax_t{6}, ptrdiff_t{7}, text("b"));
  EXPECT_PRINTS("%f %s %e %g %a %.3f", 1.5, text("x"), 2.5e300, -0.0, 1.0, 3.14159);
  EXPECT_PRINTS("%s %Lf %d %Lg %s", text("long"), 1.25L, 3, -7.5L, text("double"));
  EXPECT_PRINTS("%d %Lf %s", 3, 1.25L, text("odd"));
  EXPECT_PRINTS("%p %s", (void*)0x1234, text("pointer"));
  EXPECT_PRINTS("%10s|%-10s|%.2s|%*.*s|%-*s|%.*s", text("right"), text("left"), text("cut"), 8, 3,
                text("abcdef"), -6, text("n"), -1, text("whole"));
  EXPECT_PRINTS("%ls %.3ls %S", wide(L"wide"), wide(L"shortened"), wide(L"big"));
  EXPECT_PRINTS("%2$s %1$d %2$s %3$.2f", 7, text("again"), 2.5);
  EXPECT_PRINTS("%2$*1$s|%2$.*3$s", 9, text("numbered"), 4);
  EXPECT_PRINTS("%2$.*3$s|%2$.*1$s|%2$.1s", 2, text("numbered"), 4);
  EXPECT_PRINTS("%1$.*3$s|%1$.*2$s", text("numbered"), 2, -1);
  EXPECT_PRINTS("%m %s", text("no argument"));
  EXPECT_PRINTS("%d %d %d %d %d %d %d %d %d %d %d %d %d %s %f %f %f %f %f %f %f %f %f %f", 1, 2, 3, 4, 5, 6,
                7, 8, 9, 10, 11, 12, 13, text("many"), .1, .2, .3, .4, .5, .6, .7, .8, .9, 1.);
  const std::string longer(4000, 'L');
  EXPECT_PRINTS("<%s>", text(longer.c_str()));
}

TEST_F(Stdio, PrintReadsNoMoreThanThePrecision) {
  char* unterminated = fake::allocate(3, 4093);
  spill::copy(unterminated, "abc", 3);
  char to[10];
  EXPECT_EQ(__spill_snprintf(to, sizeof to, "%.3s", unterminated), 3);
  EXPECT_STREQ(to, "abc");
  EXPECT_EQ(__spill_snprintf(to, sizeof to, "%.*s%s", 2, unterminated, "!"), 3);
  EXPECT_STREQ(to, "ab!");
}

TEST_F(Stdio, PrintCounts) {
  char* counts = fake::allocate(64, 4092);
  char to[32];
  EXPECT_EQ(__spill_sprintf(to, "ab%ncd%hhn%s%ln", counts, counts + 8, text("e"), counts + 16), 5);
  EXPECT_STREQ(to, "abcde");
  EXPECT_EQ(read_object<int>(counts), 2);
  EXPECT_EQ(read_object<char>(counts + 8), 4);
  EXPECT_EQ(read_object<char>(counts + 9), 0);
  EXPECT_EQ(read_object<long>(counts + 16), 5);
}

TEST_F(Stdio, PrintTruncates) {
  Mirrored to(100, 4090);
  to.fill(0, std::string(100, '#').data(), 100);
  EXPECT_EQ(__spill_snprintf(to.spilled, 8, "%s", "0123456789"), 10);
  snprintf(to.twin.data(), 8, "%s", "0123456789");
  to.expect_equal("snprintf");
  EXPECT_EQ(__spill_snprintf(to.spilled, 0, "%s", "0123456789"), 10);
  EXPECT_EQ(__spill_snprintf(nullptr, 0, "%s", spilled_string("0123456789")), 10);
  to.expect_equal("snprintf of nothing");
  spilling = true;
  EXPECT_EQ(__spill___snprintf_chk(to.spilled, 8, 1, 100, "%s", text("abc")), 3);
  spilling = false;
  EXPECT_DEATH(__spill___sprintf_chk(to.spilled, 1, 4, "%s", "abcd"), "buffer overflow");
  EXPECT_DEATH(__spill___snprintf_chk(to.spilled, 8, 1, 4, "%s", "abcd"), "buffer overflow");
}
#pragma clang diagnostic pop

TEST_F(Stdio, PrintAllocatesAndWritesToFiles) {
  char** result = reinterpret_cast<char**>(fake::allocate(8, 4092));
  EXPECT_EQ(__spill_asprintf(result, "%s!", spilled_string("made")), 5);
  EXPECT_STREQ(read_object<char*>(result), "made!");
  free(read_object<char*>(result));
  FILE* file = tmpfile();
  EXPECT_EQ(__spill_fprintf(file, "%s-%d\n", spilled_string("file"), 3), 7);
  fflush(file);
  EXPECT_EQ(__spill_dprintf(fileno(file), "%s", spilled_string("tail")), 4);
  rewind(file);
  char line[20] = {};
  EXPECT_EQ(fread(line, 1, 19, file), 11u);
  EXPECT_STREQ(line, "file-3\ntail");
  fclose(file);
}

// Passes what follows `format` as a va_list.
int scan_text(const char* text, const char* format, ...) {
  va_list targets;
  va_start(targets, format);
  const int count = __spill___isoc23_vsscanf(text, format, targets);
  va_end(targets);
  return count;
}
int scan_stream(FILE* stream, const char* format, ...) {
  va_list targets;
  va_start(targets, format);
  const int count = __spill___isoc23_vfscanf(stream, format, targets);
  va_end(targets);
  return count;
}
int scan_input(const char* format, ...) {
  va_list targets;
  va_start(targets, format);
  const int count = __spill___isoc23_vscanf(format, targets);
  va_end(targets);
  return count;
}

// For sources that were compiled with a newer C library's headers.
TEST_F(Stdio, ScanByNewerNames) {
  char* const number = fake::allocate(4, 4094);
  const char* const format = spilled_string("%d");
  FILE* const file = tmpfile();
  fputs("3 4 5 6", file);
  rewind(file);
  FILE* const input = std::exchange(stdin, file);
  const auto expect = [&](int count, int value) {
    EXPECT_EQ(count, 1);
    EXPECT_EQ(read_object<int>(number), value);
  };
  expect(__spill___isoc23_sscanf(spilled_string("1"), format, number), 1);
  expect(scan_text(spilled_string("2"), format, number), 2);
  expect(__spill___isoc23_fscanf(file, format, number), 3);
  expect(scan_stream(file, format, number), 4);
  expect(__spill___isoc23_scanf(format, number), 5);
  expect(scan_input(format, number), 6);
  stdin = input;
  fclose(file);
}

TEST_F(Stdio, ScanIntoSpilledTargets) {
  char* t = fake::allocate(400, 4092);  // the first target crosses an edge
  auto fill = [&] { spill::copy(t, std::string(400, '#').data(), 400); };
  fill();
  EXPECT_EQ(__spill_sscanf(spilled_string("-5 7 300 1.5 2.5 word"), spilled_string("%d %hhd %hd %f %lf %s"),
                           t, t + 8, t + 16, t + 24, t + 32, t + 40),
            6);
  EXPECT_EQ(read_object<int>(t), -5);
  EXPECT_EQ(read_object<char>(t + 8), 7);
  EXPECT_EQ(read_object<char>(t + 9), '#');
  EXPECT_EQ(read_object<short>(t + 16), 300);
  EXPECT_EQ(read_object<float>(t + 24), 1.5f);
  EXPECT_EQ(read_object<double>(t + 32), 2.5);
  EXPECT_EQ(read_string(t + 40), "word");
  EXPECT_EQ(read_object<char>(t + 45), '#');
  fill();
  EXPECT_EQ(__spill_sscanf("abc,def 9L", "%2s%[^,],%4[a-z]%n %*d%c", t, t + 8, t + 16, t + 24, t + 32), 4);
  EXPECT_EQ(read_string(t), "ab");
  EXPECT_EQ(read_string(t + 8), "c");
  EXPECT_EQ(read_string(t + 16), "def");
  EXPECT_EQ(read_object<int>(t + 24), 7);
  EXPECT_EQ(read_object<char>(t + 32), 'L');
  EXPECT_EQ(read_object<char>(t + 33), '#');
  fill();
  EXPECT_EQ(__spill_sscanf("1 x", "%d %d %s", t, t + 8, t + 16), 1);  // what was not assigned stays
  EXPECT_EQ(read_object<int>(t), 1);
  EXPECT_EQ(read_object<int>(t + 8), 0x23232323);
  EXPECT_EQ(read_object<char>(t + 16), '#');
  int plain = 0;
  EXPECT_EQ(__spill_sscanf("3 4 5 6.5", "%2$d %1$d %3$ld %4$Lf", t, &plain, t + 8, t + 16), 4);
  EXPECT_EQ(read_object<int>(t), 4);
  EXPECT_EQ(plain, 3);
  EXPECT_EQ(read_object<long>(t + 8), 5);
  EXPECT_EQ(read_object<long double>(t + 16), 6.5L);
  EXPECT_EQ(__spill_sscanf("7 x", "%1$d %1$d", t), 1);  // one argument of two conversions
  EXPECT_EQ(read_object<int>(t), 7);
  EXPECT_EQ(__spill_sscanf("one two 300 9", "%2$s %2$s %1$d %1$hhd", t, t + 8), 4);
  EXPECT_EQ(read_object<int>(t), 256 + 9);
  EXPECT_EQ(read_string(t + 8), "two");
  EXPECT_EQ(__spill_sscanf("made wide abc", "%ms %ls %3c", t, t + 8, t + 64), 3);
  EXPECT_STREQ(read_object<char*>(t), "made");
  free(read_object<char*>(t));
  EXPECT_EQ(read_object<wchar_t>(t + 8 + 12), L'e');
  EXPECT_EQ(read_object<wchar_t>(t + 8 + 16), L'\0');
  EXPECT_EQ(read_object<char>(t + 66), 'c');
  EXPECT_EQ(__spill_sscanf("", "%d", t), EOF);
  FILE* file = tmpfile();
  const std::string longest(9000, 'w');
  fprintf(file, "%s 12", longest.c_str());
  rewind(file);
  char* word = fake::allocate(9001, 4000);
  EXPECT_EQ(__spill___isoc99_fscanf(file, "%s%d", word, t), 2);
  EXPECT_EQ(read_string(word), longest);
  EXPECT_EQ(read_object<int>(t), 12);
  fclose(file);
}

TEST_F(Stdio, BlocksOfEverySize) {
  std::string content(200000, '\0');
  for (char& c : content) c = static_cast<char>(random());
  Mirrored from(content, 4090);
  FILE* file = tmpfile();
  EXPECT_EQ(__spill_fwrite(from.spilled, 1, content.size(), file), content.size());
  EXPECT_EQ(__spill_fwrite(from.spilled, 0, 5, file), 0u);
  rewind(file);
  Mirrored to(content.size() + 10, 4095);
  size_t at = 0;
  while (at < content.size()) {
    const size_t n = 1 + random() % (random() % 4 == 0 ? 70000 : 5000);
    const size_t got = __spill_fread(to.spilled + at, 1, n, file);
    EXPECT_EQ(got, std::min(n, content.size() - at));
    at += got;
  }
  to.twin.replace(0, content.size(), content);
  to.expect_equal("fread");
  EXPECT_TRUE(feof(file));
  rewind(file);
  EXPECT_EQ(__spill_fread(to.spilled, 70000, 10, file), 2u);  // whole items count
  fclose(file);
}

TEST_F(Stdio, LinesWithZerosAndOfAnyLength) {
  std::string content;
  for (int i = 0; i < 60; ++i)
    content += std::string(random() % (i % 10 == 0 ? 20000 : 200), i % 7 == 0 ? '\0' : 'a') + "\n";
  content += "no newline";
  FILE* file = tmpfile();
  fwrite(content.data(), 1, content.size(), file);
  FILE* twin = fmemopen(content.data(), content.size(), "r");
  for (int pass = 0; pass < 2; ++pass) {
    rewind(file);
    rewind(twin);
    char* to = fake::allocate(5000, 4091);
    char expected[5000];
    for (;;) {
      const int n = pass == 0 ? 5000 : static_cast<int>(1 + random() % 300);
      char* ours = __spill_fgets(to, n, file);
      const char* theirs = fgets(expected, n, twin);
      ASSERT_EQ(ours == nullptr, theirs == nullptr);
      if (theirs == nullptr) break;
      EXPECT_EQ(ours, to);
      EXPECT_EQ(ftell(file), ftell(twin));
      EXPECT_EQ(read_string(to), expected);
    }
    EXPECT_TRUE(feof(file));
  }
  rewind(file);
  rewind(twin);
  char** line = reinterpret_cast<char**>(fake::allocate(16, 4088));
  auto* capacity = reinterpret_cast<size_t*>(reinterpret_cast<char*>(line) + 8);
  char* expected = nullptr;
  size_t room = 0;
  spill::copy(line, &expected, 8);
  for (;;) {
    const ssize_t n = getline(&expected, &room, twin);
    ASSERT_EQ(__spill_getline(line, capacity, file), n);
    if (n < 0) break;
    std::string ours(static_cast<size_t>(n), '\0');
    spill::copy(ours.data(), read_object<char*>(line), ours.size());
    EXPECT_EQ(ours, std::string(expected, static_cast<size_t>(n)));
    EXPECT_GT(read_object<size_t>(capacity), static_cast<size_t>(n));
  }
  free(expected);
  rewind(file);
  EXPECT_EQ(__spill_getdelim(line, capacity, 'n', file), static_cast<ssize_t>(content.find('n')) + 1);
  EXPECT_EQ(__spill_getdelim(nullptr, capacity, 'n', file), -1);
  EXPECT_EQ(errno, EINVAL);
  // A byte, whatever the sign of a char: also the first that comes into the buffer.
  FILE* marked = tmpfile();
  fputs("\xff\xff", marked);
  rewind(marked);
  EXPECT_EQ(__spill_getdelim(line, capacity, '\xff', marked), 1);
  EXPECT_EQ(__spill_getdelim(line, capacity, '\xff', marked), 1);
  fclose(marked);
  fclose(file);
  fclose(twin);
}

// Fortified sources pass a size larger than the buffer: what counts is whether a line fits.
TEST_F(Stdio, CheckedLinesAreThoseThatFit) {
  FILE* file = tmpfile();
  fputs("short\nlonger\n", file);
  char plain[10] = {};
  for (char* to : {fake::allocate(10, 4093), static_cast<char*>(plain)}) {
    rewind(file);
    EXPECT_EQ(__spill___fgets_chk(to, 7, 100, file), to);
    EXPECT_EQ(read_string(to), "short\n");
    EXPECT_DEATH(__spill___fgets_chk(to, 7, 100, file), "buffer overflow");
    EXPECT_EQ(__spill___fgets_chk(to, 7, 7, file), to);
    EXPECT_EQ(read_string(to), "longer");
    EXPECT_EQ(__spill___fgets_chk(to, 1, 0, file), nullptr);
  }
  fclose(file);
}

TEST_F(Stdio, PushedBackAndMixedWithTheCLibrary) {
  FILE* file = tmpfile();
  EXPECT_GE(__spill_fputs(spilled_string("one\ntwo\nthree\n"), file), 0);
  rewind(file);
  EXPECT_EQ(fgetc(file), 'o');
  ungetc('X', file);
  char* to = fake::allocate(100, 4094);
  EXPECT_EQ(read_string(__spill_fgets(to, 100, file)), "Xne\n");
  char plain[10];
  EXPECT_STREQ(fgets(plain, sizeof plain, file), "two\n");
  EXPECT_EQ(read_string(__spill_fgets(to, 4, file)), "thr");
  EXPECT_EQ(fgetc(file), 'e');
  EXPECT_EQ(__spill_fgets(to, 0, file), nullptr);
  fclose(file);
}

// A stream whose buffer is empty may wait.
TEST_F(Stdio, WhoWaitsForInputHoldsNothing) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "one\ntwo\nsix\n2222 3", 18), 18);
  close(ends[1]);
  FILE* file = nullptr;
  EXPECT_TRUE(fake::lets_go([&] { file = __spill_fopen("/dev/null", "r"); }));
  fclose(file);
  file = fdopen(ends[0], "r");
  setvbuf(file, nullptr, _IONBF, 0);
  char plain[10] = {};
  int number = 0;
  EXPECT_TRUE(fake::lets_go([&] { EXPECT_STREQ(__spill_fgets(plain, sizeof plain, file), "one\n"); }));
  EXPECT_TRUE(fake::lets_go(
      [&] { EXPECT_STREQ(__spill___fgets_chk(plain, sizeof plain, sizeof plain, file), "two\n"); }));
  EXPECT_TRUE(fake::lets_go(
      [&] { EXPECT_STREQ(__spill___fgets_unlocked_chk(plain, sizeof plain, sizeof plain, file), "six\n"); }));
  EXPECT_TRUE(fake::lets_go([&] { EXPECT_EQ(__spill_fread(plain, 1, 2, file), 2u); }));
  EXPECT_TRUE(fake::lets_go([&] { EXPECT_EQ(__spill___fread_chk(plain, sizeof plain, 1, 2, file), 2u); }));
  EXPECT_TRUE(fake::lets_go([&] { EXPECT_EQ(__spill___isoc99_fscanf(file, "%d", &number), 1); }));
  EXPECT_EQ(number, 3);
  fclose(file);
}

TEST_F(Stdio, NamesAndBuffers) {
  char name[] = "/tmp/spillway-stdio-XXXXXX";
  close(mkstemp(name));
  FILE* file = __spill_fopen(spilled_string(name), spilled_string("w+"));
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(__spill_setvbuf(file, fake::allocate(100, 0), _IOFBF, 100), 0);
  EXPECT_EQ(fputs("through the C library's buffer", file), 1);
  EXPECT_EQ(fclose(file), 0);
  EXPECT_EQ(__spill_remove(spilled_string(name)), 0);
  errno = 0;
  EXPECT_EQ(__spill_fopen(spilled_string(name), "r"), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(__spill_fputs("", stdout), 1);
}

// What put() prints to a file.
template <class Put>
std::string printed(Put put) {
  FILE* file = tmpfile();
  EXPECT_EQ(put(file), 0);
  std::string text(static_cast<size_t>(ftell(file)), '\0');
  rewind(file);
  EXPECT_EQ(fread(text.data(), 1, text.size(), file), text.size());
  fclose(file);
  return text;
}

TEST_F(Stdio, LinesAboutAccountsAndFileSystems) {
  const std::string long_text(100'000, 'x');
  char* text = spilled_string(long_text);
  passwd user = {};
  user.pw_name = spilled_string("name");
  user.pw_uid = 7;
  user.pw_gid = 8;
  user.pw_gecos = user.pw_shell = text;
  user.pw_dir = spilled_string("/home/name");
  const passwd* spilled_user = fake::spilled_object(user);
  EXPECT_EQ(printed([&](FILE* file) { return __spill_putpwent(spilled_user, file); }),
            "name::7:8:" + long_text + ":/home/name:" + long_text + "\n");

  spwd shadow = {};
  shadow.sp_namp = spilled_string("name");
  shadow.sp_pwdp = text;
  shadow.sp_lstchg = shadow.sp_min = shadow.sp_max = shadow.sp_warn = shadow.sp_inact = shadow.sp_expire = 1;
  shadow.sp_flag = ~0ul;
  const spwd* spilled_shadow = fake::spilled_object(shadow);
  EXPECT_EQ(printed([&](FILE* file) { return __spill_putspent(spilled_shadow, file); }),
            "name:" + long_text + ":1:1:1:1:1:1:\n");

  mntent mounted = {};
  mounted.mnt_fsname = spilled_string("/dev/disk");
  mounted.mnt_dir = spilled_string("/with blank");
  mounted.mnt_type = spilled_string("ext4");
  mounted.mnt_opts = text;
  const mntent* spilled_mounted = fake::spilled_object(mounted);
  EXPECT_EQ(printed([&](FILE* file) { return __spill_addmntent(file, spilled_mounted); }),
            "/dev/disk /with\\040blank ext4 " + long_text + " 0 0\n");

  errno = 0;
  EXPECT_EQ(__spill_putpwent(nullptr, stdout), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
