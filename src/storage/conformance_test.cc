// What every backend promises (device.h), tried on each of them. SPILLWAY_TEST_DEVICE adds one that only its caller can
// make: NAME=DEVICE, where the device is fresh for every test (tests/spdk).
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/statistics.h"
#include "storage/opening/open.h"
#include "storage/testing/test_io.h"
#include "sys/events.h"
#include "sys/kernel.h"
#include "sys/nap.h"

namespace storage {
namespace {

struct Backend {
  const char* name;
  const char* device_string;
  bool has_end;            // reads past the last byte written are short; else they are zeros
  bool runs_alone = true;  // single Ios by run(), which may take another way than submit() and wait()
  bool in_pieces = false;  // a medium may see several operations for one Io
  bool by_one_thread = false;
};

const Backend kBackends[] = {
    {"memory", "memory:64M", false},
    {"file", "file:/var/tmp", true},
    {"file_without_helpers", "file:/var/tmp?threads=0", true},
    {"file_by_submit", "file:/var/tmp", true, false},
    {"uring", "uring:/var/tmp", true},
    {"uring_by_submit", "uring:/var/tmp", true, false},
    {"uring_of_one_thread", "uring:/var/tmp", true, false, false, true},
    {"uring_sqpoll", "uring:/var/tmp?sqpoll=1", true, false},
    {"aio", "aio:/var/tmp", true},
    {"aio_by_submit", "aio:/var/tmp", true, false},
    {"pmem_without_dax", "pmem:/var/tmp?size=64M,dax=0", false},
    {"fault_without_faults", "fault:seed=1:[memory:64M]", false},
    // Delays: completions in other orders than submissions, over both kinds of queues.
    {"delayed_memory", "fault:seed=2,read_delay_polls=1/2x5,any_delay_polls=1/3x2:[memory:64M]", false},
    // Transfers that stop early, and are resumed: at random, so that pieces stop early again.
    {"split_memory", "fault:seed=4,read_split=2/3,write_split=1/2:[memory:64M]", false, true, true},
    {"split_uring", "fault:seed=5,read_split=1/2,write_split=2/3,any_delay_polls=1/3x2:[uring:/var/tmp]",
     true, true, true},
    {"split_aio", "fault:seed=6,read_split=1/2,write_split=2/3,any_delay_polls=1/3x2:[aio:/var/tmp]", true,
     true, true},
    {"stripe_of_2_memory", "stripe:[memory:64M,memory:64M]?unit=4K", false, true, true},
    {"stripe_of_4_memory", "stripe:[memory:17M,memory:17M,memory:17M,memory:17M]", false, true, true},
    {"stripe_of_8_memory",
     "stripe:[memory:8M,memory:8M,memory:8M,memory:8M,memory:8M,memory:8M,memory:8M,memory:9M]?unit=8K",
     false, true, true},
    {"stripe_of_2_files", "stripe:[/var/tmp,/var/tmp]", true, true, true},
    {"stripe_of_4_files",
     "stripe:[uring:/var/tmp,aio:/var/tmp,file:/var/tmp,file:/var/tmp?qd=2,threads=0]?unit=4K", true, true,
     true},
    {"stripe_of_8_files",
     "stripe:[/var/tmp,/var/tmp,/var/tmp,/var/tmp,/var/tmp,/var/tmp,/var/tmp,/var/tmp]?unit=8K", true, false,
     true},
    {"delayed_stripe",
     "fault:seed=7,any_delay_polls=1/2x3:[stripe:[fault:any_delay_polls=1/"
     "3x4:[memory:64M],memory:64M]?unit=4K]",
     false, true, true},
    {"latency", "latency:us=200,channels=4,mbps=1000,dist=exp,seed=1:[memory:64M]", false},
    {"sleeping_latency", "latency:us=60,channels=2,dist=uniform,sleep=1:[memory:64M]", false},
    {"latency_of_a_ring", "latency:us=50,channels=2,dist=uniform:[uring:/var/tmp]", true, false},
    {"faulty_latency",
     "fault:seed=8,any_delay_polls=1/3x2,read_split=1/3:[latency:us=30:[stripe:[memory:64M,memory:64M]]]",
     false, true, true},
    {"traced_memory", "trace:file=TRACE:[memory:64M]", false},
    {"traced_ring", "fault:seed=9,any_delay_polls=1/3x2:[trace:file=TRACE:[uring:/var/tmp]]", true},
    {"encrypted_memory", "encrypt:[memory:64M]", false},
    {"encrypted_ring", "encrypt:[uring:/var/tmp]", true},
    {"encrypted_split_memory",
     "encrypt:[fault:seed=10,read_split=1/2,write_split=2/3,any_delay_polls=1/3x2:[memory:64M]]", false, true,
     true},
    {"encrypted_stripe", "encrypt:[stripe:[/var/tmp,/var/tmp]?unit=4K]", true, true, true},
    {"delayed_uring", "fault:seed=3,any_delay_polls=1/2x3,read_delay_us=1/9x300:[uring:/var/tmp]", true},
};

std::vector<Backend> backends() {
  std::vector<Backend> all(std::begin(kBackends), std::end(kBackends));
  const char* more = getenv("SPILLWAY_TEST_DEVICE");
  const char* device = more != nullptr ? strchr(more, '=') : nullptr;
  if (device == nullptr) return all;
  static const std::string name(more, device);
  const bool is_decorated = strchr(device, '[') != nullptr;
  all.push_back({name.c_str(), device + 1, false, true, is_decorated});
  return all;
}

std::vector<Backend> backends_of_any_thread() {
  std::vector<Backend> all = backends();
  std::erase_if(all, [](const Backend& backend) { return backend.by_one_thread; });
  return all;
}

using TestIos = std::vector<std::unique_ptr<TestIo>>;

// Submits all, however small the queue is, and waits for all.
void drive(Queue& queue, const TestIos& ios) {
  std::vector<Io*> batch;
  for (auto& io : ios) batch.push_back(&io->io);
  std::span<Io* const> rest(batch);
  while (!rest.empty()) {
    size_t accepted = queue.submit(rest);
    ASSERT_LE(accepted, rest.size());
    ASSERT_LE(queue.in_flight_count(), queue.depth());
    rest = rest.subspan(accepted);
    if (!rest.empty()) {
      ASSERT_EQ(queue.in_flight_count(), queue.depth()) << "took fewer than it could";
      ASSERT_GT(queue.wait(), 0u);
    }
  }
  while (queue.in_flight_count() > 0) ASSERT_GT(queue.wait(), 0u);
}

class Conformance : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    std::string text = GetParam().device_string;
    if (size_t at = text.find("TRACE"); at != std::string::npos) text.replace(at, 5, trace);
    testing::internal::CaptureStderr();
    auto opened = open_device(text, {.overwrite = false, .spill = true});
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    device = *opened;
    queue = device->open_queue(16, {.sleeps = true, .by_one_thread = GetParam().by_one_thread}).value();
    // A way that cannot be had here is another one's.
    if (said.find("poll: ") != std::string::npos) GTEST_SKIP() << said;
  }
  void TearDown() override {
    device->close_queue(queue);
    device->close();
    unlink(trace.c_str());
  }
  const std::string trace = testing::TempDir() + "spillway-trace-" + std::to_string(getpid());

