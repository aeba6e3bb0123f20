// The process's own runtime.
#include "persist/own/own.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "base/log.h"
#include "persist/own/copy.h"
#include "persist/own/dirtiness.h"
#include "persist/own/test_child.h"
#include "sys/threads.h"

namespace persist {
namespace {

#if __has_feature(thread_sanitizer)
constexpr bool kIsThreadSanitizer = true;
#else
constexpr bool kIsThreadSanitizer = false;
#endif

// Does a child of the calling process end with this status?
bool fork_is(int status, const std::function<int()>& run) { return in_child({}, run) == status; }

int open_unnamed() { return open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }

alignas(4096) char memory[1 << 16];
const auto begin = reinterpret_cast<uintptr_t>(memory);

std::string statistics() {
  char buffer[4096];
  base::TextRef text(buffer, sizeof buffer);
  own::write_statistics(text);
  return buffer;
}
bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

TEST(OwnRuntime, FlushesAndFences) {
  EXPECT_EQ(
      in_child({{"SPILLWAY_PERSIST_POLICY", "epoch"}},
               [] {
                 REQUIRE(own::add_domain({.begin = begin, .end = begin + sizeof memory}, "", 0));
                 for (int i = 0; i < 10; ++i) own::flush(begin + 64, nullptr);
                 own::flush(begin, 4096, nullptr);
                 REQUIRE(own::fence(nullptr));
                 own::flush_ordered(begin, nullptr);
                 const std::string all = statistics();
                 REQUIRE(has(all, "\"asked_lines\": 75,"));
                 REQUIRE(
                     has(all, "\"executed_lines\": 66,"));  // the hot one at once, and once more at the fence
                 REQUIRE(has(all, "\"fences\": 1,"));
                 REQUIRE(has(all, "\"domains\": 1,"));
                 REQUIRE(own::remove_domain(begin, begin + sizeof memory));
                 return 0;
               }),
      0);
}

TEST(OwnRuntime, ThreadsThatEndHaveFenced) {
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_POLICY", "decoupled"}},
                     [] {
                       REQUIRE(own::add_domain({.begin = begin, .end = begin + sizeof memory}, "", 0));
                       for (int round = 0; round < 20; ++round)
                         std::thread([] { own::flush(begin, 1024, nullptr); }).join();
                       const std::string all = statistics();
                       REQUIRE(has(all, "\"asked_lines\": 320,"));
                       REQUIRE(has(all, "\"fences\": 20,"));
                       return 0;
                     }),
            0);
}

// The thread's variable is open while the process does not count, nobody observes, and the thread has not ended.
TEST(OwnRuntime, CompiledCodeIsToldWhatNeedsNoCall) {
  const auto use = [] {
    own::flush(begin, nullptr);
    if (!own::fence(nullptr)) _exit(99);
    return __spillway_persist_thread.ranges[2].load() != 0 && __spillway_persist_thread.fences.load() > 0;
  };
  const auto add = [] {
    return own::add_domain({.begin = begin, .end = begin + sizeof memory}, "", 0).has_value();
  };
  EXPECT_EQ(
      in_child({{"SPILLWAY_PERSIST_POLICY", "inline"}},
               [&] {
                 REQUIRE(add());
                 REQUIRE(use());
                 REQUIRE(fork_is(0, [&] {
                   if (!use()) return 1;
                   if (!own::add_domain({.begin = begin + sizeof memory, .end = begin + sizeof memory + 4096},
                                        "", 0))
                     return 2;
                   return __spillway_persist_thread.ranges[2].load() == 0 ? 0 : 3;
                 }));
                 own::flush(begin, nullptr);
                 REQUIRE(own::remove_domain(begin, begin + sizeof memory));
                 REQUIRE(!use());
                 return 0;
               }),
      0);
  const std::string path = testing::TempDir() + "spillway_own_test_direct";
  for (const char* variable :
       {"SPILLWAY_PERSIST_STATS", "SPILLWAY_PERSIST_RECORD", "SPILLWAY_PERSIST_DIRTINESS"}) {
    const bool is_file = std::string(variable) != "SPILLWAY_PERSIST_DIRTINESS";
    EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_POLICY", "inline"}, {variable, is_file ? path.c_str() : "1"}},
                       [&] {
                         REQUIRE(add());
                         REQUIRE(!use());
                         return 0;
                       }),
              0)
        << variable;
  }
  std::filesystem::remove(path);
}

