#include "storage/decorators/stripe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "storage/decorators/stripe_map.h"
#include "storage/opening/open.h"
#include "storage/testing/test_io.h"
#include "sys/files.h"

namespace storage {
namespace {

TEST(StripeMap, EveryByteIsWhereItShouldBe) {
  for (size_t members : {2, 3, 5}) {
    const StripeMap map = {4, members};
    for (uint64_t offset = 0; offset < 60; ++offset) {
      const uint64_t unit = offset / 4;
      EXPECT_EQ(map.member_of(offset), unit % members);
      EXPECT_EQ(map.offset_of(unit % members, unit / members * 4 + offset % 4), offset);
    }
    for (uint64_t begin = 0; begin < 40; ++begin) {
      for (uint64_t length = 1; length < 60; ++length) {
        for (size_t member = 0; member < members; ++member) {
          std::vector<uint64_t> there;
          for (uint64_t at = begin; at < begin + length; ++at)
            if (map.member_of(at) == member) there.push_back(at / 4 / members * 4 + at % 4);
          const auto range = map.range_on(member, begin, length);
          ASSERT_EQ(range.end_bytes - range.begin_bytes, there.size());
          if (there.empty()) continue;
          ASSERT_EQ(range.begin_bytes, there.front());
          ASSERT_EQ(range.end_bytes, there.back() + 1);
        }
      }
    }
  }
}

class StripeTest : public testing::Test {
 protected:
  // Of devices of which `texts` says what they are; a stripe of several in memory unless told.
  void open(const std::vector<std::string>& texts, const std::string& unit = "4K", size_t depth = 8) {
    std::string text = "stripe:[";
    for (const std::string& member : texts) text += (text.back() == '[' ? "" : ",") + member;
    auto opened = open_device(text + "]?unit=" + unit, {.overwrite = false, .spill = true});
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    device = *opened;
    queue = device->open_queue(depth).value();
  }
  void close() {
    if (device == nullptr) return;
    device->close_queue(queue);
    device->close();
    device = nullptr;
  }
  void TearDown() override { close(); }

  std::unique_ptr<TestIo> run(Operation operation, uint64_t offset, std::vector<size_t> lengths,
                              unsigned seed = 0) {
    auto io = std::make_unique<TestIo>(operation, offset, std::move(lengths));
    if (operation == Operation::kWrite) io->fill(seed);
    queue->run(io->io);
    EXPECT_EQ(io->done_count, 1);
    return io;
  }
  static std::string refusal(const std::string& text) {
    auto opened = open_device(text, {});
    if (!opened) return opened.error().message;
    (*opened)->close();
    return "opened";
  }

