#include "storage/backends/nvme_status.h"

#include <gtest/gtest.h>

namespace storage {
namespace {

TEST(NvmeStatus, SaysWhatTheKernelWould) {
  const auto generic = [](uint32_t code, Operation operation = Operation::kRead) {
    return error_of_nvme_status(0, code, operation);
  };
  EXPECT_EQ(generic(0x00), 0);
  EXPECT_EQ(generic(0x01), EOPNOTSUPP);
  EXPECT_EQ(generic(0x08), ENXIO) << "its queue has ended";
  EXPECT_EQ(generic(0x0b), ENXIO) << "the namespace was removed";
  EXPECT_EQ(generic(0x81, Operation::kWrite), ENOSPC);
  EXPECT_EQ(generic(0x80, Operation::kWrite), ENOSPC) << "past the end";
  EXPECT_EQ(generic(0x80, Operation::kRead), EIO);
  EXPECT_EQ(generic(0x20, Operation::kWrite), EROFS);
  EXPECT_EQ(generic(0x83), EBUSY);
}

TEST(NvmeStatus, NothingButSuccessIsZero) {
  for (uint32_t type = 0; type < 8; ++type)
    for (uint32_t code = 0; code < 256; ++code)
      if (type != 0 || code != 0)
        EXPECT_GT(error_of_nvme_status(type, code, Operation::kRead), 0) << type << '/' << code;
  EXPECT_EQ(error_of_nvme_status(2, 0x81, Operation::kRead), EIO) << "unrecovered read error";
  EXPECT_EQ(error_of_nvme_status(2, 0x86, Operation::kRead), EACCES);
  EXPECT_EQ(error_of_nvme_status(3, 0x00, Operation::kRead), ENXIO) << "no path";
}

TEST(NvmeStatus, HasAName) {
  EXPECT_STREQ(nvme_status_name(0, 0x00), "success");
  EXPECT_STREQ(nvme_status_name(2, 0x81), "unrecovered read error");
  EXPECT_STREQ(nvme_status_name(0, 0x81), "capacity exceeded");
  EXPECT_STREQ(nvme_status_name(7, 0x12), "an error");
  EXPECT_STREQ(nvme_status_name(3, 0x12), "the way to the namespace is lost");
}

}  // namespace
}  // namespace storage
