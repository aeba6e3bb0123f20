#include "base/text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"

namespace base {
namespace {

template <class... Parts>
std::string composed(const Parts&... parts) {
  Text<256> text;
  (text << ... << parts);
  EXPECT_EQ(text.view(), text.c_str());
  return text.c_str();
}

TEST(Text, ComposesNumbersOfEveryKind) {
  EXPECT_EQ(composed("a", 'b', std::string_view("cd"), 0, 42u), "abcd042");
  EXPECT_EQ(composed(-1, ' ', std::numeric_limits<int64_t>::min()), "-1 -9223372036854775808");
  EXPECT_EQ(composed(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(composed(Hex{0}, ' ', Hex{0xdeadbeef}), "0x0 0xdeadbeef");
  EXPECT_EQ(composed(static_cast<const char*>(nullptr)), "(null)");
}

TEST(Text, BytesTakeTheLargestExactUnit) {
  EXPECT_EQ(composed(Bytes{0}), "0");
  EXPECT_EQ(composed(Bytes{1023}), "1023");
  EXPECT_EQ(composed(Bytes{4096}), "4K");
  EXPECT_EQ(composed(Bytes{uint64_t{1536} << 20}), "1536M");
  EXPECT_EQ(composed(Bytes{uint64_t{5} << 40}), "5T");
  EXPECT_EQ(composed(Bytes{uint64_t{2048} << 40}), "2048T");
  EXPECT_EQ(composed(Bytes{4097}), "4097");
}

TEST(Text, CutsOffWhatDoesNotFit) {
  Text<4> text;
  EXPECT_EQ(text.room_bytes(), 3u);
  text << "ab" << 1234;
  EXPECT_STREQ(text.c_str(), "ab1");
  text << "more";
  EXPECT_STREQ(text.c_str(), "ab1");
  EXPECT_EQ(text.size(), 3u);
  EXPECT_EQ(text.room_bytes(), 0u);
  char one[1] = {'x'};
  TextRef empty(one, 1);
  EXPECT_EQ(empty.room_bytes(), 0u);
  EXPECT_EQ(TextRef(one, 0).room_bytes(), 0u);
  empty << "a";
  EXPECT_EQ(one[0], 0);
}

TEST(Error, ComposesItsMessageAndCutsItOff) {
  Error error = Error::of(ENOSPC, "writing ", Bytes{4096}, ": ", error_name(ENOSPC));
  EXPECT_EQ(error.number, ENOSPC);
  EXPECT_STREQ(error.message, "writing 4K: no space left on device");
  Error longer = Error::of(EIO, std::string_view(std::string(1000, 'x')));
  EXPECT_EQ(std::string_view(longer.message).size(), sizeof longer.message - 1);
  Expected<int> failed = failure(EBADF, "bad");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().number, EBADF);
}

}  // namespace
}  // namespace base
