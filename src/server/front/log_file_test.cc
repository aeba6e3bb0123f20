#include "server/front/log_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "base/log.h"

namespace server {
namespace {

// Restores standard error at the end.
class LogFileTest : public testing::Test {
 protected:
  ~LogFileTest() override {
    dup2(before, STDERR_FILENO);
    close(before);
    unlink(path.c_str());
    unlink(moved.c_str());
  }
  static std::string text_of(const std::string& name) {
    std::ifstream file(name);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  const int before = dup(STDERR_FILENO);
  const std::string path = testing::TempDir() + "log_file_test." + std::to_string(getpid());
  const std::string moved = path + ".1";
};

TEST_F(LogFileTest, LinesGoToItsEndAndToANewOneOnceItIsOpenedAgain) {
  std::ofstream(path) << "before\n";
  ASSERT_TRUE(log_to(path));
  base::log("one");
  ASSERT_EQ(std::rename(path.c_str(), moved.c_str()), 0);
  base::log("two");
  ASSERT_TRUE(log_to(path));
  base::log("three");
  EXPECT_EQ(text_of(moved), "before\nspillway: one\nspillway: two\n");
  EXPECT_EQ(text_of(path), "spillway: three\n");
}

TEST_F(LogFileTest, StaysIfAnotherCannotBeOpened) {
  ASSERT_TRUE(log_to(path));
  const auto opened = log_to(path + "/none");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number, ENOTDIR);
  EXPECT_EQ(std::string(opened.error().message), "cannot write to " + path + "/none: not a directory");
  base::log("one");
  EXPECT_EQ(text_of(path), "spillway: one\n");
}

}  // namespace
}  // namespace server