// Locked instructions fence what went past the caches, for the CPU and so for the recorder: compiled code checks whether something is pending.
TEST(OwnRuntime, ACopyPastTheCachesIsPendingWhereItIsRecorded) {
  const std::string path = testing::TempDir() + "spillway_own_test_copy";
  std::filesystem::remove(path);
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_RECORD", path.c_str()}},
                     [] {
                       REQUIRE(own::add_domain({.begin = begin, .end = begin + sizeof memory}, "", 0));
                       own::set(memory, 7, 4096, Caches::kPast, nullptr);
                       REQUIRE(__spillway_persist_thread.pending == 1);
                       REQUIRE(own::fence(nullptr));
                       REQUIRE(__spillway_persist_thread.pending == 0);
                       return 0;
                     }),
            0);
  for (const char* const suffix : {"", ".1"}) std::filesystem::remove(path + suffix);
}

// It ends at the first fence afterwards, so that what is mapped there later is found anew.
TEST(OwnRuntime, AFoundMappingThatIsUnmappedWithoutAWordEndsWhereItIsRecorded) {
  const std::string path = testing::TempDir() + "spillway_own_test_unmapped";
  std::filesystem::remove(path);
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_RECORD", path.c_str()}, {"SPILLWAY_PERSIST_DOMAIN", "memory"}},
                     [] {
                       const int file = open_unnamed();
                       REQUIRE(ftruncate(file, 8192) == 0);
                       for (int again = 0; again < 2; ++again) {
                         auto* const mapped = static_cast<char*>(
                             mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
                         mapped[100] = 1;
                         own::flush(reinterpret_cast<uintptr_t>(mapped) + 100, nullptr);
                         REQUIRE(has(statistics(), "\"domains\": 1,"));
                         REQUIRE(munmap(mapped, 8192) == 0);
                         REQUIRE(own::fence(nullptr));
                         REQUIRE(has(statistics(), "\"domains\": 0,"));
                       }
                       own::finish();
                       return 0;
                     }),
            0);
  for (const char* const suffix : {"", ".1", ".2"}) std::filesystem::remove(path + suffix);
}

// Like a file that is mapped once at the size that it may reach, and made longer when there is something to store.
TEST(OwnRuntime, AMappingMayBeLongerThanItsFile) {
  const std::string path = testing::TempDir() + "spillway_own_test_longer";
  std::filesystem::remove(path);
  for (const auto& [variable, value] :
       {std::pair{"SPILLWAY_PERSIST_RECORD", path.c_str()}, std::pair{"SPILLWAY_PERSIST_DIRTINESS", "1"}})
    EXPECT_EQ(in_child({{variable, value}, {"SPILLWAY_PERSIST_DOMAIN", "memory"}},
                       [] {
                         const int file = open_unnamed();
                         auto* const mapped = static_cast<char*>(
                             mmap(nullptr, 5 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
                         for (const int pages : {1, 3}) {
                           REQUIRE(ftruncate(file, pages * 4096) == 0);
                           char* const last = mapped + pages * 4096 - 1;
                           *last = 1;
                           own::flush(reinterpret_cast<uintptr_t>(last), nullptr);
                           REQUIRE(own::fence(nullptr));
                         }
                         REQUIRE(has(statistics(), "\"domains\": 2,"));
                         own::finish();
                         return 0;
                       }),
              0)
        << variable;
  for (const char* const suffix : {"", ".1", ".2"}) std::filesystem::remove(path + suffix);
}

// Its path is not cut off, which could make one file of two.
TEST(OwnRuntime, AFileWhosePathIsTooLongIsNotRecorded) {
  const std::string path = testing::TempDir() + "spillway_own_test_path";
  for (const size_t bytes : {510u, 511u, 2000u}) {
    std::filesystem::remove(path);  // otherwise it would be refused for that
    EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_RECORD", path.c_str()}},
                       [&] {
                         REQUIRE(own::add_domain({.begin = begin, .end = begin + sizeof memory},
                                                 std::string(bytes, 'x'), 0));
                         return 0;
                       }),
              bytes == 510 ? 0 : 2)
        << bytes;
  }
  for (const char* const suffix : {"", ".1"}) std::filesystem::remove(path + suffix);
}

