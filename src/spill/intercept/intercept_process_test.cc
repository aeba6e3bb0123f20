// Starting programs with spilled arguments, sorting and searching spilled arrays, and descriptors that the program must not close.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "spill/testing/mirrored.h"
#include "sys/files.h"

extern "C" {
int __spill_execve(const char*, char* const*, char* const*);
int __spill_execvp(const char*, char* const*);
int __spill_execl(const char*, const char*, ...);
int __spill_execle(const char*, const char*, ...);
int __spill_posix_spawnp(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                         char* const*, char* const*);
int __spill_system(const char*);
FILE* __spill_popen(const char*, const char*);
void __spill_qsort(void*, size_t, size_t, int (*)(const void*, const void*));
void __spill_qsort_r(void*, size_t, size_t, int (*)(const void*, const void*, void*), void*);
void* __spill_bsearch(const void*, const void*, size_t, size_t, int (*)(const void*, const void*));
int __spill_close(int);
int __spill_dup2(int, int);
int __spill_dup3(int, int, int);
int __spill_close_range(unsigned, unsigned, int);
void __spill_closefrom(int);
}

namespace {

using fake::spilled_string;
using Process = fake::SpillTest;

char* const* spilled_vector(std::vector<const char*> strings) {
  strings.push_back(nullptr);
  char* vector = fake::allocate(strings.size() * 8, 4096 - 12);
  spill::copy(vector, strings.data(), strings.size() * 8);
  return reinterpret_cast<char* const*>(vector);
}

// What a child that runs `start` prints, and its exit status.
template <class Start>
std::string output_of(Start start) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    start();
    _exit(100);
  }
  close(ends[1]);
  std::string output(100'000, '\0');
  size_t size = 0;
  for (ssize_t n; (n = read(ends[0], &output[size], output.size() - size)) > 0;)
    size += static_cast<size_t>(n);
  close(ends[0]);
  int status;
  waitpid(child, &status, 0);
  output.resize(size);
  return output + "/" + std::to_string(WEXITSTATUS(status));
}