  Device* device = nullptr;
  Queue* queue = nullptr;
};

TEST_F(StripeTest, DealsUnitsInTurn) {
  Device* members[3];
  for (Device*& member : members) member = open_device("memory:1M", {}).value();
  device = make_stripe_device(members, 8192).value();
  queue = device->open_queue(4).value();
  EXPECT_EQ(device->capacity_bytes(), uint64_t{3} << 20);
  EXPECT_EQ(device->layout(), (Layout{.member_count = 3, .unit_bytes = 8192}));
  EXPECT_EQ(members[0]->layout(), Layout());
  auto written = run(Operation::kWrite, 0, {20 * kBlock}, 1);
  ASSERT_TRUE(written->io.whole());
  for (uint64_t at = 0; at < 20 * kBlock; ++at) {
    const char* there = members[at / 8192 % 3]->whereabouts().memory + at / 8192 / 3 * 8192 + at % 8192;
    ASSERT_EQ(static_cast<unsigned char>(*there), TestIo::pattern(at, 1)) << at;
  }
  Io discard;
  discard.operation = Operation::kDiscard;
  discard.offset_bytes = 3 * kBlock;
  discard.length_bytes = 10 * kBlock;
  queue->run(discard);
  EXPECT_TRUE(discard.whole());
  for (uint64_t at = 0; at < 20 * kBlock; ++at) {
    const char* there = members[at / 8192 % 3]->whereabouts().memory + at / 8192 / 3 * 8192 + at % 8192;
    const bool discarded = at >= 3 * kBlock && at < 13 * kBlock;
    ASSERT_EQ(static_cast<unsigned char>(*there), discarded ? 0 : TestIo::pattern(at, 1)) << at;
  }
}

TEST_F(StripeTest, CapacityIsThatOfTheSmallest) {
  open({"memory:1028K", "memory:2M", "memory:1M"}, "64K");
  EXPECT_EQ(device->capacity_bytes(), uint64_t{3} << 20);
  close();
  EXPECT_NE(refusal("stripe:[memory:1M,memory:32K]").find("device 2 is smaller than a unit of 64K"),
            std::string::npos);
  const std::string name = "spillway-stripe-" + std::to_string(getpid()), path = "/var/tmp/" + name;
  EXPECT_NE(refusal("stripe:[memory:1M," + path + "]").find("one is memory"), std::string::npos);
  EXPECT_NE(refusal("stripe:[" + path + ",memory:1M]").find("one is memory"), std::string::npos);
  EXPECT_NE(refusal("stripe:[" + path + ",fault:[file:/var/tmp/./" + name + "]]")
                .find("devices 1 and 2 are the same"),
            std::string::npos);
  unlink(path.c_str());
  EXPECT_EQ(refusal("stripe:[memory:1M,foo:1M]").find("storage: 'foo:' is not known"), 0u);
}

// Requests of all shapes beside a model, over members that complete in other orders than they were asked in.
TEST_F(StripeTest, ReadsWhatWasWritten) {
  constexpr uint64_t kBlocks = 600;
  const std::string slow = "fault:any_delay_polls=1/3x3,read_split=1/4,write_split=1/4:[memory:2M]";
  for (const auto& [count, unit] : {std::pair{2, "4K"}, {3, "16K"}, {8, "8K"}}) {
    open(std::vector<std::string>(static_cast<size_t>(count), slow), unit);
    std::minstd_rand random(static_cast<unsigned>(count));
    std::vector<unsigned> model(kBlocks, 0);  // the seed that each block was written with
    run(Operation::kWrite, 0, std::vector<size_t>(2, kBlocks / 2 * kBlock), 0);
    for (unsigned turn = 1; turn < 200; ++turn) {
      std::vector<size_t> lengths(1 + random() % (turn % 10 == 0 ? kMaxSegments : 5));
      size_t blocks = 0;
      for (size_t& length : lengths) {
        length = (1 + random() % 8) * kBlock;
        blocks += length / kBlock;
      }
      const uint64_t first = random() % (kBlocks - std::min<uint64_t>(blocks, kBlocks - 1));
      if (first + blocks > kBlocks) continue;
      const bool writes = random() % 2 == 0;
      auto io = run(writes ? Operation::kWrite : Operation::kRead, first * kBlock, lengths, turn % 200);
      ASSERT_TRUE(io->io.whole()) << turn;
      for (uint64_t i = 0; i < blocks; ++i) {
        if (writes) model[first + i] = turn % 200;
        const uint64_t at = (first + i) * kBlock;
        ASSERT_EQ(io->bytes[i * kBlock + 77], TestIo::pattern(at + 77, model[first + i])) << turn;
      }
    }
    close();
  }
}

// Every other byte of memory: each of the 64 segments holds pieces for both members, and none can be merged.
TEST_F(StripeTest, PartsOfMoreSegmentsThanAnIoMayHave) {
  open({"memory:16M", "memory:16M"});
  auto written = run(Operation::kWrite, 0, std::vector<size_t>(kMaxSegments, 8 * kBlock), 1);
  ASSERT_TRUE(written->io.whole());
  auto read = run(Operation::kRead, 0, std::vector<size_t>(kMaxSegments, 8 * kBlock));
  EXPECT_TRUE(read->io.whole());
  EXPECT_EQ(read->first_difference(1), read->io.length_bytes);
}

TEST_F(StripeTest, MoreRequestsThanTheMembersTake) {
  open({"uring:/var/tmp?qd=1", "aio:/var/tmp?qd=1", "file:/var/tmp?qd=1"}, "4K", 32);
  for (Operation operation : {Operation::kWrite, Operation::kRead}) {
    std::vector<std::unique_ptr<TestIo>> ios;
    std::vector<Io*> batch;
    for (uint64_t i = 0; i < 33; ++i) {
      ios.push_back(std::make_unique<TestIo>(operation, i * 5 * kBlock, std::vector{2 * kBlock, 3 * kBlock}));
      if (operation == Operation::kWrite) ios.back()->fill(1);
      batch.push_back(&ios.back()->io);
    }
    EXPECT_EQ(queue->submit(batch), 32u);
    EXPECT_EQ(queue->submit(std::span(batch).last(1)), 0u);
    while (queue->in_flight_count() > 0) ASSERT_GT(queue->wait(), 0u);
    queue->run(std::span(batch).last(1));
    for (auto& io : ios) {
      ASSERT_TRUE(io->io.whole()) << io->io.error;
      ASSERT_EQ(io->done_count, 1);
      ASSERT_EQ(io->first_difference(1), 5 * kBlock);
    }
  }
}

// The error of the request's first bytes that have one, whichever came first; what is before them is whole.
TEST_F(StripeTest, ErrorsInTheOrderOfItsBytes) {
  open({"memory:1M", "fault:read_eio=@1,read_delay_polls=@1x9:[memory:1M]",
        "fault:read_enospc=@1:[memory:1M]"});
  auto read = run(Operation::kRead, 0, {6 * kBlock});
  EXPECT_EQ(read->io.error, EIO);
  EXPECT_EQ(read->io.transferred_bytes, kBlock);
  close();
  open({"memory:1M", "fault:read_eio=@1,read_delay_polls=@1x9:[memory:1M]",
        "fault:read_enospc=@1:[memory:1M]"});
  read = run(Operation::kRead, 2 * kBlock, {6 * kBlock});
  EXPECT_EQ(read->io.error, ENOSPC) << "the third member's bytes come first";
  EXPECT_EQ(read->io.transferred_bytes, 0u);
}

TEST_F(StripeTest, ShortUpToTheFirstByteThatIsMissing) {
  // Of 9 blocks, 3 each: the second and the third member bring one and a half, the first all.
  open({"memory:1M", "fault:read_short=@1:[memory:1M]", "fault:read_short=@1:[memory:1M]"});
  auto read = run(Operation::kRead, 0, {9 * kBlock});
  EXPECT_EQ(read->io.error, 0);
  EXPECT_EQ(read->io.transferred_bytes, 4 * kBlock + kBlock / 2);
  close();
  // An error behind that is not lost.
  open({"memory:1M", "fault:read_short=@1:[memory:1M]", "fault:read_eio=@1:[memory:1M]"});
  read = run(Operation::kRead, 3 * kBlock, {3 * kBlock});
  EXPECT_EQ(read->io.error, EIO);
  EXPECT_EQ(read->io.transferred_bytes, kBlock + kBlock / 2);
}

TEST_F(StripeTest, AFlushGoesToAll) {
  for (int failing = -1; failing < 3; ++failing) {
    std::vector<std::string> members(3, "memory:1M");
    if (failing >= 0) members[static_cast<size_t>(failing)] = "fault:flush_eio=@1:[memory:1M]";
    open(members);
    for (int expected : {failing >= 0 ? EIO : 0, 0}) {
      Io flush;
      flush.operation = Operation::kFlush;
      queue->run(flush);
      EXPECT_EQ(flush.error, expected) << failing;
    }
    close();
  }
}

// One member goes in the middle of it: every request ends once, and those that touched it say so.
TEST_F(StripeTest, AMemberThatGoes) {
  open({"fault:any_delay_polls=1/2x4:[memory:1M]", "fault:any_eio=@6+,any_delay_polls=1/2x7:[memory:1M]"},
       "4K", 16);
  std::vector<std::unique_ptr<TestIo>> ios;
  std::vector<Io*> batch;
  for (uint64_t i = 0; i < 16; ++i) {
    ios.push_back(std::make_unique<TestIo>(Operation::kWrite, i * kBlock, std::vector{kBlock}));
    batch.push_back(&ios.back()->io);
  }
  ASSERT_EQ(queue->submit(batch), 16u);
  while (queue->in_flight_count() > 0) ASSERT_GT(queue->wait(), 0u);
  for (uint64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(ios[i]->done_count, 1);
    EXPECT_EQ(ios[i]->io.error, i % 2 == 1 && i / 2 >= 5 ? EIO : 0) << i;
  }
}

// The members' helper threads do what is asked for, and nothing but the descriptor tells of it.
TEST(StripeSleep, AMemberThatIsDoneWakesWhoSleeps) {
  Device* const device =
      open_device("stripe:[file:/var/tmp?threads=1,file:/var/tmp?threads=1]?unit=4K", {.spill = true})
          .value();
  Queue* const queue = device->open_queue(8, {.sleeps = true}).value();
  int slept_count = 0;
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<std::unique_ptr<TestIo>> ios;
    std::vector<Io*> batch;
    for (uint64_t i = 0; i < 8; ++i) {
      ios.push_back(std::make_unique<TestIo>(Operation::kWrite, i * kBlock, std::vector{kBlock}));
      batch.push_back(&ios.back()->io);
    }
    ASSERT_EQ(queue->submit(batch), batch.size());
    while (queue->in_flight_count() > 0) {
      queue->poll();
      const base::Quiet quiet = queue->quiet();
      if (queue->in_flight_count() == 0 || quiet.until_ns == 0) continue;
      ++slept_count;
      pollfd look = {quiet.descriptor, POLLIN, 0};
      ASSERT_EQ(::poll(&look, 1, 30'000), 1) << "nobody was told";
    }
  }
  EXPECT_GT(slept_count, 0);
  device->close_queue(queue);
  device->close();
}

// As where many workers have queues of many devices.
TEST(StripeSleep, WhereThereAreNoDescriptorsItIsPolled) {
  Device* const device =
      open_device("stripe:[file:/var/tmp?threads=1,file:/var/tmp?threads=1]?unit=4K", {.spill = true})
          .value();
  const int null = ::open("/dev/null", O_RDONLY);
  std::vector<int> taken;  // all that the runtime may have
  for (;;) {
    const int copy = ::dup(null);
    const auto own = sys::own_descriptor(copy);
    if (!own) {
      ::close(copy);
      break;
    }
    taken.push_back(*own);
  }
  auto queue = device->open_queue(8, {.sleeps = true});
  for (const int descriptor : taken) sys::close_own_descriptor(descriptor);
  ::close(null);
  ASSERT_TRUE(queue.has_value()) << queue.error().message;
  TestIo write(Operation::kWrite, 0, {kBlock, kBlock}), read(Operation::kRead, 0, {2 * kBlock});
  write.fill(3);
  for (TestIo* io : {&write, &read}) {
    Io* const one = &io->io;
    ASSERT_EQ((*queue)->submit({&one, 1}), 1u);
    const base::Quiet quiet = (*queue)->quiet();
    EXPECT_EQ(quiet.descriptor, -1);
    EXPECT_EQ(quiet.until_ns, 0u);
    while ((*queue)->in_flight_count() > 0) (*queue)->poll();
  }
  EXPECT_EQ(read.first_difference(3), 2 * kBlock);
  device->close_queue(*queue);
  device->close();
}

}  // namespace
}  // namespace storage