// The destructors of a thread's values flush, after the thread's own end.
TEST(OwnRuntime, LastDestructorsMayFlush) {
  EXPECT_EQ(
      in_child({},
               [] {
                 static pthread_key_t last;
                 static unsigned rounds = 0;
                 own::runtime();  // whose key is the first of both, so that it comes first in each round
                 pthread_key_create(&last, [](void* value) {
                   own::flush(begin, nullptr);
                   if (!own::fence(nullptr)) _exit(99);
                   if (++rounds < sys::kLastDestructorRound) pthread_setspecific(last, value);
                 });
                 std::thread([] {
                   own::flush(begin, nullptr);
                   pthread_setspecific(last, memory);
                 }).join();
                 REQUIRE(rounds == sys::kLastDestructorRound);
                 // None of them has made a new one, which nobody would end.
                 size_t threads = 0;
                 own::runtime().visit_threads([&](const Thread&) { ++threads; });
                 REQUIRE(threads == 0);
                 return 0;
               }),
      0);
}

// Last destructors may be the first to flush in a file's mapping: the kernel writes it all the same.
TEST(OwnRuntime, LastDestructorsFindMappings) {
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_DOMAIN", "file"}},
                     [] {
                       static pthread_key_t last;
                       own::runtime();  // whose key comes first in each round
                       pthread_key_create(&last, [](void* mapped) {
                         own::flush(reinterpret_cast<uintptr_t>(mapped), nullptr);
                         if (!own::fence(nullptr)) _exit(99);
                       });
                       const int file = open_unnamed();
                       REQUIRE(ftruncate(file, 4096) == 0);
                       void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
                       std::thread([mapped] {
                         own::flush(begin, nullptr);
                         pthread_setspecific(last, mapped);
                       }).join();
                       const Domains::Found found =
                           own::runtime().domains().find(reinterpret_cast<uintptr_t>(mapped));
                       REQUIRE(found.is_inside && found.domain.kind == DomainKind::kFile);
                       return 0;
                     }),
            0);
}

// A thread whose first flush is in a destructor leaves as well, unless that is the very last one; then nothing is written to where its variables were.
TEST(OwnRuntime, AThreadMayFlushFirstInADestructor) {
  for (const unsigned round : {1u, 2u, unsigned{PTHREAD_DESTRUCTOR_ITERATIONS}}) {
    if (kIsThreadSanitizer && round >= sys::kLastDestructorRound) continue;
    EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_POLICY", "epoch"}},
                       [round] {
                         static pthread_key_t late;
                         static unsigned rounds = 0, first_round = round;
                         static void* variable = nullptr;
                         first_round = round;
                         REQUIRE(own::add_domain({.begin = begin, .end = begin + 4096}, "", 0));
                         pthread_key_create(&late, [](void* value) {
                           if (++rounds < first_round) {
                             pthread_setspecific(late, value);
                             return;
                           }
                           for (int again = 0; again < 3; ++again) own::flush(begin, nullptr);
                           variable = &__spillway_persist_thread;
                         });
                         std::thread([] { pthread_setspecific(late, memory); }).join();
                         REQUIRE(rounds == round);
                         size_t threads = 0;
                         own::runtime().visit_threads([&](const Thread&) { ++threads; });
                         REQUIRE(threads == (round == PTHREAD_DESTRUCTOR_ITERATIONS ? 1 : 0));
                         // The C library keeps the stack for another thread, and these lie on it.
                         memset(variable, 0x5a, sizeof(Direct));
                         REQUIRE(own::add_domain({.begin = begin + 8192, .end = begin + 16384}, "", 0));
                         for (size_t i = 0; i < sizeof(Direct); ++i)
                           REQUIRE(static_cast<char*>(variable)[i] == 0x5a);
                         return 0;
                       }),
              0)
        << round;
  }
}

