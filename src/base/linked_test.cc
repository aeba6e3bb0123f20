#include "base/linked.h"

#include <gtest/gtest.h>

#include <string>

namespace base {
namespace {

struct Letter {
  char letter;
  Letter* next = nullptr;
};

std::string letters_of(const Letter* first) {
  std::string letters;
  for (; first != nullptr; first = first->next) letters += first->letter;
  return letters;
}

TEST(LinkedTest, TheNewestIsTheFirstAndEachCanGo) {
  Letter a{'a'}, b{'b'}, c{'c'}, d{'d'};
  Letter* first = nullptr;
  for (Letter* letter : {&a, &b, &c, &d}) link(first, *letter);
  EXPECT_EQ(letters_of(first), "dcba");
  unlink(first, c);
  EXPECT_EQ(letters_of(first), "dba");
  unlink(first, d);
  EXPECT_EQ(letters_of(first), "ba");
  unlink(first, a);
  EXPECT_EQ(letters_of(first), "b");
  unlink(first, b);
  EXPECT_EQ(first, nullptr);
  link(first, c);
  EXPECT_EQ(letters_of(first), "c");
}

}  // namespace
}  // namespace base
