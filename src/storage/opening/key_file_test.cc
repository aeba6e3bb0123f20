#include "storage/opening/key_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace storage {
namespace {

class KeyFile : public testing::Test {
 protected:
  ~KeyFile() override { std::filesystem::remove_all(path); }

  void write(const std::string& content, mode_t mode = 0600) const {
    std::ofstream(path, std::ios::binary) << content;
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  void is_refused(const std::string& says, int number = EINVAL) const {
    XtsKey key;
    const auto read = read_key_file(path, key);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().number, number);
    const std::string message = read.error().message;
    EXPECT_NE(message.find("the key " + path), std::string::npos) << message;
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }

  const std::string path = testing::TempDir() + "spillway-key-" + std::to_string(getpid());
  const std::string good =
      "0123456789abcdef0123456789abcdefABCDEFGHIJKLMNOPQRSTUVWXYZ\n\r\t\xff-" + std::string(1, '\0');
};

TEST_F(KeyFile, IsTheBytesOfTheFile) {
  ASSERT_EQ(good.size(), XtsKey::kBytes);
  for (const mode_t mode : {0600, 0400}) {
    write(good, 0600);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    XtsKey key;
    const auto read = read_key_file(path, key);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(memcmp(key.bytes, good.data(), good.size()), 0);
  }
}

TEST_F(KeyFile, SaysWhatIsWrongWithIt) {
  is_refused("head -c 64 /dev/urandom", ENOENT);
  for (const size_t bytes : {0, 1, 63, 65, 4096}) {
    write(std::string(bytes, 'k'));
    is_refused("it has " + std::to_string(bytes) + " bytes");
  }
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0644}) {
    write(good, mode);
    is_refused("chmod 600");
  }
  for (const char filler : {'\0', 'k'}) {
    write(std::string(XtsKey::kBytes, filler));
    is_refused("its halves are the same");
  }
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  is_refused("not a file");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  is_refused("not a file");
}

}  // namespace
}  // namespace storage