TEST(OwnRuntime, AWrongVariableEndsTheProcessWithOneLine) {
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_POLICY", "quick"}},
                     [] {
                       own::flush(begin, nullptr);
                       return 0;
                     }),
            2);
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_NOTHING", "1"}},
                     [] {
                       (void)own::fence(nullptr);
                       return 0;
                     }),
            2);
}

TEST(OwnRuntime, IsConfiguredOnceAndBefore) {
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_POLICY", "inline"}},
                     [] {
                       Options options;
                       options.policy = "slow";
                       REQUIRE(!own::configure(options));
                       options.policy = "epoch";
                       REQUIRE(own::configure(options));
                       own::flush(begin, nullptr);
                       REQUIRE(own::configure(options).error().number == EBUSY);
                       REQUIRE(has(statistics(), "\"policy\": \"epoch\""));
                       return 0;
                     }),
            0);
}

TEST(OwnRuntime, AChildGoesOn) {
  for (const char* way : {"inline", "epoch", "decoupled", "auto"}) {
    // The sanitizer allows no threads in children of a process that has some.
    if (kIsThreadSanitizer && std::string_view(way) == "decoupled") continue;
    EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_POLICY", way}},
                       [] {
                         REQUIRE(own::add_domain({.begin = begin, .end = begin + sizeof memory}, "", 0));
                         own::flush(begin, 4096, nullptr);
                         const int status = in_child({}, [] {
                           for (int i = 0; i < 100; ++i) {
                             own::flush(begin, 4096, nullptr);
                             REQUIRE(own::fence(nullptr));
                           }
                           std::thread([] {
                             own::flush(begin, 4096, nullptr);
                             if (!own::fence(nullptr)) _exit(98);
                           }).join();
                           // So do its own children; and signals come as before.
                           sigset_t blocked;
                           sigprocmask(SIG_BLOCK, nullptr, &blocked);
                           REQUIRE(sigisemptyset(&blocked));
                           return in_child({}, [] {
                             own::flush(begin, 64, nullptr);
                             return own::fence(nullptr) ? 0 : 97;
                           });
                         });
                         REQUIRE(status == 0);
                         own::flush(begin, 4096, nullptr);
                         REQUIRE(own::fence(nullptr));
                         return 0;
                       }),
              0)
        << way;
  }
}

TEST(OwnRuntime, FindsMappingsThatNobodyMadeDomains) {
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_DOMAIN", "file"}},
                     [] {
                       const int file = open_unnamed();
                       REQUIRE(ftruncate(file, 1 << 16) == 0);
                       auto* const mapped = static_cast<char*>(
                           mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
                       mapped[100] = 1;
                       own::flush(reinterpret_cast<uintptr_t>(mapped) + 100, nullptr);
                       REQUIRE(own::fence(nullptr));
                       own::flush(begin, nullptr);  // memory in no domain
                       own::flush(begin, nullptr);
                       const std::string all = statistics();
                       REQUIRE(has(all, "\"noted_lines\": 1,"));
                       REQUIRE(has(all, "\"outside_lines\": 2,"));
                       REQUIRE(has(all, "\"domains\": 2,"));
                       return 0;
                     }),
            0);
}

// The program has given an address within a page, so that nothing was unmapped.
TEST(OwnRuntime, AMappingThatIsNotUnmappedAfterAllIsFoundAnew) {
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_DOMAIN", "file"}},
                     [] {
                       const int file = open_unnamed();
                       REQUIRE(ftruncate(file, 8192) == 0);
                       const auto at = reinterpret_cast<uintptr_t>(
                           mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
                       own::flush(at, nullptr);
                       own::end_mapping(at + 1, 8191);
                       REQUIRE(has(statistics(), "\"domains\": 0,"));
                       own::flush(at, nullptr);
                       own::flush(at + 4096, nullptr);
                       REQUIRE(own::fence(nullptr));
                       REQUIRE(has(statistics(), "\"noted_lines\": 3,"));
                       REQUIRE(has(statistics(), "\"domains\": 1,"));
                       return 0;
                     }),
            0);
}