TEST_F(Process, ExecutesWithSpilledVectors) {
  const std::string longer(90'000, 'a');
  const char* script = spilled_string("echo $0 $V ${#1}; exit 3");
  char* const* arguments =
      spilled_vector({"sh", spilled_string("-c"), script, spilled_string("name"), spilled_string(longer)});
  char* const* environment = spilled_vector({spilled_string("V=value"), "W=1"});
  const char* path = spilled_string("/bin/sh");
  EXPECT_EQ(output_of([&] { __spill_execve(path, arguments, environment); }), "name value 90000\n/3");
  EXPECT_EQ(output_of([&] { __spill_execvp(spilled_string("sh"), arguments); }), "name 90000\n/3");
  EXPECT_EQ(output_of([&] { __spill_execl(path, "sh", spilled_string("-c"), script, "zero", nullptr); }),
            "zero 0\n/3");
  EXPECT_EQ(output_of([&] {
              __spill_execle(path, "sh", spilled_string("-c"), script, "zero", nullptr, environment);
            }),
            "zero value 0\n/3");
  errno = 0;
  EXPECT_EQ(__spill_execve(spilled_string("/nonexistent"), arguments, environment), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(output_of([&] {
              pid_t* child = reinterpret_cast<pid_t*>(fake::allocate(4, 4094));
              __spill_posix_spawnp(child, spilled_string("sh"), nullptr, nullptr, arguments, environment);
              pid_t plain_child;
              spill::copy(&plain_child, child, sizeof plain_child);
              int status;
              waitpid(plain_child, &status, 0);
              _exit(WEXITSTATUS(status) + 1);
            }),
            "name value 90000\n/4");
  EXPECT_EQ(WEXITSTATUS(__spill_system(spilled_string("exit 6"))), 6);
  FILE* stream = __spill_popen(spilled_string("echo piped"), spilled_string("r"));
  char line[20] = {};
  EXPECT_STREQ(fgets(line, sizeof line, stream), "piped\n");
  pclose(stream);
}

struct Item {
  int key;
  int position;
  char more[16];
};
int load_key(const void* item) {
  int key;
  spill::copy(&key, item, sizeof key);
  return key;
}
int compare_items(const void* a, const void* b) {
  return (load_key(a) > load_key(b)) - (load_key(a) < load_key(b));
}
int compare_downwards(const void* a, const void* b, void* context) {
  ++*static_cast<int*>(context);
  return compare_items(b, a);
}

TEST_F(Process, SortsLikeTheCLibraryAndComparesSpilledAddresses) {
  for (size_t n : {0, 1, 2, 3, 40, 41, 5000}) {
    std::vector<Item> items(n);
    for (size_t i = 0; i < n; ++i)
      items[i] = {static_cast<int>(random() % (n / 3 + 1)), static_cast<int>(i), {}};
    char* spilled = fake::allocate(n * sizeof(Item) + 1, 4096 - 10);
    spill::copy(spilled, items.data(), n * sizeof(Item));
    auto read_back = [&] {
      std::vector<Item> result(n);
      spill::copy(result.data(), spilled, n * sizeof(Item));
      return result;
    };
    auto expect_same = [&](const std::vector<Item>& a, const std::vector<Item>& b) {
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(a[i].position, b[i].position) << n << " " << i;
    };
    __spill_qsort(spilled, n, sizeof(Item), compare_items);
    std::vector<Item> plain = items, library = items;
    if (n > 0) qsort(library.data(), n, sizeof(Item), compare_items);
    expect_same(read_back(), library);
    if (n > 0) __spill_qsort(plain.data(), n, sizeof(Item), compare_items);
    expect_same(plain, library);
    if (n > 0) {
      const Item key = items[n / 2];
      auto* found = static_cast<char*>(__spill_bsearch(&key, spilled, n, sizeof(Item), compare_items));
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(load_key(found), key.key);
      const Item missing = {-1, 0, {}};
      EXPECT_EQ(__spill_bsearch(&missing, spilled, n, sizeof(Item), compare_items), nullptr);
    }
    int calls = 0;
    __spill_qsort_r(spilled, n, sizeof(Item), compare_downwards, &calls);
    int library_calls = 0;
    // A sanitizer's qsort_r compares more often.
    const auto library_sort = reinterpret_cast<decltype(&qsort_r)>(dlsym(RTLD_NEXT, "qsort_r"));
    library_sort(library.data(), n, sizeof(Item), compare_downwards, &library_calls);
    expect_same(read_back(), library);
    EXPECT_EQ(calls, library_calls);
  }
}

TEST_F(Process, TheRuntimesDescriptorsLookClosed) {
  auto own = sys::own_descriptor(open("/dev/null", O_RDONLY));
  ASSERT_TRUE(own.has_value());
  auto is_open = [](int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; };
  errno = 0;
  EXPECT_EQ(__spill_close(*own), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(__spill_dup2(0, *own), -1);
  EXPECT_EQ(__spill_dup3(*own, 500, 0), -1);
  EXPECT_FALSE(is_open(500));
  EXPECT_TRUE(is_open(*own));
  const int below = fcntl(0, F_DUPFD, 700), above = fcntl(0, F_DUPFD, *own + 1);
  EXPECT_EQ(__spill_close_range(700, static_cast<unsigned>(above) + 5, 0), 0);
  EXPECT_FALSE(is_open(below));
  EXPECT_FALSE(is_open(above));
  EXPECT_TRUE(is_open(*own));
  EXPECT_EQ(fcntl(0, F_DUPFD, above), above);
  __spill_closefrom(700);
  EXPECT_FALSE(is_open(above));
  EXPECT_TRUE(is_open(*own));
  EXPECT_EQ(__spill_close_range(5, 4, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  const int mine = open("/dev/null", O_RDONLY);
  EXPECT_EQ(__spill_dup2(mine, 600), 600);
  EXPECT_EQ(__spill_close(600), 0);
  EXPECT_EQ(__spill_close(mine), 0);
  EXPECT_FALSE(is_open(mine));
  sys::close_own_descriptor(*own);
}

}  // namespace
