#include "storage/decorators/encrypt.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "storage/backends/memory.h"
#include "storage/testing/test_process.h"
#include "storage/testing/test_queue.h"
#include "storage/testing/test_xts_vectors.h"

namespace storage {
namespace {

constexpr size_t kSector = XtsCipher::kSectorBytes;
constexpr uint64_t kMemoryBytes = 64 << 20;

// What the kernel says of the mapping that `address` lies in, such as " dd " and " lo ".
std::string mapping_flags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_its = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      is_its = begin <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < end;
    else if (is_its && line.starts_with("VmFlags:"))
      return line + " ";
  }
  return "";
}

// Is the limit on locked memory high enough for a key?
bool may_lock() {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur >= 1 << 20;
}

// Over memory, which the test looks into.
class Encrypt : public QueueTest {
 protected:
  void open() {
    Device* const memory = make_memory_device(kMemoryBytes).value();
    medium = reinterpret_cast<const unsigned char*>(memory->whereabouts().memory);
    XtsKey key;
    set_to_vectors_key(key);
    device = make_encrypt_device(memory, key).value();
    queue = device->open_queue(8).value();
  }

  const unsigned char* medium = nullptr;
};

// With a file that it makes, and removes.
class EncryptFile : public QueueTest {
 protected:
  ~EncryptFile() override { std::filesystem::remove_all(folder); }
  EncryptFile() { std::filesystem::create_directory(folder); }

  std::string content() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void make_key(const std::string& name, unsigned char first) const {
    std::string bytes(XtsKey::kBytes, 'k');
    bytes[0] = static_cast<char>(first);
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
    ASSERT_EQ(chmod((folder + "/" + name).c_str(), 0600), 0);
  }
  std::string with_key(const std::string& name, const std::string& inner) const {
    return "encrypt:key=" + folder + "/" + name + ":[" + inner + "]";
  }

  const std::string folder = testing::TempDir() + "spillway-encrypt-" + std::to_string(getpid());
  const std::string path = folder + "/medium";
};

TEST_F(Encrypt, TheMediumHoldsWhatTheStandardSays) {
  open();
  ASSERT_EQ(device->block_bytes(), kSector);
  for (const XtsVector& vector : kXtsVectors) {
    if ((vector.sector + 1) * kSector > kMemoryBytes) continue;
    TestIo write(Operation::kWrite, vector.sector * kSector, {kSector});
    fill_with_vectors_text(write.bytes);
    queue->run(write.io);
    ASSERT_TRUE(write.io.whole());
    EXPECT_TRUE(is_encrypted_as(vector, medium + vector.sector * kSector)) << vector.number;
  }
}

// Of a larger block each sector is encrypted under its own number: what was written in one piece can be read in others.
TEST_F(Encrypt, SectorsKnowNothingOfEachOther) {
  open();
  run(Operation::kWrite, 0, 4 * kBlock, 1);
  for (uint64_t sector = 0; sector < 4 * kBlock / kSector; ++sector) {
    const auto read = run(Operation::kRead, sector * kSector, kSector);
    EXPECT_EQ(read->first_difference(1), kSector);
  }
  const std::vector<unsigned char> before(medium, medium + 4 * kBlock);
  run(Operation::kWrite, 2 * kSector, kSector, 2);
  for (size_t sector = 0; sector < 4 * kBlock / kSector; ++sector)
    EXPECT_EQ(memcmp(medium + sector * kSector, &before[sector * kSector], kSector) == 0, sector != 2);
}

TEST_F(Encrypt, NothingOfItCanBeReadOnTheMedium) {
  open();
  const std::string planted = "what nobody else shall read";
  TestIo write(Operation::kWrite, 0, {4 * kBlock});
  for (size_t at = 0; at + planted.size() <= write.io.length_bytes; at += planted.size())
    memcpy(write.bytes + at, planted.data(), planted.size());
  queue->run(write.io);
  ASSERT_TRUE(write.io.whole());
  const std::string_view all(reinterpret_cast<const char*>(medium), 4 * kBlock);
  EXPECT_EQ(all.find(planted.substr(0, 8)), std::string_view::npos);
  EXPECT_NE(memcmp(medium, medium + planted.size() * kSector, kSector), 0)
      << "the same text at another place";
}

