// Files that the kernel cannot write, while whoever has them written cannot be told: the next fence of the thread that flushed says so.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "persist/own/own.h"
#include "persist/own/test_child.h"

namespace persist {
namespace {

alignas(4096) char memory[1 << 16];
constexpr size_t kHalf = sizeof memory / 2;
const auto begin = reinterpret_cast<uintptr_t>(memory);

// Makes the first half a file's domain, and flushes there what cannot be written.
bool flush_in_vain() {
  const int null = open("/dev/null", O_RDONLY);  // has nothing that could be synced
  const auto added = own::add_domain({.begin = begin,
                                      .end = begin + kHalf,
                                      .kind = DomainKind::kFile,
                                      .device = nullptr,
                                      .descriptor = null},
                                     "", 0);
  own::flush(begin, nullptr);
  own::flush(begin + 16384, nullptr);  // several ranges are written as a whole: fdatasync
  return added.has_value();
}

// Does exactly the next fence fail, even for compiled code?
bool one_fence_fails() {
  if (__spillway_persist_thread.pending != 1) return false;
  const auto fenced = own::fence(nullptr);
  return !fenced && fenced.error().number == EINVAL && own::fence(nullptr).has_value();
}

TEST(OwnFailingFiles, TheNextFenceTellsWhatAForkCouldNotHaveWritten) {
  EXPECT_EQ(in_child({},
                     [] {
                       REQUIRE(flush_in_vain());
                       REQUIRE(in_child({}, [] { return one_fence_fails() ? 0 : 1; }) == 0);
                       REQUIRE(one_fence_fails());
                       return 0;
                     }),
            0);
}

TEST(OwnFailingFiles, TheNextFenceTellsWhatCouldNotBeWrittenWhenAMappingEnded) {
  for (const uintptr_t ended : {begin, begin + kHalf})
    EXPECT_EQ(in_child({},
                       [ended] {
                         REQUIRE(own::add_domain({.begin = begin + kHalf, .end = begin + 2 * kHalf}, "", 0));
                         REQUIRE(flush_in_vain());
                         own::end_mapping(ended, kHalf);
                         REQUIRE(!own::runtime().domains().find(ended).is_inside);
                         REQUIRE(one_fence_fails());
                         return 0;
                       }),
              0)
        << ended - begin;
}

}  // namespace
}  // namespace persist