// One of them makes it a domain, for both.
TEST(OwnRuntime, ThreadsFindTheSameMappingAtTheSameTime) {
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_DOMAIN", "file"}},
                     [] {
                       const int file = open_unnamed();
                       REQUIRE(ftruncate(file, 8192) == 0);
                       auto* const mapped = static_cast<char*>(
                           mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
                       std::atomic<int> ready{0};
                       std::atomic<bool> begins{false};
                       const auto use = [&](const char* at) {
                         if (!own::fence(nullptr)) _exit(99);  // the thread is known from here on
                         ++ready;
                         while (!begins) std::this_thread::yield();
                         own::flush(reinterpret_cast<uintptr_t>(at), nullptr);
                         if (!own::fence(nullptr)) _exit(99);
                       };
                       std::thread one(use, mapped), other(use, mapped + 4096);
                       while (ready != 2) std::this_thread::yield();
                       own::runtime().before_fork();  // nobody can make a domain
                       begins = true;
                       std::this_thread::sleep_for(
                           std::chrono::milliseconds(50));  // until both are about to, or almost
                       own::runtime().after_fork_in_parent();
                       one.join();
                       other.join();
                       const std::string all = statistics();
                       REQUIRE(has(all, "\"noted_lines\": 2,"));
                       REQUIRE(has(all, "\"outside_lines\": 0,"));
                       REQUIRE(has(all, "\"domains\": 1,"));
                       return 0;
                     }),
            0);
}

// The program cannot be told that flushes do not reach the file: one line says so.
TEST(OwnRuntime, AFoundFileForWhichThereIsNoPlaceIsToldOf) {
  EXPECT_EQ(
      in_child({{"SPILLWAY_PERSIST_DOMAIN", "file"}},
               [] {
                 static int lines = 0;
                 static std::string said;
                 base::set_log_writer([](const base::LogLine& line) {
                   ++lines;
                   said = line.text;
                 });
                 for (size_t i = 0; i < Domains::kMaxDomains; ++i)
                   REQUIRE(own::add_domain({.begin = begin + 128 * i, .end = begin + 128 * i + 64}, "", 0));
                 const int file = open_unnamed();
                 REQUIRE(ftruncate(file, 4096) == 0);
                 void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
                 for (int again = 0; again < 2; ++again) {
                   own::flush(reinterpret_cast<uintptr_t>(mapped), nullptr);
                   own::flush(begin, nullptr);
                   REQUIRE(own::fence(nullptr));
                 }
                 REQUIRE(lines == 1);
                 REQUIRE(has(said, "persist: there are 256 domains already"));
                 // A private mapping has no file to be written to.
                 REQUIRE(own::remove_domain(begin, begin + 64));
                 REQUIRE(mmap(mapped, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                              -1, 0) == mapped);
                 own::flush(reinterpret_cast<uintptr_t>(mapped), nullptr);
                 REQUIRE(has(statistics(), "\"domains\": 256,"));
                 REQUIRE(lines == 1);
                 return 0;
               }),
      0);
}

// From now on opening a file kills the process.
bool forbid_to_open() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = sizeof steps / sizeof *steps, .filter = steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// A look reads all of the process's mappings, which takes as long as thousands of flushes.
TEST(OwnRuntime, NobodyLooksForAMappingForWhichThereIsNoPlace) {
  EXPECT_EQ(
      in_child({{"SPILLWAY_PERSIST_DOMAIN", "memory"}},
               [] {
                 for (size_t i = 0; i < Domains::kMaxDomains; ++i)
                   REQUIRE(own::add_domain({.begin = begin + 128 * i, .end = begin + 128 * i + 64}, "", 0));
                 REQUIRE(forbid_to_open());
                 for (int again = 0; again < 2; ++again) {
                   own::flush(begin, nullptr);
                   own::flush(begin + 64, nullptr);
                 }
                 REQUIRE(own::fence(nullptr));
                 REQUIRE(has(statistics(), "\"outside_lines\": 2,"));
                 return 0;
               }),
      0);
}

