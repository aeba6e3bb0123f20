#include "storage/opening/open.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/loop.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "storage/opening/opened.h"
#include "storage/testing/test_io.h"
#include "storage/testing/test_process.h"
#include "sys/files.h"

namespace storage {
namespace {

constexpr OpenParameters kSpill = {.overwrite = false, .spill = true};
constexpr OpenParameters kSpillOverwrite = {.overwrite = true, .spill = true};

// A directory of its own for each test, on a real disk.
class OpenTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/var/tmp/spillway-open-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  std::string path(const std::string& name) const { return directory + "/" + name; }
  void write_file(const std::string& name, const std::string& content) const {
    std::ofstream(path(name)) << content;
  }
  std::string read_file(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
  // A read of two blocks at `offset`: how many bytes came.
  static uint64_t bytes_read(Device& device, uint64_t offset) {
    Queue* queue = device.open_queue(4).value();
    TestIo read(Operation::kRead, offset, {kBlock, kBlock});
    queue->run(read.io);
    EXPECT_EQ(read.io.error, 0);
    device.close_queue(queue);
    return read.io.transferred_bytes;
  }
  size_t entry_count() const {
    auto entries = std::filesystem::directory_iterator(directory);
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }

  // What open_device says when it refuses; closes the device when it does not.
  base::Error refusal(const std::string& text, const OpenParameters& parameters = kSpill) {
    auto device = open_device(text, parameters);
    if (!device) {
      EXPECT_EQ(std::string_view(device.error().message).find('\n'), std::string_view::npos);
      return device.error();
    }
    (*device)->close();
    return base::Error::of(0, "opened");
  }

  // Writes and reads a block at `offset`.
  static void use(Device& device, uint64_t offset) {
    Queue* queue = device.open_queue(4).value();
    TestIo write(Operation::kWrite, offset, {kBlock}), read(Operation::kRead, offset, {kBlock});
    write.fill(1);
    queue->run(write.io);
    EXPECT_TRUE(write.io.whole()) << write.io.error;
    queue->run(read.io);
    EXPECT_EQ(read.first_difference(1), kBlock);
    device.close_queue(queue);
  }

  std::string directory;
};

TEST_F(OpenTest, ADirectoryGetsAFileWithoutName) {
  for (const char* scheme : {"", "file:", "uring:", "aio:"}) {
    auto device = open_device(scheme + directory, kSpill);
    ASSERT_TRUE(device.has_value()) << device.error().message;
    use(**device, 0);
    use(**device, uint64_t{1} << 32);
    EXPECT_EQ(entry_count(), 0u);
    EXPECT_TRUE((*device)->discards());
    EXPECT_GE((*device)->capacity_bytes(), uint64_t{1} << 40);
    EXPECT_NE(std::string_view((*device)->name()).find(directory), std::string_view::npos);
    (*device)->close();
  }
}

TEST_F(OpenTest, PrivateFilesArePrivate) {
  auto medium = open_medium(directory, kSpill);
  ASSERT_TRUE(medium.has_value());
  EXPECT_TRUE(sys::is_own_descriptor(medium->descriptor));
  EXPECT_EQ(fcntl(medium->descriptor, F_GETFD), FD_CLOEXEC);
  struct stat facts;
  ASSERT_EQ(fstat(medium->descriptor, &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_EQ(facts.st_nlink, 0u);
  EXPECT_EQ(facts.st_size, 0);
  sys::close_own_descriptor(medium->descriptor);
}

TEST_F(OpenTest, NothingThereBecomesAFileWithoutName) {
  auto device = open_device(path("new"), kSpill);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  use(**device, 0);
  EXPECT_EQ(entry_count(), 0u);
  (*device)->close();
}

// Whoever has opened it by the name that it had for a moment would write over its pages.
TEST_F(OpenTest, AFileWithoutNameIsLocked) {
  auto medium = open_medium(path("new"), kSpill);
  ASSERT_TRUE(medium.has_value()) << medium.error().message;
  EXPECT_EQ(refusal("/proc/self/fd/" + std::to_string(medium->descriptor)).number, EBUSY);
  close_medium(*medium);
}

TEST_F(OpenTest, TwoThatComeAtOnceDoNotShareAFile) {
  for (int round = 0; round < 300; ++round) {
    base::Expected<Medium> media[2];
    std::atomic<int> ready{0};
    const auto open_one = [&](base::Expected<Medium>& medium) {
      ++ready;
      while (ready < 2) std::this_thread::yield();
      medium = open_medium(path("new"), kSpill);
    };
    std::thread other([&] { open_one(media[1]); });
    open_one(media[0]);
    other.join();
    ino_t inodes[2] = {0, 1};
    for (int i : {0, 1}) {
      if (!media[i]) {
        EXPECT_EQ(media[i].error().number, EBUSY) << media[i].error().message;
        continue;
      }
      struct stat facts = {};
      EXPECT_EQ(fstat(media[i]->descriptor, &facts), 0);
      inodes[i] = facts.st_ino;
    }
    EXPECT_NE(inodes[0], inodes[1]);
    for (const auto& medium : media)
      if (medium) close_medium(*medium);
    std::filesystem::remove(path("new"));  // that of the one who had found it
  }
}

TEST_F(OpenTest, AnEmptyFileIsUsed) {
  write_file("empty", "");
  auto device = open_device(path("empty"), kSpill);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  use(**device, 0);
  EXPECT_EQ(std::filesystem::file_size(path("empty")), kBlock);
  (*device)->close();
}

TEST_F(OpenTest, TheEndIsThatOfWhatWasWritten) {
  write_file("named", "");
  for (const std::string& text : {directory, "file:" + directory, path("named"), "file:" + path("new")}) {
    auto device = open_device(text, kSpill);
    ASSERT_TRUE(device.has_value()) << device.error().message;
    EXPECT_EQ(bytes_read(**device, 0), 0u) << text;
    use(**device, 7 * kBlock);
    EXPECT_EQ(bytes_read(**device, 0), 2 * kBlock) << text;
    EXPECT_EQ(bytes_read(**device, 7 * kBlock), kBlock) << text;
    EXPECT_EQ(bytes_read(**device, 8 * kBlock), 0u) << text;
    (*device)->close();
  }
}

TEST_F(OpenTest, AFileOfAnotherProcessIsRefused) {
  write_file("empty", "");
  int other = open(path("empty").c_str(), O_RDWR);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  for (const OpenParameters& parameters : {kSpill, kSpillOverwrite}) {
    base::Error error = refusal(path("empty"), parameters);
    EXPECT_EQ(error.number, EBUSY);
    EXPECT_NE(std::string_view(error.message).find("name a directory"), std::string_view::npos);
  }
  close(other);
  EXPECT_EQ(refusal(path("empty")).number, 0);
}

TEST_F(OpenTest, ContentIsKeptUnlessGivenUp) {
  std::string content = "precious\n" + std::string(10000, 'x');
  write_file("full", content);
  for (const std::string& text :
       {path("full"), "file:" + path("full"), "fault:[uring:" + path("full") + "]"}) {
    base::Error error = refusal(text);
    EXPECT_EQ(error.number, EEXIST);
    EXPECT_NE(std::string_view(error.message).find("--storage-overwrite"), std::string_view::npos);
    EXPECT_NE(std::string_view(error.message).find(path("full")), std::string_view::npos);
    EXPECT_EQ(read_file("full"), content);
  }
  auto device = open_device(path("full"), kSpillOverwrite);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  EXPECT_EQ(std::filesystem::file_size(path("full")), 0u);
  use(**device, 0);
  (*device)->close();
}

TEST_F(OpenTest, RefusedOverwriteLosesNothing) {
  write_file("full", "precious");
  rlimit old_limit;
  getrlimit(RLIMIT_FSIZE, &old_limit);
  rlimit limit = {1 << 20, old_limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_EQ(refusal(path("full"), kSpillOverwrite).number, EFBIG);
  setrlimit(RLIMIT_FSIZE, &old_limit);
  EXPECT_EQ(read_file("full"), "precious");
}

TEST_F(OpenTest, CapacityStaysBelowTheFileSizeLimit) {
  rlimit old_limit;
  getrlimit(RLIMIT_FSIZE, &old_limit);
  rlimit limit = {(100 << 20) + 123, old_limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  auto device = open_device(directory, kSpill);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  EXPECT_EQ((*device)->capacity_bytes(), uint64_t{100} << 20);
  use(**device, (*device)->capacity_bytes() - kBlock);  // raises no SIGXFSZ
  (*device)->close();
  setrlimit(RLIMIT_FSIZE, &old_limit);
}

TEST_F(OpenTest, WithoutSpillFilesAreKept) {
  auto device = open_device(path("store"), {});
  ASSERT_TRUE(device.has_value()) << device.error().message;
  use(**device, 0);
  (*device)->close();
  EXPECT_EQ(std::filesystem::file_size(path("store")), kBlock);
  device = open_device(path("store"), {});
  ASSERT_TRUE(device.has_value()) << device.error().message;
  Queue* queue = (*device)->open_queue(1).value();
  TestIo read(Operation::kRead, 0, {kBlock});
  queue->run(read.io);
  EXPECT_EQ(read.first_difference(1), kBlock);
  (*device)->close_queue(queue);
  (*device)->close();
  EXPECT_EQ(refusal(directory, {}).number, EISDIR);
}

TEST_F(OpenTest, WhatIsForAStoreIsNotMadeNorGrownNorShared) {
  constexpr OpenParameters kStore = {.store = true};
  EXPECT_EQ(refusal(path("none"), kStore).number, ENOENT);
  EXPECT_EQ(refusal(directory, kStore).number, EISDIR);
  EXPECT_EQ(entry_count(), 0u);
  write_file("file", "");
  EXPECT_EQ(refusal(path("file"), kStore).number, EINVAL) << "nothing is in it";
  std::filesystem::resize_file(path("file"), (1 << 20) + 5);
  for (const char* scheme : {"", "file:", "uring:", "aio:"}) {
    auto device = open_device(scheme + path("file"), kStore);
    ASSERT_TRUE(device.has_value()) << device.error().message;
    EXPECT_EQ((*device)->capacity_bytes(), uint64_t{1} << 20);
    use(**device, (1 << 20) - kBlock);
    const base::Error busy = refusal(path("file"), kStore);
    EXPECT_EQ(busy.number, EBUSY);
    EXPECT_NE(std::string_view(busy.message).find("in use, here or in another process"),
              std::string_view::npos);
    (*device)->close();
  }
  EXPECT_EQ(std::filesystem::file_size(path("file")), (1u << 20) + 5);
  EXPECT_EQ(refusal(path("file"), kStore).number, 0) << "it is free again";
  // As what a process that was killed had under way.
  const int other = open(path("file").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  std::thread thread([other] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    close(other);
  });
  EXPECT_EQ(refusal(path("file"), kStore).number, 0) << "soon it is free";
  thread.join();
}

TEST_F(OpenTest, AStoreThatIsClosedIsFreeThoughChildrenHaveItsFile) {
  constexpr OpenParameters kStore = {.store = true};
  write_file("file", std::string(1 << 20, 'x'));
  for (const std::string& text :
       {path("file"), "file:" + path("file"), "aio:" + path("file"), "pmem:" + path("file") + "?dax=0"}) {
    auto device = open_device(text, kStore);
    ASSERT_TRUE(device.has_value()) << device.error().message;
    const IdleChild child;
    (*device)->close();
    EXPECT_EQ(refusal(path("file"), kStore).number, 0) << text;
  }
}

TEST_F(OpenTest, WhatIsTooLargeForAFileIsSaid) {
  constexpr OpenParameters kStore = {.store = true};
  constexpr uint64_t kMaxBytes = uint64_t{8} << 40;
  write_file("file", "");
  std::error_code failed;
  std::filesystem::resize_file(path("file"), kMaxBytes + kBlock, failed);
  if (failed) GTEST_SKIP() << "the file system has no files of 8 TiB: " << failed.message();
  const base::Error error = refusal(path("file"), kStore);
  EXPECT_EQ(error.number, EFBIG);
  EXPECT_TRUE(
      std::string_view(error.message).ends_with("K; name a block device, or a stripe of several files"))
      << error.message;
  std::filesystem::resize_file(path("file"), kMaxBytes);
  EXPECT_EQ(refusal(path("file"), kStore).number, 0);
}

// As on a file system that has no locks: a descriptor that only names a file has none.
TEST_F(OpenTest, WhatCannotBeLockedIsRefused) {
  write_file("file", "store");
  const int descriptor = open(path("file").c_str(), O_PATH | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  for (const auto lock : {lock_for_store, lock_for_spilling}) {
    const auto locked = lock(Path(path("file")), descriptor);
    ASSERT_FALSE(locked);
    EXPECT_EQ(locked.error().number, EBADF);
    EXPECT_NE(std::string_view(locked.error().message).find("it cannot be locked against others"),
              std::string_view::npos)
        << locked.error().message;
  }
  close(descriptor);
}

TEST_F(OpenTest, WhatIsNotOfWholePagesIsRefusedWhereItIsToBe) {
  constexpr OpenParameters kWhole = {.store = true, .whole = true};
  write_file("file", "");
  for (const size_t bytes : {0, 1, 4095, 4097, 10'001}) {
    std::filesystem::resize_file(path("file"), bytes);
    const base::Error error = refusal(path("file"), kWhole);
    EXPECT_EQ(error.number, EINVAL);
    const std::string words =
        bytes == 0 ? "this file is empty" : "this file has " + std::to_string(bytes) + " bytes, and not";
    EXPECT_NE(std::string_view(error.message).find(words), std::string_view::npos) << error.message;
  }
  std::filesystem::resize_file(path("file"), 3 * 4096);
  write_file("other", std::string(5000, 'x'));
  EXPECT_EQ(refusal("stripe:[" + path("file") + "," + path("other") + "]?unit=4K", kWhole).number, EINVAL);
  EXPECT_EQ(refusal(path("file"), kWhole).number, 0);
}

TEST_F(OpenTest, WhatIsOnlyReadMayEndInAPage) {
  constexpr OpenParameters kRead = {.store = true, .whole = true, .read_only = true};
  write_file("file", "");
  EXPECT_EQ(refusal(path("file"), kRead).number, EINVAL) << "nothing is to be read";
  for (const size_t bytes : {1, 511, 512, 4095, 4096, 4097, 10'001})
    for (const std::string scheme : {"", "file:", "uring:", "aio:", "latency:us=1:[file:"}) {
      write_file("file", std::string(bytes, 'x'));
      auto device = open_device(scheme + path("file") + (scheme.ends_with("[file:") ? "]" : ""), kRead);
      ASSERT_TRUE(device.has_value()) << device.error().message;
      EXPECT_EQ((*device)->capacity_bytes(), (bytes + kBlock - 1) / kBlock * kBlock);
      EXPECT_EQ((*device)->end_bytes(), bytes);
      Queue* queue = (*device)->open_queue(1).value();
      TestIo read(Operation::kRead, 0, {(*device)->capacity_bytes()});
      queue->run(read.io);
      EXPECT_EQ(read.io.error, 0) << scheme;
      EXPECT_EQ(read.io.transferred_bytes, bytes) << scheme;
      EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(read.bytes), bytes), std::string(bytes, 'x'));
      (*device)->close_queue(queue);
      (*device)->close();
    }
  // Of a stripe whole units are used only.
  write_file("other", std::string(3 * kBlock, 'y'));
  auto stripe = open_device("stripe:[" + path("file") + "," + path("other") + "]?unit=4K", kRead);
  ASSERT_TRUE(stripe.has_value()) << stripe.error().message;
  EXPECT_EQ((*stripe)->capacity_bytes(), 4 * kBlock);
  EXPECT_EQ((*stripe)->end_bytes(), 4 * kBlock);
  (*stripe)->close();
}

TEST_F(OpenTest, WhatIsOnlyReadIsNotWritten) {
  write_file("file", std::string(1 << 20, 'x'));
  for (const char* scheme : {"", "file:", "uring:", "aio:"}) {
    auto device = open_device(scheme + path("file"), {.store = true, .read_only = true});
    ASSERT_TRUE(device.has_value()) << device.error().message;
    Queue* queue = (*device)->open_queue(1).value();
    TestIo read(Operation::kRead, 0, {kBlock});
    queue->run(read.io);
    EXPECT_TRUE(read.io.whole());
    TestIo write(Operation::kWrite, 0, {kBlock});
    write.fill(1);
    queue->run(write.io);
    EXPECT_NE(write.io.error, 0) << scheme;
    Io discard;
    discard.operation = Operation::kDiscard;
    discard.length_bytes = kBlock;
    queue->run(discard);
    (*device)->close_queue(queue);
    EXPECT_EQ(refusal(path("file"), {.store = true}).number, EBUSY) << "no other process has it meanwhile";
    (*device)->close();
    std::ifstream file(path("file"));
    EXPECT_EQ(std::string(std::istreambuf_iterator(file), {}), std::string(1 << 20, 'x'));
  }
}

TEST_F(OpenTest, OtherKindsAreRefused) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(refusal(path("fifo")).number, EINVAL);
  EXPECT_EQ(refusal("/dev/null").number, EINVAL);
  EXPECT_EQ(refusal("/dev/zero", kSpillOverwrite).number, EINVAL);
}

TEST_F(OpenTest, ErrorsSayWhatWhereAndWhatToDo) {
  base::Error error = refusal(path("no/such/place"));
  EXPECT_EQ(error.number, ENOENT);
  EXPECT_EQ(std::string(error.message),
            "storage " + path("no/such/place") + ": no such directory; make it, or name another place");
  EXPECT_EQ(refusal("/dev/nvme9n9").number, ENOENT);
  EXPECT_FALSE(std::filesystem::exists("/dev/nvme9n9"));

  EXPECT_EQ(std::string(refusal("/proc").message),
            "storage /proc: no files can be made there; name another place");

  std::filesystem::create_symlink(path("nothing"), path("link"));
  for (const OpenParameters& parameters : {kSpill, OpenParameters{}}) {
    error = refusal(path("link"), parameters);
    EXPECT_EQ(error.number, EINVAL);
    EXPECT_EQ(std::string(error.message),
              "storage " + path("link") +
                  ": it is a link to a file that is not there; remove the link, or name that file");
    EXPECT_FALSE(std::filesystem::exists(path("nothing")));
  }

  std::string long_name = path(std::string(300, 'n'));
  EXPECT_EQ(refusal(long_name).number, ENAMETOOLONG);
  EXPECT_EQ(refusal("").number, EINVAL);
  if (geteuid() != 0) {
    chmod(directory.c_str(), 0500);
    error = refusal(path("new"));
    EXPECT_EQ(error.number, EACCES);
    EXPECT_NE(std::string_view(error.message).find(directory), std::string_view::npos);
    chmod(directory.c_str(), 0700);
  }
}

// A file system of its own; only root can make one.
class MountedTest : public OpenTest {
 protected:
  void mount_memory(const char* options) {
    OpenTest::SetUp();
    if (mount("none", directory.c_str(), "tmpfs", 0, options) != 0)
      GTEST_SKIP() << "cannot mount a tmpfs here";
    mounted = true;
  }
  void SetUp() override {}
  void TearDown() override {
    if (mounted) umount2(directory.c_str(), MNT_DETACH);
    OpenTest::TearDown();
  }
  bool mounted = false;
};

TEST_F(MountedTest, TooLittleRoomIsRefused) {
  mount_memory("size=1m");
  if (!mounted) return;
  base::Error error = refusal(directory);
  EXPECT_EQ(error.number, ENOSPC);
  EXPECT_NE(std::string_view(error.message).find(directory), std::string_view::npos);
  EXPECT_EQ(entry_count(), 0u);
}

TEST_F(MountedTest, MemoryIsWarnedAbout) {
  mount_memory("size=128m");
  if (!mounted) return;
  testing::internal::CaptureStderr();
  auto device = open_device(directory, kSpill);
  std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(device.has_value()) << device.error().message;
  EXPECT_NE(said.find("this is memory"), std::string::npos);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  use(**device, 0);
  (*device)->close();
}

TEST_F(MountedTest, AFullFileSystemReachesTheCaller) {
  mount_memory("size=1m");
  if (!mounted) return;
  for (const char* scheme : {"file:", "uring:", "aio:"}) {
    auto device = open_device(scheme + path("store"), {});
    ASSERT_TRUE(device.has_value()) << device.error().message;
    Queue* queue = (*device)->open_queue(4).value();
    bool full = false;
    for (uint64_t i = 0; i < 32 && !full; ++i) {
      TestIo write(Operation::kWrite, i * 16 * kBlock, {16 * kBlock});
      write.fill(1);
      queue->run(write.io);
      full = !write.io.whole();
      if (full && write.io.error != 0) EXPECT_EQ(write.io.error, ENOSPC);
    }
    EXPECT_TRUE(full) << scheme;
    (*device)->close_queue(queue);
    (*device)->close();
    unlink(path("store").c_str());
  }
}

// A block device made of a file; needs root and the kernel's loop driver.
class BlockDeviceTest : public OpenTest {
 protected:
  void SetUp() override {
    OpenTest::SetUp();
    write_file("image", "");
    std::filesystem::resize_file(path("image"), 32 << 20);
    int control = ::open("/dev/loop-control", O_RDWR);
    int number = control >= 0 ? ioctl(control, LOOP_CTL_GET_FREE) : -1;
    if (control >= 0) ::close(control);
    if (number < 0) GTEST_SKIP() << "no loop devices here";
    name = "/dev/loop" + std::to_string(number);
    int image = ::open(path("image").c_str(), O_RDWR);
    loop = ::open(name.c_str(), O_RDWR);
    if (loop < 0 || ioctl(loop, LOOP_SET_FD, image) != 0) GTEST_SKIP() << "cannot set up " << name;
    ::close(image);
  }
  void TearDown() override {
    if (loop >= 0) {
      ioctl(loop, LOOP_CLR_FD, 0);
      ::close(loop);
    }
    OpenTest::TearDown();
  }
  std::string name;
  int loop = -1;
};

TEST_F(BlockDeviceTest, AnEmptyOneIsUsedWhole) {
  auto device = open_device(name, kSpill);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  EXPECT_EQ((*device)->capacity_bytes(), uint64_t{32} << 20);
  EXPECT_LE((*device)->block_bytes(), 4096u);
  use(**device, (32 << 20) - kBlock);
  EXPECT_EQ(refusal(name).number, EBUSY) << "while it is open";

  Queue* queue = (*device)->open_queue(4).value();
  Io discard;
  discard.operation = Operation::kDiscard;
  discard.offset_bytes = (32 << 20) - kBlock;
  discard.length_bytes = kBlock;
  queue->run(discard);
  EXPECT_TRUE(discard.whole()) << discard.error;
  (*device)->close_queue(queue);
  use(**device, (32 << 20) - kBlock);
  (*device)->close();
}

// It may be read. The kernel lets anybody open it for writing, and refuses only the writes.
TEST_F(BlockDeviceTest, OneThatIsReadOnlyIsNotWritten) {
  int is_read_only = 1;
  if (ioctl(loop, BLKROSET, &is_read_only) != 0) GTEST_SKIP() << "cannot make " << name << " read-only";
  for (const OpenParameters& parameters : {kSpill, OpenParameters{.store = true}}) {
    const base::Error error = refusal(name, parameters);
    EXPECT_EQ(error.number, EROFS) << error.message;
    EXPECT_NE(std::string_view(error.message).find("this block device is read-only"), std::string_view::npos);
  }
  EXPECT_EQ(refusal(name, {.store = true, .read_only = true}).number, 0);
  is_read_only = 0;
  ASSERT_EQ(ioctl(loop, BLKROSET, &is_read_only), 0);
  EXPECT_EQ(refusal(name).number, 0);
}

// What is on disk is read and written through a ring, what is in memory by plain calls.
TEST_F(BlockDeviceTest, ZramNeedsNoRing) {
  auto on_disk = open_device(name, kSpill);
  ASSERT_TRUE(on_disk.has_value()) << on_disk.error().message;
  EXPECT_TRUE(std::string_view((*on_disk)->name()).starts_with("uring:")) << (*on_disk)->name();
  (*on_disk)->close();
  std::string number;
  std::ifstream("/sys/class/zram-control/hot_add") >> number;
  if (number.empty()) GTEST_SKIP() << "no zram here";
  std::ofstream("/sys/block/zram" + number + "/disksize") << "64M";
  auto device = open_device("/dev/zram" + number, kSpill);
  if (device) {
    EXPECT_TRUE(std::string_view((*device)->name()).starts_with("file:")) << (*device)->name();
    use(**device, (64 << 20) - kBlock);
    (*device)->close();
  }
  std::ofstream("/sys/block/zram" + number + "/reset") << "1";
  std::ofstream("/sys/class/zram-control/hot_remove") << number;
  if (!device) GTEST_SKIP() << device.error().message;
}

// The medium goes while reads are under way, and before some: each ends once, none as if all were well.
TEST_F(BlockDeviceTest, OneThatGoesFailsWhatIsUnderWay) {
  for (const char* scheme : {"uring:", "aio:", "file:"}) {
    std::filesystem::resize_file(path("image"), 32 << 20);
    auto device = open_device(scheme + name, kSpillOverwrite);
    ASSERT_TRUE(device.has_value()) << device.error().message;
    Queue* queue = (*device)->open_queue(64).value();
    std::vector<std::unique_ptr<TestIo>> ios;
    for (uint64_t i = 0; i < 64; ++i) {
      if (i == 16) std::filesystem::resize_file(path("image"), 0);
      ios.push_back(std::make_unique<TestIo>(Operation::kRead, i * 32 * kBlock, std::vector{kBlock}));
      Io* batch[] = {&ios.back()->io};
      ASSERT_EQ(queue->submit(batch), 1u);
    }
    while (queue->in_flight_count() > 0) ASSERT_GT(queue->wait(), 0u);
    for (auto& io : ios) EXPECT_EQ(io->done_count, 1);
    for (uint64_t i = 16; i < 64; ++i) EXPECT_EQ(ios[i]->io.error, EIO) << scheme << i;
    (*device)->close_queue(queue);
    (*device)->close();
  }
}

TEST_F(BlockDeviceTest, OneWithContentIsRefused) {
  char byte = 'x';
  ASSERT_EQ(pwrite(loop, &byte, 1, 65535), 1);
  ASSERT_EQ(fsync(loop), 0);
  base::Error error = refusal(name);
  EXPECT_EQ(error.number, EEXIST);
  EXPECT_NE(std::string_view(error.message).find("--storage-overwrite"), std::string_view::npos);
  EXPECT_EQ(read_file("image").find('x'), 65535u);
  EXPECT_EQ(refusal(name, kSpillOverwrite).number, 0);
}

}  // namespace
}  // namespace storage