  void run(Io& io) {
    if (GetParam().runs_alone) return queue->run(io);
    Io* batch[] = {&io};
    ASSERT_EQ(queue->submit(batch), 1u);
    while (io.in_flight) ASSERT_GT(queue->wait(), 0u);
  }
  void write(uint64_t offset, size_t length, unsigned seed) {
    TestIo io(Operation::kWrite, offset, {length});
    io.fill(seed);
    run(io.io);
    ASSERT_TRUE(io.io.whole()) << io.io.error;
  }

  Device* device = nullptr;
  Queue* queue = nullptr;
};

TEST_P(Conformance, SaysWhatItIs) {
  EXPECT_NE(device->name()[0], 0);
  EXPECT_LE(device->block_bytes(), 4096u);
  EXPECT_EQ(device->block_bytes() & (device->block_bytes() - 1), 0u);
  EXPECT_GE(device->capacity_bytes(), uint64_t{64} << 20);
  EXPECT_EQ(device->capacity_bytes() % device->block_bytes(), 0u);
  EXPECT_EQ(queue->depth(), 16u);
  EXPECT_EQ(&queue->device(), device);
}

TEST_P(Conformance, ReadsBackWhatWasWritten) {
  write(0, 4 * kBlock, 1);
  TestIo read(Operation::kRead, 0, {4 * kBlock});
  run(read.io);
  EXPECT_TRUE(read.io.whole());
  EXPECT_EQ(read.done_count, 1);
  EXPECT_EQ(read.first_difference(1), read.io.length_bytes);
}

