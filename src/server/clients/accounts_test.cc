#include "server/clients/accounts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace server {
namespace {

std::string error_of(std::string_view lines) {
  auto accounts = Accounts::parse(lines);
  return accounts ? "" : accounts.error().message;
}

TEST(Accounts, UsersAndTheirPasswords) {
  auto accounts = Accounts::parse("alice:one\r\n\nbob:two:three\nfour");
  ASSERT_TRUE(accounts);
  EXPECT_FALSE(accounts->is_empty());
  EXPECT_TRUE(accounts->admits("alice", "one"));
  EXPECT_TRUE(accounts->admits("bob", "two:three"));
  EXPECT_TRUE(accounts->admits("default", "four"));
  EXPECT_EQ(accounts->password_of("default"), "four");
  for (const std::string_view wrong : {"", "on", "onee", "two:three", "one\r"})
    EXPECT_FALSE(accounts->admits("alice", wrong)) << wrong;
  EXPECT_FALSE(accounts->admits("carol", "one"));
  EXPECT_FALSE(accounts->admits("carol", ""));
  EXPECT_FALSE(accounts->admits("", ""));
}

TEST(Accounts, OfAFile) {
  const std::string path = testing::TempDir() + "accounts_test." + std::to_string(getpid());
  const auto error = [&] { return std::string(Accounts::read(path).error().message); };
  EXPECT_EQ(error(), "cannot read " + path + ": no such file or directory");
  std::ofstream(path) << "";
  EXPECT_EQ(error(), "cannot read " + path + ": it is empty");
  std::ofstream(path) << "alice:one\na:\n";
  EXPECT_TRUE(error().starts_with(path + ": line 2 has no password; "));
  std::ofstream(path) << "alice:one\n";
  EXPECT_TRUE(Accounts::read(path)->admits("alice", "one"));
  unlink(path.c_str());
}

TEST(Accounts, OfOnePassword) {
  const Accounts accounts = Accounts::of_password("a:b");
  EXPECT_TRUE(accounts.admits("default", "a:b"));
  EXPECT_FALSE(accounts.admits("a", "b"));
  EXPECT_TRUE(Accounts().is_empty());
}

TEST(Accounts, WhatIsWrongIsSaidWithItsLine) {
  EXPECT_EQ(error_of("alice:one\nbob:\n"),
            "line 2 has no password; lines are USER:PASSWORD, or PASSWORD for the user 'default'");
  EXPECT_EQ(error_of(":one"),
            "line 1 has no name; lines are USER:PASSWORD, or PASSWORD for the user 'default'");
  EXPECT_EQ(error_of("a:b\na:c"), "line 2 has the user of an earlier line");
  EXPECT_EQ(error_of("\n\r\n"), "it has no line USER:PASSWORD");
  EXPECT_EQ(error_of(""), "it has no line USER:PASSWORD");
}

}  // namespace
}  // namespace server
