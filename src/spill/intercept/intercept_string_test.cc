// The string interceptors against the C library on equal strings that cross pages at every distance.
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "spill/testing/mirrored.h"

extern "C" {
size_t __spill_strlen(const char*);
size_t __spill_strnlen(const char*, size_t);
char* __spill_strcpy(char*, const char*);
char* __spill_stpcpy(char*, const char*);
char* __spill_strncpy(char*, const char*, size_t);
char* __spill_stpncpy(char*, const char*, size_t);
char* __spill_strcat(char*, const char*);
char* __spill_strncat(char*, const char*, size_t);
int __spill_strcmp(const char*, const char*);
int __spill_strncmp(const char*, const char*, size_t);
int __spill_strcasecmp(const char*, const char*);
int __spill_strncasecmp(const char*, const char*, size_t);
int __spill_strcoll(const char*, const char*);
size_t __spill_strxfrm(char*, const char*, size_t);
char* __spill_strchr(const char*, int);
char* __spill_strrchr(const char*, int);
char* __spill_strchrnul(const char*, int);
char* __spill_strstr(const char*, const char*);
char* __spill_strcasestr(const char*, const char*);
char* __spill_strpbrk(const char*, const char*);
size_t __spill_strspn(const char*, const char*);
size_t __spill_strcspn(const char*, const char*);
char* __spill_strtok(char*, const char*);
char* __spill_strtok_r(char*, const char*, char**);
char* __spill_strsep(char**, const char*);
char* __spill_strdup(const char*);
char* __spill_strndup(const char*, size_t);
char* __spill_strerror_r(int, char*, size_t);
int __spill___xpg_strerror_r(int, char*, size_t);
char* __spill___strcpy_chk(char*, const char*, size_t);
long __spill_strtol(const char*, char**, int);
unsigned long long __spill_strtoull(const char*, char**, int);
double __spill_strtod(const char*, char**);
float __spill_strtof(const char*, char**);
long double __spill_strtold(const char*, char**);
long __spill___isoc23_strtol(const char*, char**, int);
long long __spill___isoc23_strtoll(const char*, char**, int);
intmax_t __spill___isoc23_strtoimax(const char*, char**, int);
unsigned long __spill___isoc23_strtoul(const char*, char**, int);
unsigned long long __spill___isoc23_strtoull(const char*, char**, int);
uintmax_t __spill___isoc23_strtoumax(const char*, char**, int);
int __spill_atoi(const char*);
double __spill_atof(const char*);
}