TEST(OwnRuntime, AFileIsRecordedHoweverManyMappingsOfNobodyWereFlushed) {
  const std::string path = testing::TempDir() + "spillway_own_test_many";
  std::filesystem::remove(path);
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_RECORD", path.c_str()}, {"SPILLWAY_PERSIST_DOMAIN", "memory"}},
                     [] {
                       constexpr size_t kBytes = Domains::kMaxDomains * 8192;
                       auto* const pages = static_cast<char*>(
                           mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
                       for (char* page = pages; page < pages + kBytes; page += 8192) {
                         REQUIRE(mprotect(page + 4096, 4096, PROT_NONE) == 0);
                         own::flush(reinterpret_cast<uintptr_t>(page), nullptr);
                       }
                       REQUIRE(has(statistics(), "\"domains\": 256,"));
                       const int file = open_unnamed();
                       REQUIRE(ftruncate(file, 4096) == 0);
                       const auto at = reinterpret_cast<uintptr_t>(
                           mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
                       own::flush(at, nullptr);
                       REQUIRE(own::runtime().domains().find(at).is_inside);
                       return 0;
                     }),
            0);
  for (const char* const suffix : {"", ".1"}) std::filesystem::remove(path + suffix);
}

// Copies go past the caches only where that makes them durable.
TEST(OwnRuntime, CopiesFindMappingsThatNobodyMadeDomains) {
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_DOMAIN", "file"}},
                     [] {
                       const int file = open_unnamed();
                       REQUIRE(ftruncate(file, 1 << 16) == 0);
                       auto* const mapped = static_cast<char*>(
                           mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
                       own::set(mapped, 7, 4096, Caches::kChoose, nullptr);
                       REQUIRE(own::fence(nullptr));
                       REQUIRE(has(statistics(), "\"noted_lines\": 64,"));
                       REQUIRE(has(statistics(), "\"copied_lines\": 0,"));
                       return 0;
                     }),
            0);
}

// From memory to a file's mapping that follows: only flushes make both durable.
TEST(OwnRuntime, ACopyMayReachIntoAnotherDomain) {
  EXPECT_EQ(in_child({},
                     [] {
                       REQUIRE(own::add_domain({.begin = begin, .end = begin + 4096}, "", 0));
                       REQUIRE(own::add_domain(
                           {.begin = begin + 4096, .end = begin + 8192, .kind = DomainKind::kFile}, "", 0));
                       own::set(memory, 7, 8192, Caches::kPast, nullptr);
                       REQUIRE(own::fence(nullptr));
                       REQUIRE(has(statistics(), "\"noted_lines\": 64,"));
                       return 0;
                     }),
            0);
}

// The options' texts may change once the runtime has started.
TEST(OwnRuntime, KeepsItsOptions) {
  EXPECT_EQ(in_child({},
                     [] {
                       std::string path =
                           testing::TempDir() + "spillway-persist-kept-" + std::to_string(getpid());
                       const std::string expected = path;
                       Options options;
                       options.stats = path;
                       REQUIRE(own::configure(options));
                       path.assign(path.size(), 'x');
                       own::finish();
                       REQUIRE(std::filesystem::remove(expected));
                       return 0;
                     }),
            0);
}

TEST(OwnRuntime, KeepsWhereItRecords) {
  EXPECT_EQ(in_child({},
                     [] {
                       std::string path =
                           testing::TempDir() + "spillway-persist-recorded-" + std::to_string(getpid());
                       const std::string expected = path;
                       Options options;
                       options.record = path;
                       REQUIRE(own::configure(options));
                       path.assign(path.size(), 'x');
                       REQUIRE(own::add_domain({.begin = begin, .end = begin + sizeof memory}, "", 0));
                       own::finish();
                       REQUIRE(std::filesystem::remove(expected));
                       REQUIRE(std::filesystem::remove(expected + ".1"));
                       return 0;
                     }),
            0);
}

