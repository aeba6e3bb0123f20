// How stores are made on a medium, and what is reported when that fails.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "kv/testing/medium_device.h"
#include "kv/testing/test_store.h"
#include "storage/decorators/fault.h"
#include "storage/opening/open.h"

namespace kv {
namespace {

// An empty folder for the calling test.
std::string make_folder() {
  const std::string folder = testing::TempDir() + "spillway-store-" + std::to_string(getpid());
  EXPECT_TRUE(std::filesystem::create_directory(folder));
  return folder;
}

bool can_tell_of_holes(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  fiemap map = {};
  map.fm_length = 4096;
  const bool can = ioctl(descriptor, FS_IOC_FIEMAP, &map) == 0;
  close(descriptor);
  return can;
}

SegmentHeader header_of(storage::Device& device, uint64_t segment, Identity& identity) {
  Channel channel;
  EXPECT_TRUE(channel.open_for_threads(device));
  alignas(4096) std::byte block[kSuperblockBytes];
  EXPECT_EQ(channel.read(0, block), 0);
  identity = *read_superblock(block, device.capacity_bytes());
  EXPECT_EQ(channel.read(identity.geometry.segment_offset(segment), std::span(block)), 0);
  SegmentHeader header;
  EXPECT_TRUE(read_segment_header(identity, block, header));
  channel.close();
  return header;
}

#if !__has_feature(thread_sanitizer)  // has no room for so much memory
TEST(StoreMake, TheIndexOfALargeStoreBeginsWithSeveralTables) {
  const auto device = storage::make_memory_device(uint64_t{2} << 40);
  ASSERT_TRUE(device) << device.error().message;
  ASSERT_TRUE(Store::make(**device, {.segment_bytes = 1 << 30}));
  const auto store = Store::open(**device, {.stream_count = 1});
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ((*store)->counts().index.tables, 4u);
  EXPECT_TRUE((*store)->close());
  (*device)->close();
}
#endif

TEST(StoreMake, GenerationsBeginFarFromEachOther) {
  storage::Device* const device = *storage::make_memory_device(17 << 20);
  uint64_t before = 0, highest = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    Identity identity;
    const uint64_t generation = header_of(*device, 3, identity).generation;
    EXPECT_EQ(generation, header_of(*device, 0, identity).generation);
    EXPECT_LT(generation, uint64_t{1} << 40);
    EXPECT_GT(std::max(generation, before) - std::min(generation, before), 1u << 16);
    highest = std::max(highest, generation);
    before = generation;
  }
  EXPECT_GT(highest, uint64_t{1} << 34);
  device->close();
}

// A file ends where it was last written to, and a device for a store ends with its file: making a store writes to the end of the last
// segment, whoever made the file.
TEST(StoreMake, AFileIsAsLargeAsItsStore) {
  const std::string folder = make_folder();
  const std::string path = folder + "/store";
  for (const char* scheme : {"", "file:", "aio:"}) {
    auto device = storage::open_device(scheme + path, {});
    ASSERT_TRUE(device) << device.error().message;
    ASSERT_TRUE(Store::make(**device, {.segment_bytes = 1 << 20, .capacity_bytes = (12 << 20) + 123'000}));
    (*device)->close();
    EXPECT_EQ(std::filesystem::file_size(path), 12u << 20);
    device = storage::open_device(scheme + path, {.store = true});
    ASSERT_TRUE(device) << device.error().message;
    auto store = Store::open(**device, {});
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ((*store)->identity().geometry.segment_count, 11u);
    EXPECT_TRUE((*store)->close());
    (*device)->close();
    unlink(path.c_str());
  }
  std::filesystem::remove_all(folder);
}

// If a file has holes, the log fills segments before they are used, all but their headers.
TEST(StoreMake, ASegmentOfAFileHasRoomBeforeItIsUsed) {
  const std::string folder = make_folder();
  const std::string a = folder + "/a", b = folder + "/b";
  for (const std::string& text : {"uring:" + a, "stripe:[" + a + "," + b + "]?unit=64K"}) {
    auto device = storage::open_device(text, {});
    ASSERT_TRUE(device) << device.error().message;
    ASSERT_TRUE(Store::make(**device, {.segment_bytes = 1 << 20, .capacity_bytes = 32 << 20}));
    const auto segments_with_room = [&](const Geometry& geometry) {
      uint64_t count = 0;
      for (uint64_t i = 0; i < geometry.segment_count; ++i)
        count += (*device)->has_room_at(geometry.segment_offset(i), geometry.segment_bytes);
      return count;
    };
    auto store = Store::open(**device, {.durability = Durability::kNone, .stream_count = 1});
    ASSERT_TRUE(store) << store.error().message;
    const Geometry geometry = (*store)->identity().geometry;
    Session session;
    ASSERT_TRUE(session.open(**store));
    ASSERT_TRUE(session.put("key", bytes_of("value")));
    const uint64_t used = segments_with_room(geometry);
    EXPECT_GE(used, 1u);
    if (can_tell_of_holes(a)) EXPECT_LT(used, geometry.segment_count / 2) << "all of it was written";
    session.close();
    ASSERT_TRUE((*store)->close());
    // The headers are as they were.
    store = Store::open(**device, {});
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ((*store)->recovery().lost_segments, 0u);
    ASSERT_TRUE((*store)->close());
    (*device)->close();
    unlink(a.c_str());
    unlink(b.c_str());
  }
  std::filesystem::remove_all(folder);
}

// If a store were opened on anything but the stripe that it was made on, it would be overwritten.
TEST(StoreMake, AStoreIsOpenedOnWhatItWasMadeOnAlone) {
  const std::string folder = make_folder();
  const std::string path = folder + "/", a = path + "a", b = path + "b", c = path + "c";
  const auto stripe = [](const std::string& members, const std::string& unit) {
    return "stripe:[" + members + "]?unit=" + unit;
  };
  const std::string two = a + "," + b, right = stripe(two, "64K");
  const auto content = [&] {
    std::string all;
    for (const std::string& file : {a, b, c}) {
      all += (std::ostringstream() << std::ifstream(file).rdbuf()).str();
    }
    return all;
  };
  const auto with = [](const std::string& text, const auto& act) {
    auto device = storage::open_device(text, {.store = true});
    ASSERT_TRUE(device) << device.error().message;
    act(**device);
    (*device)->close();
  };
  const auto make = [](storage::Device& device) {
    ASSERT_TRUE(Store::make(device, {.segment_bytes = 1 << 20}));
  };
  const auto opens = [](storage::Device& device) {
    auto store = Store::open(device, {});
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_TRUE((*store)->close());
  };
  const auto refused = [&](const std::string& text, const std::string& says) {
    SCOPED_TRACE(text);
    const std::string before = content();
    for (bool read_only : {false, true}) {
      with(text, [&](storage::Device& device) {
        auto store = Store::open(device, {.read_only = read_only});
        ASSERT_FALSE(store);
        EXPECT_EQ(store.error().number, EINVAL);
        EXPECT_NE(std::string(store.error().message).find(says), std::string::npos) << store.error().message;
      });
    }
    EXPECT_TRUE(content() == before);
  };
  for (const std::string& file : {a, b, c}) {
    std::ofstream(file).close();
    std::filesystem::resize_file(file, 12 << 20);
  }
  with(right, make);
  with(right, opens);
  with("fault:[" + right + "]", opens);
  const std::string made = "store: it was made on a stripe of 2 devices in units of 64K, and is opened on ";
  refused(stripe(two, "1M"), made + "a stripe of 2 devices in units of 1M: stripe:[");
  refused(stripe(two + "," + c, "64K"), made + "a stripe of 3 devices in units of 64K");
  refused(a, made + "one device");
  refused(stripe(b + "," + a, "64K"), "holds no store");
  with(right, opens);
  // The stripe has left a superblock where the file alone has none.
  with(a, make);
  with(a, opens);
  refused(right, "store: it was made on one device, and is opened on a stripe of 2 devices in units of 64K");
  std::filesystem::remove_all(folder);
}

class VeryLargeDevice final : public MediumDevice {
 public:
  VeryLargeDevice() : MediumDevice(std::vector<std::byte>(4096)) { capacity_bytes_ = uint64_t{1} << 50; }
};

// An entry of the index has 40 bits for a grain's address.
TEST(StoreMake, ADeviceThatIsTooLargeForItsGrainsIsRefused) {
  auto* const device = new VeryLargeDevice;
  const auto made = Store::make(*device, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().number, EINVAL);
  EXPECT_STREQ(
      made.error().message,
      "store: medium is too large for grains of 512 bytes; give a capacity of 512T or less, or larger "
      "grains");
  device->close();
}

// A device whose flushes fail, from the store's first one after it was opened, or one a bit later.
struct Failing {
  explicit Failing(uint64_t good_flushes, bool logs_told_failures = false) {
    storage::Device* inner = *storage::make_memory_device(17 << 20);
    EXPECT_TRUE(Store::make(*inner, {.segment_bytes = 1 << 20}));
    storage::FaultSchedule faults;
    faults.add({.operations = storage::operation_bit(storage::Operation::kFlush),
                .when = storage::FaultRule::When::kFrom,
                .error = EIO,
                .n = good_flushes + 1});
    device = *storage::make_fault_device(inner, faults);
    auto opened = Store::open(*device, {.stream_count = 1, .logs_told_failures = logs_told_failures});
    EXPECT_TRUE(opened) << opened.error().message;
    store = *opened;
  }
  ~Failing() { device->close(); }

  storage::Device* device = nullptr;
  Store* store = nullptr;
};

TEST(StoreFailure, ThatACallTellsIsNotLogged) {
  testing::internal::CaptureStderr();
  for (uint64_t good_flushes = 1; good_flushes < 4; ++good_flushes) {
    Failing failing(good_flushes);
    Session session;
    ASSERT_TRUE(session.open(*failing.store));
    base::Expected<Changed> done;
    for (int i = 0; i < 100 && done; ++i) done = session.put("key", {});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().number, EIO);
    session.close();
    EXPECT_FALSE(failing.store->close());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// As for a server, whose calls report it only to clients.
TEST(StoreFailure, ThatACallTellsIsLoggedOnceIfItIsToBe) {
  testing::internal::CaptureStderr();
  {
    Failing failing(1, true);
    Session session;
    ASSERT_TRUE(session.open(*failing.store));
    base::Expected<Changed> done;
    for (int i = 0; i < 100 && done; ++i) done = session.put("key", {});
    EXPECT_FALSE(done);
    EXPECT_EQ(failing.store->counts().error, EIO);
    std::this_thread::sleep_for(std::chrono::seconds(4));
    EXPECT_FALSE(session.put("key", {}));
    session.close();
    EXPECT_FALSE(failing.store->close());
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("takes no writes any more: input/output error\n"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST(StoreFailure, ThatNobodyIsToldIsLoggedOnce) {
  static std::mutex lock;
  static std::vector<std::string> said;
  said.clear();
  base::set_log_writer([](const base::LogLine& line) {
    const std::lock_guard scope(lock);
    said.emplace_back(line.text);
  });
  const auto is_logged = [] {
    const std::lock_guard scope(lock);
    return !said.empty();
  };
  {
    Failing failing(1);  // skips the keeper's, for the first segments
    for (int tries = 0; tries < 6000 && !is_logged(); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::seconds(2));  // in which it would be logged again
    EXPECT_FALSE(failing.store->close());
  }
  base::set_log_writer(nullptr);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(said[0].ends_with("takes no writes any more: input/output error")) << said[0];
}

}  // namespace
}  // namespace kv