namespace {

using fake::Mirrored;
using fake::read_string;
using fake::spilled_string;

int sign(int value) { return (value > 0) - (value < 0); }
long offset(const char* found, const char* base) { return found == nullptr ? -1 : found - base; }

class Strings : public fake::SpillTest {
 protected:
  // Letters of both cases and signed bytes; the end lies on a page's last byte in one of three.
  std::string text(size_t n, unsigned alphabet = 4) {
    std::string result(n, '\0');
    for (char& c : result) c = "abAB\xc3z"[random() % alphabet];
    return result;
  }
  size_t edge(size_t n) { return random() % 3 == 0 ? (8192 - 1 - n % 4096) % 4096 : 4096 - random() % 10; }
};

TEST_F(Strings, LengthsAndCopies) {
  for (int round = 0; round < 300; ++round) {
    const std::string source = text(random() % (round % 3 == 0 ? 9000 : 12));
    const char* from = spilled_string(source, edge(source.size()));
    EXPECT_EQ(__spill_strlen(from), source.size());
    const size_t n = random() % (source.size() + 20);
    EXPECT_EQ(__spill_strnlen(from, n), strnlen(source.c_str(), n));
    Mirrored to(20000, random() % 4096);
    to.fill(0, std::string(20000, '#').data(), 20000);
    EXPECT_EQ(__spill_strcpy(to.spilled, from), to.spilled);
    strcpy(to.twin.data(), source.c_str());
    to.expect_equal("strcpy");
    EXPECT_EQ(__spill_strcat(to.spilled, from), to.spilled);
    strcat(to.twin.data(), source.c_str());
    to.expect_equal("strcat");
    EXPECT_EQ(offset(__spill_stpcpy(to.spilled + 1, from), to.spilled),
              offset(stpcpy(&to.twin[1], source.c_str()), to.twin.data()));
    __spill_strncat(to.spilled, from, n);
    strncat(to.twin.data(), source.c_str(), n);
    to.expect_equal("stpcpy, strncat");
    EXPECT_EQ(__spill_strncpy(to.spilled, from, n), to.spilled);
    strncpy(to.twin.data(), source.c_str(), n);
    EXPECT_EQ(offset(__spill_stpncpy(to.spilled + n, from, n), to.spilled),
              offset(stpncpy(to.twin.data() + n, source.c_str(), n), to.twin.data()));
    to.expect_equal("strncpy, stpncpy");
    const char* twice = __spill_strdup(from);
    EXPECT_TRUE(spill::in_range(twice));
    EXPECT_EQ(read_string(twice), source);
    EXPECT_EQ(read_string(__spill_strndup(from, n)), source.substr(0, n));
    if (HasFailure()) break;
  }
}

TEST_F(Strings, NothingIsHeldAfterwards) {
  const char* one = spilled_string(text(5000));
  const char* other = spilled_string(text(5000), 17);
  __spill_strlen(one);
  fake::expect_nothing_held();
  __spill_strcmp(one, other);
  fake::expect_nothing_held();
  __spill_strchr(one, 'z');
  fake::expect_nothing_held();
  __spill_strcspn(one, other);
  fake::expect_nothing_held();
}

TEST_F(Strings, Compare) {
  for (int round = 0; round < 500; ++round) {
    std::string a = text(random() % 9000, 6), b = a;
    if (round % 5 != 0 && !b.empty()) b[random() % b.size()] = static_cast<char>(1 + random() % 255);
    if (round % 7 == 0) b.resize(random() % (b.size() + 1));
    if (round % 3 == 0)
      for (char& c : b) c = static_cast<char>(tolower(c));
    const char* x = spilled_string(a, edge(a.size()));
    const char* y = spilled_string(b, edge(b.size()));
    const size_t n = random() % 9001;
    EXPECT_EQ(sign(__spill_strcmp(x, y)), sign(strcmp(a.c_str(), b.c_str())));
    EXPECT_EQ(sign(__spill_strcmp(a.c_str(), y)), sign(strcmp(a.c_str(), b.c_str())));
    EXPECT_EQ(sign(__spill_strncmp(x, b.c_str(), n)), sign(strncmp(a.c_str(), b.c_str(), n)));
    EXPECT_EQ(sign(__spill_strcasecmp(x, y)), sign(strcasecmp(a.c_str(), b.c_str())));
    EXPECT_EQ(sign(__spill_strncasecmp(x, y, n)), sign(strncasecmp(a.c_str(), b.c_str(), n)));
    EXPECT_EQ(sign(__spill_strcoll(x, y)), sign(strcoll(a.c_str(), b.c_str())));
  }
  const char* unterminated = fake::allocate(3, 4093);
  spill::copy(const_cast<char*>(unterminated), "abc", 3);
  EXPECT_EQ(__spill_strncmp(unterminated, "abcd", 3), 0);  // does not look beyond the page
  EXPECT_EQ(__spill_strnlen(unterminated, 3), 3u);
  EXPECT_EQ(read_string(__spill_strndup(unterminated, 3)), "abc");
}

// Of the room that it is told, it touches only what the result needs.
TEST_F(Strings, Transform) {
  const std::string word = text(100);
  std::string expected(1000, '\0');
  expected.resize(strxfrm(expected.data(), word.c_str(), expected.size()));
  char* to = fake::allocate(expected.size() + 1, 4096 - expected.size() - 1);
  EXPECT_EQ(__spill_strxfrm(to, spilled_string(word), SIZE_MAX), expected.size());
  EXPECT_EQ(read_string(to), expected);
  EXPECT_EQ(__spill_strxfrm(to, spilled_string(word), 7), expected.size());
  EXPECT_EQ(__spill_strxfrm(to, spilled_string(word), 0), expected.size());
}

TEST_F(Strings, FindCharactersAndSets) {
  for (int round = 0; round < 500; ++round) {
    std::string a = text(1 + random() % 9000, 2);
    if (round % 2 == 0) a[random() % a.size()] = '\xe9';
    const char* x = spilled_string(a, edge(a.size()));
    const char* twin = a.c_str();
    for (int c : {int{'a'}, 0xe9, -23, 0, int{'?'}}) {
      EXPECT_EQ(offset(__spill_strchr(x, c), x), offset(strchr(twin, c), twin)) << c;
      EXPECT_EQ(offset(__spill_strrchr(x, c), x), offset(strrchr(twin, c), twin)) << c;
      EXPECT_EQ(offset(__spill_strchrnul(x, c), x), offset(strchrnul(twin, c), twin)) << c;
    }
    const char* set = round % 3 == 0 ? spilled_string("ab") : "\xe9?";
    const char* plain_set = round % 3 == 0 ? "ab" : "\xe9?";
    EXPECT_EQ(__spill_strspn(x, set), strspn(twin, plain_set));
    EXPECT_EQ(__spill_strcspn(x, set), strcspn(twin, plain_set));
    EXPECT_EQ(offset(__spill_strpbrk(x, set), x), offset(strpbrk(twin, plain_set), twin));
  }
}

TEST_F(Strings, FindStrings) {
  std::string a = text(80000, 2);
  const char* x = spilled_string(a, 8191 - 80000 % 4096);
  for (int round = 0; round < 300; ++round) {
    const size_t at = random() % a.size();
    std::string part = a.substr(at, 5 + random() % (round % 10 == 0 ? 5000 : 25));
    if (round % 6 == 0) part += "B";
    const char* y = round % 2 == 0 ? spilled_string(part) : part.c_str();
    EXPECT_EQ(offset(__spill_strstr(x, y), x), offset(strstr(a.c_str(), part.c_str()), a.c_str()));
    for (char& c : part) c = static_cast<char>(toupper(c));
    EXPECT_EQ(offset(__spill_strcasestr(x, part.c_str()), x),
              offset(strcasestr(a.c_str(), part.c_str()), a.c_str()));
  }
  EXPECT_EQ(__spill_strstr(x, ""), x);
  EXPECT_EQ(__spill_strstr("plain", spilled_string("ai"))[0], 'a');
  // There is no 0, and nothing mapped after the match.
  char* last = fake::allocate(9, 4096 - 9);
  spill::copy(last, "a needle!", 9);
  EXPECT_EQ(__spill_strstr(last, "needle"), last + 2);
  EXPECT_EQ(__spill_strcasestr(last, "NEEDLE"), last + 2);
}

TEST_F(Strings, SearchLooksAtLittleOfALongText) {
  const char* x = spilled_string("needle" + std::string(3'000'000, 'x'));
  const uint64_t before = fake::translations();
  EXPECT_EQ(__spill_strstr(x, "needle"), x);
  EXPECT_EQ(__spill_strtol(x, nullptr, 10), 0);
  EXPECT_LT(fake::translations() - before, 20u);
}

TEST_F(Strings, Tokens) {
  const std::string source = ",,one,two;;three," + std::string(5000, 'x') + ";";
  Mirrored a(source), b(source, 4090);
  char** next = reinterpret_cast<char**>(fake::allocate(8, 4088));  // the program keeps it in spilled memory
  char* twin_next;
  const char* set = spilled_string(",;");
  char* token = __spill_strtok_r(a.spilled, set, next);
  char* twin = strtok_r(a.twin.data(), ",;", &twin_next);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(offset(token, a.spilled), offset(twin, a.twin.data()));
    token = __spill_strtok_r(nullptr, set, next);
    twin = strtok_r(nullptr, ",;", &twin_next);
  }
  EXPECT_EQ(token, nullptr);
  a.expect_equal("strtok_r");