TEST(OwnRuntime, CountsDirtyBytes) {
  EXPECT_EQ(
      in_child(
          {{"SPILLWAY_PERSIST_DIRTINESS", "1"}},
          [] {
            REQUIRE(own::add_domain({.begin = begin, .end = begin + sizeof memory}, "", 0));
            memset(memory, 1, 16);
            memset(memory + 64, 1, 64);
            own::flush(begin, 192, nullptr);
            REQUIRE(own::fence(nullptr));
            own::flush(begin + 10, nullptr);
            const std::string all = statistics();
            REQUIRE(has(
                all,
                "\"lines\": 4, \"clean_lines\": 2, \"dirty_bytes\": 80, \"fences\": 1, \"share\": 0.312500"));
            return 0;
          }),
      0);
}

TEST(OwnRuntime, WritesStatistics) {
  const std::string path = testing::TempDir() + "spillway-persist-stats-" + std::to_string(getpid());
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_STATS", (path + "-%p").c_str()}},
                     [&] {
                       own::flush(begin, nullptr);
                       own::finish();
                       return std::filesystem::exists(path + '-' + std::to_string(getpid())) &&
                                      std::filesystem::remove(path + '-' + std::to_string(getpid()))
                                  ? 0
                                  : 1;
                     }),
            0);
}

// Copies of many lengths, at many places, compared with memmove.
TEST(OwnRuntime, CopiesAreWhatMemmoveMakes) {
  EXPECT_EQ(
      in_child({{"SPILLWAY_PERSIST_POLICY", "inline"}},
               [] {
                 char expected[4096], source[4096];
                 for (size_t i = 0; i < sizeof source; ++i) source[i] = static_cast<char>(i * 7 + 1);
                 for (const Caches caches : {Caches::kChoose, Caches::kThrough, Caches::kPast})
                   for (const size_t to : {0, 1, 63, 64, 100})
                     for (const size_t from : {0, 5, 64})
                       for (const size_t bytes : {0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 300, 1000}) {
                         memset(memory, 9, 4096);
                         memset(expected, 9, 4096);
                         memmove(expected + to, source + from, bytes);
                         own::copy(memory + to, source + from, bytes, caches, nullptr);
                         REQUIRE(own::fence(nullptr));
                         REQUIRE(memcmp(memory, expected, 4096) == 0);
                         // Onto itself, a little further on and back.
                         memmove(expected + to + 10, expected + to, bytes);
                         own::copy(memory + to + 10, memory + to, bytes, caches, nullptr);
                         memmove(expected + to, expected + to + 40, bytes);
                         own::copy(memory + to, memory + to + 40, bytes, caches, nullptr);
                         memset(expected + from, 3, bytes);
                         own::set(memory + from, 3, bytes, caches, nullptr);
                         REQUIRE(own::fence(nullptr));
                         REQUIRE(memcmp(memory, expected, 4096) == 0);
                       }
                 return 0;
               }),
      0);
}

// Whole lines go past the caches, and the parts at both ends are flushed.
TEST(OwnRuntime, EachLineOfACopyIsFlushedOrGoesPastTheCaches) {
  EXPECT_EQ(in_child({{"SPILLWAY_PERSIST_POLICY", "inline"}},
                     [] {
                       char source[300] = {};
                       own::copy(memory + 60, source, 300, Caches::kChoose, nullptr);
                       REQUIRE(has(statistics(), "\"asked_lines\": 2,"));
                       REQUIRE(has(statistics(), "\"copied_lines\": 4,"));
                       own::set(memory + 60, 1, 100, Caches::kChoose, nullptr);
                       REQUIRE(has(statistics(), "\"asked_lines\": 5,"));
                       own::set(memory + 64, 1, 128, Caches::kPast, nullptr);
                       REQUIRE(has(statistics(), "\"asked_lines\": 5,"));
                       REQUIRE(has(statistics(), "\"copied_lines\": 6,"));
                       own::set(memory + 64, 1, 512, Caches::kThrough, nullptr);
                       REQUIRE(has(statistics(), "\"asked_lines\": 13,"));
                       return 0;
                     }),
            0);
}

}  // namespace
}  // namespace persist