TEST_P(Conformance, SegmentsAreOneStretchOfTheMedium) {
  TestIo written(Operation::kWrite, 3 * kBlock, {kBlock, 3 * kBlock, 2 * kBlock});
  written.fill(2);
  run(written.io);
  ASSERT_TRUE(written.io.whole());
  TestIo read(Operation::kRead, 4 * kBlock, {2 * kBlock, kBlock, kBlock, kBlock});
  run(read.io);
  EXPECT_TRUE(read.io.whole());
  EXPECT_EQ(read.first_difference(2), read.io.length_bytes);
}

TEST_P(Conformance, TakesTheMostSegments) {
  std::vector<size_t> lengths(kMaxSegments, kBlock);
  TestIo written(Operation::kWrite, 0, lengths);
  written.fill(3);
  run(written.io);
  ASSERT_TRUE(written.io.whole());
  TestIo read(Operation::kRead, 0, lengths);
  run(read.io);
  EXPECT_EQ(read.first_difference(3), read.io.length_bytes);
}

TEST_P(Conformance, BatchesLargerThanTheQueue) {
  TestIos writes, reads;
  for (size_t i = 0; i < 100; ++i) {
    writes.push_back(
        std::make_unique<TestIo>(Operation::kWrite, i * 2 * kBlock, std::vector{kBlock, kBlock}));
    writes.back()->fill(4);
    reads.push_back(
        std::make_unique<TestIo>(Operation::kRead, (99 - i) * 2 * kBlock, std::vector{2 * kBlock}));
  }
  drive(*queue, writes);
  drive(*queue, reads);
  for (auto& io : writes) EXPECT_EQ(io->done_count, 1);
  for (auto& io : reads) {
    EXPECT_EQ(io->done_count, 1);
    EXPECT_TRUE(io->io.whole());
    EXPECT_EQ(io->first_difference(4), io->io.length_bytes);
  }
  EXPECT_EQ(queue->wait(), 0u);
}

TEST_P(Conformance, RunTakesBatches) {
  TestIos writes;
  std::vector<Io*> batch;
  for (size_t i = 0; i < 40; ++i) {
    writes.push_back(std::make_unique<TestIo>(Operation::kWrite, i * kBlock, std::vector{kBlock}));
    writes.back()->fill(5);
    batch.push_back(&writes.back()->io);
  }
  queue->run(batch);
  for (auto& io : writes) {
    EXPECT_EQ(io->done_count, 1);
    EXPECT_TRUE(io->io.whole());
  }
  EXPECT_EQ(queue->in_flight_count(), 0u);
}