// What is written is not touched: it may be in use, or in memory that is only read.
TEST_F(Encrypt, WritesLeaveTheirMemoryAsItIs) {
  open();
  TestIo write(Operation::kWrite, 0, {8 * kBlock});
  write.fill(3);
  ASSERT_EQ(mprotect(write.bytes, 8 * kBlock, PROT_READ), 0);
  queue->run(write.io);
  Io* batch[] = {&write.io};
  ASSERT_EQ(queue->submit(batch), 1u);
  while (queue->in_flight_count() > 0) queue->wait();
  EXPECT_TRUE(write.io.whole());
  EXPECT_EQ(write.first_difference(3), 8 * kBlock);
  ASSERT_EQ(mprotect(write.bytes, 8 * kBlock, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(run(Operation::kRead, 0, 8 * kBlock)->first_difference(3), 8 * kBlock);
}

TEST_F(Encrypt, WhatWasNeverWrittenOrIsDiscardedReadsAsZeros) {
  open();
  run(Operation::kWrite, kSector, 2 * kSector, 4);
  run(Operation::kWrite, kBlock, 2 * kBlock, 4);
  run(Operation::kDiscard, kBlock, kBlock);
  const auto read = run(Operation::kRead, 0, 3 * kBlock);
  ASSERT_TRUE(read->io.whole());
  for (size_t i = 0; i < 3 * kBlock; ++i) {
    const bool is_written = (i >= kSector && i < 3 * kSector) || i >= 2 * kBlock;
    ASSERT_EQ(read->bytes[i], is_written ? TestIo::pattern(i, 4) : 0) << i;
  }
  // Zeros that were written are not zeros there.
  TestIo zeros(Operation::kWrite, 8 * kBlock, {kBlock});
  memset(zeros.bytes, 0, kBlock);
  queue->run(zeros.io);
  EXPECT_FALSE(
      std::all_of(medium + 8 * kBlock, medium + 9 * kBlock, [](unsigned char byte) { return byte == 0; }));
  EXPECT_TRUE(std::ranges::all_of(std::span(run(Operation::kRead, 8 * kBlock, kBlock)->bytes, kBlock),
                                  [](unsigned char byte) { return byte == 0; }));
}

TEST_F(Encrypt, SegmentsOfAnyBlocks) {
  open();
  TestIo write(Operation::kWrite, kSector, {kSector, 3 * kSector, 9 * kSector, 2 * kBlock, 7 * kSector});
  write.fill(5);
  queue->run(write.io);
  ASSERT_TRUE(write.io.whole());
  TestIo read(Operation::kRead, kSector,
              {kBlock, kSector, 3 * kBlock, write.io.length_bytes - 4 * kBlock - kSector});
  queue->run(read.io);
  EXPECT_TRUE(read.io.whole());
  EXPECT_EQ(read.first_difference(5), read.io.length_bytes);
}

TEST_F(Encrypt, ErrorsAndEndsAreTheMediums) {
  constexpr size_t kPiece = kMaxSegments * kBlock;
  open_queue_of(
      "encrypt:[fault:write_eio=@2,write_short=@4,read_eio=@2,read_short=@3,flush_eio=@1:[memory:4M]]");
  auto io = run(Operation::kWrite, 0, 3 * kPiece, 8);
  EXPECT_EQ(io->io.error, EIO);
  EXPECT_EQ(io->io.transferred_bytes, kPiece) << "the first piece was written";
  io = run(Operation::kWrite, 0, 2 * kPiece, 8);
  EXPECT_EQ(io->io.error, 0);
  EXPECT_EQ(io->io.transferred_bytes, kPiece + kPiece / 2);
  EXPECT_EQ(run(Operation::kRead, 0, kPiece)->first_difference(8), kPiece);
  EXPECT_EQ(run(Operation::kRead, 0, kBlock)->io.error, EIO);
  io = run(Operation::kRead, 0, 2 * kBlock);
  EXPECT_EQ(io->io.error, 0);
  EXPECT_EQ(io->io.transferred_bytes, kBlock);
  EXPECT_EQ(io->first_difference(8), kBlock);
  EXPECT_EQ(run(Operation::kFlush, 0, 0)->io.error, EIO);
  EXPECT_TRUE(use(*queue, kPiece)) << "all memory has been given back";
}

TEST_F(Encrypt, IsWhatTheDeviceInsideIs) {
  open_queue_of("encrypt:[stripe:[memory:4M,memory:4M]?unit=8K]");
  EXPECT_EQ(device->capacity_bytes(), 8u << 20);
  EXPECT_EQ(device->layout(), (Layout{.member_count = 2, .unit_bytes = 8192}));
  EXPECT_TRUE(device->discards());
  EXPECT_TRUE(std::string_view(device->name()).starts_with("encrypt:[stripe:")) << device->name();
  close();
  open_queue_of("encrypt:[memory:8K]");
  EXPECT_EQ(device->whereabouts().memory, nullptr) << "who looks there finds nothing";
}

TEST_F(Encrypt, AChildOfForkHasTheKey) {
  open_queue_of("encrypt:[memory:1M]");
  run(Operation::kWrite, 0, kBlock, 9);
  const int status = in_child([&] {
    Queue* const own = device->open_queue(1).value();
    TestIo read(Operation::kRead, 0, {kBlock});
    own->run(read.io);
    return read.first_difference(9) == kBlock;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(Encrypt, TheKeyIsInNoCoreFileNorSwap) {
  open();
  const std::string flags = mapping_flags(device);
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
  if (may_lock()) EXPECT_NE(flags.find(" lo "), std::string::npos) << flags;
}

TEST_F(Encrypt, NorIsThatOfAChildOfFork) {
  open();
  const int status = in_child([&] {
    Queue* const own = device->open_queue(1).value();
    const std::string flags = mapping_flags(device);
    device->close_queue(own);
    return flags.find(" dd ") != std::string::npos &&
           (!may_lock() || flags.find(" lo ") != std::string::npos);
  });
  EXPECT_EQ(status, 0);
}

TEST_F(EncryptFile, AKeyReadsWhatItHasWritten) {
  make_key("one", 1);
  make_key("other", 2);
  open_queue_of(with_key("one", path));
  run(Operation::kWrite, 0, 8 * kBlock, 1);
  close();
  const std::string before = content();
  for (const char* again : {"file:", "aio:", ""}) {
    open_queue_of(with_key("one", again + path));
    EXPECT_EQ(run(Operation::kRead, 0, 8 * kBlock)->first_difference(1), 8 * kBlock);
    close();
  }
  for (const std::string& text : {with_key("other", path), "encrypt:[" + path + "]", path}) {
    open_queue_of(text);
    EXPECT_LT(run(Operation::kRead, 0, 8 * kBlock)->first_difference(1), 16u) << text;
    close();
  }
  EXPECT_EQ(content(), before);
}

// More than there is memory to encrypt into: in pieces, and one after the other.
TEST_F(EncryptFile, WritesOfAnySizeAndNumber) {
  for (const std::string& inner :
       {std::string("memory:32M"),
        std::string("fault:seed=1,any_delay_polls=1/2x3,write_split=1/3:[memory:32M]"), path}) {
    SCOPED_TRACE(inner);
    open_queue_of("encrypt:[" + inner + "]");
    constexpr size_t kBig = (3 << 20) + kBlock;
    run(Operation::kWrite, kBlock, kBig, 6);
    EXPECT_EQ(run(Operation::kRead, kBlock, kBig)->first_difference(6), kBig);
    std::vector<std::unique_ptr<TestIo>> writes;
    std::vector<Io*> batch;
    for (uint64_t i = 0; i < 16; ++i) {
      const size_t length = i % 4 == 3 ? 700'000 / kBlock * kBlock : 30 * kBlock;
      writes.push_back(std::make_unique<TestIo>(Operation::kWrite, i << 20, std::vector{length}));
      writes.back()->fill(7);
      batch.push_back(&writes.back()->io);
    }
    queue->run(batch);
    for (const auto& write : writes) {
      EXPECT_TRUE(write->io.whole());
      EXPECT_EQ(write->done_count, 1);
      const auto read = run(Operation::kRead, write->io.offset_bytes, write->io.length_bytes);
      EXPECT_EQ(read->first_difference(7), read->io.length_bytes);
    }
    close();
  }
}

TEST_F(EncryptFile, WithoutAKeyEachDeviceHasItsOwn) {
  std::string contents[2];
  for (std::string& seen : contents) {
    open_queue_of("encrypt:[" + path + "]");
    run(Operation::kWrite, 0, kBlock, 1);
    EXPECT_EQ(run(Operation::kRead, 0, kBlock)->first_difference(1), kBlock);
    close();
    seen = content();
  }
  ASSERT_EQ(contents[0].size(), contents[1].size());
  EXPECT_NE(contents[0], contents[1]);
}

TEST_F(EncryptFile, WhatIsToStayNeedsAKey) {
  make_key("key", 1);
  std::ofstream(path) << std::string(8 * kBlock, 'x');
  const std::string before = content();
  const OpenParameters store = {.store = true};
  auto opened = open_device("encrypt:[" + path + "]", store);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number, EINVAL);
  EXPECT_NE(std::string(opened.error().message).find("encrypt:key=FILE:[DEVICE]"), std::string::npos);
  opened = open_device(with_key("none", path), store);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number, ENOENT);
  opened = open_device(with_key("key", path), store);
  ASSERT_TRUE(opened) << opened.error().message;
  (*opened)->close();
  EXPECT_EQ(content(), before);
}

// The last block of a file that is only read may be there in part.
TEST_F(EncryptFile, APartOfABlockCannotBeRead) {
  make_key("key", 1);
  std::ofstream(path) << std::string(2 * kBlock + 100, 'x');
  auto opened = open_device(with_key("key", path), {.store = true, .whole = true, .read_only = true});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->capacity_bytes(), 2 * kBlock);
  EXPECT_EQ((*opened)->end_bytes(), 2 * kBlock);
  (*opened)->close();
}

}  // namespace
}  // namespace storage