  char* rest = b.spilled;
  char* twin_rest = b.twin.data();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(offset(__spill_strsep(&rest, ",;"), b.spilled),
              offset(strsep(&twin_rest, ",;"), b.twin.data()));
  EXPECT_EQ(rest, nullptr);
  b.expect_equal("strsep");

  EXPECT_EQ(read_string(__spill_strtok(spilled_string("  left right "), " ")), "left");
  EXPECT_EQ(read_string(__spill_strtok(nullptr, " ")), "right");
  EXPECT_EQ(__spill_strtok(nullptr, " "), nullptr);
}

// For sources that were compiled with a newer C library's headers.
TEST_F(Strings, NumbersByNewerNames) {
  const char* const digits = spilled_string("-77z");
  char** const end = reinterpret_cast<char**>(fake::allocate(8, 4092));
  const auto parsed = [&](auto parse, const char* text) {
    const auto value = parse(text, end, 8);
    char* stop;
    spill::copy(&stop, end, sizeof stop);
    EXPECT_EQ(stop, digits + 3);
    return value;
  };
  EXPECT_EQ(parsed(__spill___isoc23_strtol, digits), -63);
  EXPECT_EQ(parsed(__spill___isoc23_strtoll, digits), -63);
  EXPECT_EQ(parsed(__spill___isoc23_strtoimax, digits), -63);
  EXPECT_EQ(parsed(__spill___isoc23_strtoul, digits + 1), 63u);
  EXPECT_EQ(parsed(__spill___isoc23_strtoull, digits + 1), 63u);
  EXPECT_EQ(parsed(__spill___isoc23_strtoumax, digits + 1), 63u);
}