TEST_P(Conformance, DoneNeverRunsInsideSubmit) {
  TestIo first(Operation::kWrite, 0, {kBlock}), second(Operation::kWrite, kBlock, {kBlock});
  Io* batch[] = {&first.io, &second.io};
  ASSERT_EQ(queue->submit(batch), 2u);
  EXPECT_EQ(first.done_count + second.done_count, 0);
  EXPECT_EQ(queue->in_flight_count(), 2u);
  EXPECT_TRUE(first.io.in_flight);
  size_t completed = 0;
  while (completed < 2) completed += queue->poll();
  EXPECT_EQ(completed, 2u);
  EXPECT_EQ(first.done_count, 1);
  EXPECT_EQ(second.done_count, 1);
  EXPECT_FALSE(first.io.in_flight);
}

TEST_P(Conformance, SubmittedIosProgressWithoutWaiting) {
  write(0, 2 * kBlock, 6);
  TestIo read(Operation::kRead, 0, {kBlock}), second(Operation::kRead, kBlock, {kBlock});
  Io* batch[] = {&read.io, &second.io};
  ASSERT_EQ(queue->submit(batch), 2u);
  while (read.done_count == 0 || second.done_count == 0) queue->poll();
  EXPECT_EQ(read.first_difference(6), kBlock);
  EXPECT_EQ(second.first_difference(6), kBlock);
}

TEST_P(Conformance, NothingInFlightNothingToWaitFor) {
  EXPECT_EQ(queue->wait(), 0u);
  EXPECT_EQ(queue->poll(), 0u);
  EXPECT_EQ(queue->submit({}), 0u);
}

TEST_P(Conformance, FullIsANormalAnswer) {
  TestIos writes;
  std::vector<Io*> batch;
  for (size_t i = 0; i < queue->depth() + 1; ++i) {
    writes.push_back(std::make_unique<TestIo>(Operation::kWrite, i * kBlock, std::vector{kBlock}));
    batch.push_back(&writes.back()->io);
  }
  EXPECT_EQ(queue->submit(batch), queue->depth());
  EXPECT_EQ(queue->submit(std::span(batch).last(1)), 0u);
  while (queue->wait() > 0) {
  }
  EXPECT_EQ(writes.back()->done_count, 0);
  EXPECT_EQ(queue->submit(std::span(batch).last(1)), 1u);
  EXPECT_EQ(queue->wait(), 1u);
}

// A queue that says that it is quiet is not looked at again before it has said so.
TEST_P(Conformance, WhoSleepsWhileItIsQuietMissesNothing) {
  write(0, 24 * kBlock, 1);
  sys::EventSet set;
  ASSERT_TRUE(set.open());
  const int descriptor = queue->quiet().descriptor;
  if (descriptor >= 0) ASSERT_TRUE(set.add(descriptor));
  EXPECT_EQ(queue->quiet().until_ns, base::Quiet::kForever) << "nothing is in flight";
  // Asks in vain whose transfers are a ring's, where they have ended but are not yet due.
  const std::string_view text = GetParam().device_string;
  const bool never_asks_in_vain = !GetParam().in_pieces && text.find("delay_") == std::string_view::npos &&
                                  text.find(":[uring") == std::string_view::npos;
  // Some can tell nobody.
  bool is_ever_quiet = descriptor >= 0;
  for (int turn = 0; turn < 30; ++turn) {
    TestIos ios;
    std::vector<Io*> batch;
    for (uint64_t i = 0; i < 1 + turn % 8u; ++i) {
      const Operation operation = turn % 2 == 0 ? Operation::kWrite : Operation::kRead;
      ios.push_back(std::make_unique<TestIo>(operation, 3 * i * kBlock, std::vector{kBlock, kBlock}));
      ios.back()->fill(1);
      batch.push_back(&ios.back()->io);
    }
    ASSERT_EQ(queue->submit(batch), batch.size());
    while (queue->in_flight_count() > 0) {
      queue->poll();
      const base::Quiet quiet = queue->quiet();
      ASSERT_EQ(quiet.descriptor, descriptor);
      // Else who would sleep does nothing but ask.
      is_ever_quiet = is_ever_quiet || (quiet.until_ns != 0 && queue->in_flight_count() > 0);
      if (quiet.until_ns == 0 && never_asks_in_vain && is_ever_quiet) ASSERT_GT(queue->poll(), 0u);
      // A minute is a lost wake-up.
      const uint64_t limit_ns = sys::monotonic_ns() + 60'000'000'000;
      if (queue->in_flight_count() > 0) set.wait_until(std::min(quiet.until_ns, limit_ns));
      ASSERT_LT(sys::monotonic_ns(), limit_ns);
    }
    for (auto& io : ios) EXPECT_TRUE(io->io.whole());
  }
  set.close();
}

