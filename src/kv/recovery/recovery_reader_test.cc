#include "kv/recovery/recovery_reader.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace kv {
namespace {

// A start that has met several errors goes on without a checkpoint, or skips a place, only if none of them means that the device has failed.
TEST(RecoveryReaderTest, WhatIsWorseIsTold) {
  const std::vector<std::vector<int>> ranks = {
      {0}, {EBADMSG}, {EIO, ENODATA, EILSEQ, EREMOTEIO}, {ENOMEM}, {ENODEV, ENXIO, EINVAL, ENOSPC}};
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t j = 0; j < ranks.size(); ++j)
      for (const int error : ranks[i])
        for (const int other : ranks[j]) EXPECT_EQ(outranks(error, other), i > j) << error << " " << other;
}

}  // namespace
}  // namespace kv
