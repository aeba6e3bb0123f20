// Stored tables, each on a device that loses power.
#include "batch/stored/test_power_cut.h"

namespace batch {
namespace {

std::unique_ptr<BucketStore> on_device(storage::Device& device) {
  return std::make_unique<DeviceStore>(device);
}

TEST(StoredPowerCutTest, WithALogAPrefixIsFound) { cut_many(true, 100, on_device); }
TEST(StoredPowerCutTest, WithoutALogEachKeyIsAsItWasAtSomeMoment) { cut_many(false, 100, on_device); }

}  // namespace
}  // namespace batch