// Whoever has not polled since is told again.
TEST_P(Conformance, IsNotQuietWhileACompletionWaits) {
  TestIo first(Operation::kWrite, 0, {kBlock}), second(Operation::kWrite, 4 * kBlock, {kBlock});
  Io* batch[] = {&first.io, &second.io};
  ASSERT_EQ(queue->submit(batch), 2u);
  const auto may_sleep = [this] {
    const base::Quiet quiet = queue->quiet();
    pollfd look = {quiet.descriptor, POLLIN, 0};
    return sys::monotonic_ns() < quiet.until_ns && ::poll(&look, 1, 0) == 0;
  };
  while (may_sleep()) sys::nap(100'000);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(may_sleep());
  while (queue->in_flight_count() > 0) queue->wait();
  // Who told may be about to tell again.
  for (int i = 0; i < 600 && !may_sleep(); ++i) sys::nap(100'000'000);
  EXPECT_TRUE(may_sleep());
}

struct Chain {
  Queue* queue;
  int left;
};

TEST_P(Conformance, DoneMaySubmitAgain) {
  write(0, kBlock, 7);
  Chain chain = {queue, 200};
  TestIo read(Operation::kRead, 0, {kBlock});
  read.io.owner = &chain;
  read.io.done = [](Io& io) {
    auto* c = static_cast<Chain*>(io.owner);
    if (--c->left == 0) return;
    Io* again[] = {&io};
    ASSERT_EQ(c->queue->submit(again), 1u);
  };
  Io* batch[] = {&read.io};
  ASSERT_EQ(queue->submit(batch), 1u);
  while (queue->in_flight_count() > 0) ASSERT_EQ(queue->wait(), 1u) << "one call delivers a bounded number";
  EXPECT_EQ(chain.left, 0);
  EXPECT_EQ(read.first_difference(7), kBlock);
}

TEST_P(Conformance, DoneMayRunAnotherIo) {
  write(0, 2 * kBlock, 8);
  struct Nest {
    Queue* queue;
    TestIo inner{Operation::kRead, kBlock, {kBlock}};
  } nest{queue};
  TestIo outer(Operation::kRead, 0, {kBlock});
  outer.io.owner = &nest;
  outer.io.done = [](Io& io) {
    auto* n = static_cast<Nest*>(io.owner);
    n->queue->run(n->inner.io);
  };
  run(outer.io);
  EXPECT_EQ(nest.inner.done_count, 1);
  EXPECT_EQ(nest.inner.first_difference(8), kBlock);
}

TEST_P(Conformance, MixedOperationsOfOneBatch) {
  write(0, 8 * kBlock, 9);
  TestIos ios;
  for (size_t i = 0; i < 4; ++i) {
    ios.push_back(std::make_unique<TestIo>(Operation::kRead, i * kBlock, std::vector{kBlock}));
    ios.push_back(std::make_unique<TestIo>(Operation::kWrite, (16 + i) * kBlock, std::vector{kBlock}));
    ios.back()->fill(9);
  }
  ios.push_back(std::make_unique<TestIo>(Operation::kDiscard, 4 * kBlock, std::vector{4 * kBlock}));
  ios.push_back(std::make_unique<TestIo>(Operation::kFlush, 0, std::vector<size_t>{}));
  for (auto it = ios.end() - 2; it != ios.end(); ++it) (*it)->io.segment_count = 0;
  drive(*queue, ios);
  for (auto& io : ios) {
    EXPECT_EQ(io->done_count, 1);
    EXPECT_TRUE(io->io.whole()) << io->io.error;
    if (io->io.operation == Operation::kRead) EXPECT_EQ(io->first_difference(9), kBlock);
  }
}

TEST_P(Conformance, DiscardGivesZerosOrKeeps) {
  write(0, 6 * kBlock, 10);
  Io discard;
  discard.operation = Operation::kDiscard;
  discard.offset_bytes = kBlock;
  discard.length_bytes = 2 * kBlock;
  run(discard);
  EXPECT_TRUE(discard.whole());
  TestIo read(Operation::kRead, 0, {6 * kBlock});
  run(read.io);
  ASSERT_TRUE(read.io.whole());
  for (size_t i = 0; i < 6 * kBlock; ++i) {
    bool discarded = i >= kBlock && i < 3 * kBlock;
    unsigned char kept = TestIo::pattern(i, 10);
    if (discarded && device->discards())
      ASSERT_TRUE(read.bytes[i] == 0 || read.bytes[i] == kept) << i;
    else
      ASSERT_EQ(read.bytes[i], kept) << i;
  }
  write(kBlock, 2 * kBlock, 11);
  TestIo again(Operation::kRead, kBlock, {2 * kBlock});
  run(again.io);
  EXPECT_EQ(again.first_difference(11), 2 * kBlock);
}

TEST_P(Conformance, PastTheEndIsShortOrZeros) {
  write(0, 2 * kBlock, 12);
  TestIo across(Operation::kRead, kBlock, {kBlock, kBlock}), past(Operation::kRead, 64 * kBlock, {kBlock});
  run(across.io);
  run(past.io);
  EXPECT_EQ(across.io.error, 0);
  EXPECT_EQ(past.io.error, 0);
  EXPECT_GE(across.first_difference(12), kBlock);
  if (GetParam().has_end) {
    EXPECT_EQ(across.io.transferred_bytes, kBlock);
    EXPECT_FALSE(across.io.whole());
    EXPECT_EQ(past.io.transferred_bytes, 0u);
  } else {
    EXPECT_TRUE(across.io.whole());
    EXPECT_TRUE(past.io.whole());
    for (size_t i = 0; i < kBlock; ++i) ASSERT_EQ(past.bytes[i], 0);
  }
}

TEST_P(Conformance, FarApartPlaces) {
  uint64_t last = device->capacity_bytes() - kBlock;
  if (last > (uint64_t{1} << 39)) last = uint64_t{1} << 39;  // within what the file system can address
  write(last, kBlock, 13);
  write(0, kBlock, 13);
  TestIo read(Operation::kRead, last, {kBlock});
  run(read.io);
  EXPECT_TRUE(read.io.whole());
  EXPECT_EQ(read.first_difference(13), kBlock);
}

TEST_P(Conformance, CountsWhatItDoes) {
  auto& statistics = base::statistics;
  uint64_t reads = statistics.storage_reads.get(), writes = statistics.storage_writes.get();
  uint64_t read_bytes = statistics.storage_read_bytes.get(),
           write_bytes = statistics.storage_write_bytes.get();
  uint64_t discards = statistics.storage_discards.get();
  write(0, 2 * kBlock, 14);
  TestIo read(Operation::kRead, 0, {kBlock});
  run(read.io);
  Io discard;
  discard.operation = Operation::kDiscard;
  discard.length_bytes = kBlock;
  run(discard);
  if (GetParam().in_pieces) {
    EXPECT_GE(statistics.storage_reads.get() - reads, 1u);
    EXPECT_GE(statistics.storage_writes.get() - writes, 1u);
  } else {
    EXPECT_EQ(statistics.storage_reads.get() - reads, 1u);
    EXPECT_EQ(statistics.storage_writes.get() - writes, 1u);
  }
  EXPECT_EQ(statistics.storage_read_bytes.get() - read_bytes, kBlock);
  EXPECT_EQ(statistics.storage_write_bytes.get() - write_bytes, 2 * kBlock);
  EXPECT_GE(statistics.storage_discards.get() - discards, 1u);
  if (!GetParam().in_pieces) EXPECT_EQ(statistics.storage_discards.get() - discards, 1u);
}

// Writes, reads back and overwrites places of its own, in batches; returns what went wrong.
std::string use_places(Device& device, unsigned thread) {
  auto opened = device.open_queue(8);
  if (!opened) return opened.error().message;
  Queue* queue = *opened;
  std::string wrong;
  for (unsigned round = 0; round < 8 && wrong.empty(); ++round) {
    for (Operation operation : {Operation::kWrite, Operation::kRead}) {
      TestIos ios;
      for (uint64_t i = 0; i < 24; ++i) {
        uint64_t offset = (i * 4 + thread) * kBlock;  // the threads' places alternate
        ios.push_back(std::make_unique<TestIo>(operation, offset, std::vector{kBlock}));
        if (operation == Operation::kWrite) ios.back()->fill(round * 4 + thread);
      }
      drive(*queue, ios);
      for (auto& io : ios) {
        if (!io->io.whole() || io->done_count != 1) wrong = "not whole, or not once";
        if (io->first_difference(round * 4 + thread) != kBlock) wrong = "other bytes";
      }
    }
  }
  device.close_queue(queue);
  return wrong;
}

TEST_P(Conformance, QueuesOfFourThreads) {
  std::string wrong[4];
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back([&, t] { wrong[t] = use_places(*device, t); });
  for (auto& thread : threads) thread.join();
  for (auto& message : wrong) EXPECT_EQ(message, "");
}

using ConformanceOfAnyThread = Conformance;
TEST_P(ConformanceOfAnyThread, AQueueMayChangeItsThread) {
  write(0, kBlock, 15);
  std::thread([&] {
    TestIo read(Operation::kRead, 0, {kBlock});
    run(read.io);
    EXPECT_EQ(read.first_difference(15), kBlock);
  }).join();
  write(0, kBlock, 16);
}

using ConformanceDeathTest = Conformance;

TEST_P(ConformanceDeathTest, ChecksItsCallers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TestIo io(Operation::kWrite, 0, {kBlock});
  io.io.offset_bytes = 100;
  EXPECT_DEATH(queue->run(io.io), "offset_bytes");
  io.io.offset_bytes = device->capacity_bytes();
  EXPECT_DEATH(queue->run(io.io), "capacity_bytes");
  io.io.offset_bytes = 0;
  io.io.length_bytes = 2 * kBlock;
  EXPECT_DEATH(queue->run(io.io), "sum_bytes");
  io.io.length_bytes = kBlock;
  io.segments[0].iov_base = io.bytes + 8;
  EXPECT_DEATH(queue->run(io.io), "iov_base");
  io.segments[0].iov_base = io.bytes;
  io.io.segment_count = 0;
  EXPECT_DEATH(queue->run(io.io), "segment_count");
  EXPECT_DEATH(device->close(), "open_queue_count_");
}

INSTANTIATE_TEST_SUITE_P(Backends, Conformance, testing::ValuesIn(backends()),
                         [](const auto& parameter) { return std::string(parameter.param.name); });
INSTANTIATE_TEST_SUITE_P(Backends, ConformanceOfAnyThread, testing::ValuesIn(backends_of_any_thread()),
                         [](const auto& parameter) { return std::string(parameter.param.name); });
INSTANTIATE_TEST_SUITE_P(Backends, ConformanceDeathTest, testing::Values(kBackends[0]),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

}  // namespace
}  // namespace storage