TEST_F(Strings, NumbersEndWhereTheCLibrarySays) {
  const std::string digits(300, '7'), blanks(500, ' ');
  for (const std::string& number : {std::string("42"),
                                    std::string("-0x1fz"),
                                    std::string("  +12e3,"),
                                    std::string("1e"),
                                    std::string("1e+5x"),
                                    std::string("12e5"),
                                    std::string("nan(abc)d"),
                                    "nan(" + digits + ")",
                                    std::string("infinit"),
                                    "-infinity" + digits,
                                    digits + "." + digits + "e-20;",
                                    blanks + "17",
                                    blanks + "x",
                                    std::string("0x"),
                                    std::string(""),
                                    std::string("."),
                                    "0." + std::string(400, '0') + "1e401,",
                                    std::string("1e999"),
                                    std::string("99999999999999999999999"),
                                    std::string(126, ' ') + "1e5",
                                    std::string(124, '0') + "12345"}) {
    for (const std::string& rest : {std::string(), std::string(2000, ','), std::string("(") + digits}) {
      const std::string all = number + rest;
      const char* x = spilled_string(all);
      char** end = reinterpret_cast<char**>(fake::allocate(8, 4092));
      auto check = [&](auto ours, auto theirs) {
        char* twin_end;
        errno = 5;
        auto expected = theirs(all.c_str(), &twin_end);
        const int expected_error = errno;
        errno = 5;
        auto value = ours(x, end);
        EXPECT_EQ(errno, expected_error) << all;
        EXPECT_TRUE(value == expected || (expected != expected && value != value)) << all;
        char* stop;
        spill::copy(&stop, end, sizeof stop);
        EXPECT_EQ(offset(stop, x), offset(twin_end, all.c_str())) << all;
      };
      check(__spill_strtod, strtod);
      check(__spill_strtof, strtof);
      check(__spill_strtold, strtold);
      for (int base : {0, 10, 16, 36}) {
        check([&](const char* t, char** e) { return __spill_strtol(t, e, base); },
              [&](const char* t, char** e) { return strtol(t, e, base); });
        check([&](const char* t, char** e) { return __spill_strtoull(t, e, base); },
              [&](const char* t, char** e) { return strtoull(t, e, base); });
      }
    }
  }
  // An invalid base.
  char* const twelve = spilled_string("12");
  char** end = reinterpret_cast<char**>(fake::allocate(8, 4092));
  spill::copy(end, &twelve, sizeof twelve);
  errno = 0;
  EXPECT_EQ(__spill_strtol(twelve, end, 1), 0);
  EXPECT_EQ(errno, EINVAL);
  char* stop;
  spill::copy(&stop, end, sizeof stop);
  EXPECT_EQ(stop, twelve);
  EXPECT_EQ(__spill_atoi(spilled_string("-12 monkeys")), -12);
  EXPECT_EQ(__spill_atof(spilled_string("2.5kg")), 2.5);
}

// Like the C library they look no further than the number extends: a text in a mapped file may end without a 0 where nothing is mapped.
TEST_F(Strings, NumbersAtTheEndOfMemory) {
  for (const std::string text :
       {"123\n", " -5,", "2.5 ", "1e5;", "7e;", "3(", "x", "inf ", "infinite.", "0x1f\n"}) {
    char* x = fake::allocate(text.size(), 4096 - text.size());
    spill::copy(x, text.data(), text.size());
    char *end = nullptr, *expected = nullptr;
    EXPECT_EQ(__spill_strtol(x, &end, 0), strtol(text.c_str(), &expected, 0));
    EXPECT_EQ(offset(end, x), offset(expected, text.c_str())) << text;
    EXPECT_EQ(__spill_strtod(x, &end), strtod(text.c_str(), &expected));
    EXPECT_EQ(offset(end, x), offset(expected, text.c_str())) << text;
  }
}

TEST_F(Strings, ErrorText) {
  char* to = fake::allocate(100, 4090);
  EXPECT_STREQ(__spill_strerror_r(ENOENT, to, 100), "No such file or directory");
  EXPECT_EQ(read_string(__spill_strerror_r(12345, to, 100)), "Unknown error 12345");
  EXPECT_EQ(__spill___xpg_strerror_r(EIO, to, 100), 0);
  EXPECT_EQ(read_string(to), "Input/output error");
}

TEST_F(Strings, CheckedCopyEndsTheProcess) {
  char* to = fake::allocate(8, 4092);
  EXPECT_EQ(__spill___strcpy_chk(to, "1234567", 8), to);
  EXPECT_DEATH(__spill___strcpy_chk(to, "12345678", 8), "buffer overflow");
}

}  // namespace
