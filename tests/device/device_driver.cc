// Does I/O on a device, as its standard input says, and answers each line by one line.
//
//   device_driver DEVICE [overwrite]     "open NAME", or "error NUMBER MESSAGE" and the end
//   write SEED / read SEED             a batch of 32 blocks;              "NUMBER:COUNT ...", what it ended with
//   discard                            the same blocks
//   begin SEED / finish                a write of them in two: submitted, and waited for
//   fixed SEED                         writes them, and reads them, by registered memory: both answers, and "used", "not used" or "refused"
//   large SEED                         one write of 64 segments, and then one read; "NUMBER:BYTES:RIGHT" of what came first to fail
//   stream                             writes, 32 at a time, until one fails: "begun" first, then as above
//   queue INDEX                        the queue for what follows; the first one is 0. "uses INDEX", or "error NUMBER MESSAGE"
//   quiet                              looks after a write as quiet() says; "begun" when that is to sleep, then as above, or what is wrong
//   linger                             a child that holds copies of all descriptors until it is killed: its id
//   journal                            writes block after block, and flushes after 8: "flushed BLOCKS" each time, until something fails: "NUMBER"
//   fork                               a queue in a child: "error NUMBER MESSAGE"
//   queues                             as many more as can be had, closed again: "COUNT then NUMBER"
//   end                                as the end of its input
//   marks                              "bus error kept|taken, N low descriptors"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/opening/open.h"
#include "storage/testing/test_io.h"

namespace {

using storage::kBlock;
using storage::Operation;
using storage::TestIo;

constexpr size_t kBatch = 32;

storage::Device* device = nullptr;
std::vector<storage::Queue*> all_queues;
storage::Queue* queue = nullptr;  // of them, in use

std::string summary(const std::map<int, int>& counts) {
  std::string text;
  for (auto [error, count] : counts)
    text += (text.empty() ? "" : " ") + std::to_string(error) + ":" + std::to_string(count);
  return text;
}

std::map<storage::Queue*, std::vector<std::unique_ptr<TestIo>>> begun;

void begin(Operation operation, unsigned seed) {
  auto& ios = begun[queue];
  std::vector<storage::Io*> all;
  ios.clear();
  for (size_t i = 0; i < kBatch; ++i) {
    ios.push_back(std::make_unique<TestIo>(operation, i * kBlock, std::vector{kBlock}));
    if (operation == Operation::kWrite) ios.back()->fill(seed);
    if (operation == Operation::kDiscard) ios.back()->io.segment_count = 0;
    all.push_back(&ios.back()->io);
  }
  queue->submit(all);
}

// -1 stands for bytes that were not as written.
std::string finish(Operation operation, unsigned seed) {
  while (queue->in_flight_count() > 0) queue->wait();
  std::map<int, int> counts;
  for (auto& io : begun[queue]) {
    const bool wrong =
        operation == Operation::kRead && io->io.error == 0 && io->first_difference(seed) != kBlock;
    ++counts[wrong || io->done_count != 1 ? -1 : io->io.error];
  }
  return summary(counts);
}

std::string batch(Operation operation, unsigned seed) {
  begin(operation, seed);
  return finish(operation, seed);
}

// The pages are registered, and then replaced: what goes by them goes to the old ones.
std::string fixed(unsigned seed) {
  constexpr size_t kBytes = kBatch * kBlock;
  const auto map = [](void* address, int more) {
    return static_cast<unsigned char*>(
        mmap(address, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0));
  };
  unsigned char* memory = map(nullptr, 0);
  const bool agreed = queue->fix_memory(memory, kBytes);
  for (size_t i = 0; i < kBytes; ++i) memory[i] = TestIo::pattern(i, seed);
  std::string answers;
  for (Operation operation : {Operation::kWrite, Operation::kRead}) {
    if (operation == Operation::kRead) map(memory, MAP_FIXED);
    std::vector<std::unique_ptr<TestIo>> ios;
    std::vector<storage::Io*> all;
    for (size_t i = 0; i < kBatch; ++i) {
      ios.push_back(std::make_unique<TestIo>(operation, i * kBlock, std::vector{kBlock}));
      ios.back()->segments[0].iov_base = memory + i * kBlock;
      all.push_back(&ios.back()->io);
    }
    queue->run(all);
    std::map<int, int> counts;
    for (auto& io : ios) ++counts[io->io.error];
    answers += summary(counts) + " ";
  }
  const bool used = memory[0] == 0 && memory[kBytes - 1] == 0;
  queue->fix_memory(memory, 0);
  munmap(memory, kBytes);
  return answers + (!agreed ? "refused" : used ? "used" : "not used");
}

std::string large(unsigned seed) {
  constexpr size_t kSegmentBytes = 160 << 10;
  const std::vector<size_t> lengths(storage::kMaxSegments, kSegmentBytes);
  TestIo written(Operation::kWrite, kBlock, lengths), read(Operation::kRead, kBlock, lengths);
  written.fill(seed);
  queue->run(written.io);
  if (written.io.error == 0) queue->run(read.io);
  const storage::Io& last = written.io.error == 0 ? read.io : written.io;
  const size_t right_bytes = written.io.error == 0 ? read.first_difference(seed) : 0;
  return std::to_string(last.error) + ":" + std::to_string(last.transferred_bytes) + ":" +
         std::to_string(right_bytes);
}

std::string stream() {
  std::vector<std::unique_ptr<TestIo>> ios;
  for (size_t i = 0; i < kBatch; ++i) {
    ios.push_back(std::make_unique<TestIo>(Operation::kWrite, i * kBlock, std::vector{kBlock}));
    ios.back()->fill(1);
    storage::Io* one[] = {&ios.back()->io};
    queue->submit(one);
  }
  bool failed = false;
  while (!failed) {
    queue->wait();
    for (auto& io : ios) failed = failed || (!io->io.in_flight && io->io.error != 0);
    for (auto& io : ios) {
      storage::Io* one[] = {&io->io};
      if (!failed && !io->io.in_flight) queue->submit(one);
    }
  }
  while (queue->in_flight_count() > 0) queue->wait();
  std::map<int, int> counts;
  for (auto& io : ios) ++counts[io->io.error];
  return summary(counts);
}

std::string journal() {
  for (uint64_t written = 0;;) {
    std::vector<std::unique_ptr<TestIo>> ios;
    std::vector<storage::Io*> all;
    for (int i = 0; i < 8; ++i) {
      ios.push_back(std::make_unique<TestIo>(Operation::kWrite, written++ * kBlock, std::vector{kBlock}));
      ios.back()->fill(1);
      all.push_back(&ios.back()->io);
    }
    queue->run(all);
    storage::Io flush;
    flush.operation = Operation::kFlush;
    queue->run(flush);
    all.push_back(&flush);
    for (const storage::Io* io : all)
      if (io->error != 0) return std::to_string(io->error);
    printf("flushed %llu\n", static_cast<unsigned long long>(written));
    fflush(stdout);
  }
}

std::string quiet() {
  begin(Operation::kWrite, 1);
  const auto is_done = [] { return queue->quiet().until_ns == 0; };
  if (is_done()) return "not quiet";
  puts("begun");
  fflush(stdout);
  while (queue->in_flight_count() > 0) {
    while (!is_done()) usleep(100);
    if (queue->poll() == 0) return "nothing was done";
  }
  return finish(Operation::kWrite, 1);
}

std::string use_queue(size_t index) {
  while (all_queues.size() <= index) {
    auto opened = device->open_queue(kBatch);
    if (!opened) return "error " + std::to_string(opened.error().number) + " " + opened.error().message;
    all_queues.push_back(*opened);
  }
  queue = all_queues[index];
  return "uses " + std::to_string(index);
}

std::string in_child() {
  fflush(stdout);
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    auto opened = device->open_queue(4);
    dprintf(ends[1], "error %d %s", opened ? 0 : opened.error().number, opened ? "" : opened.error().message);
    device->close_queue(queue);
    _exit(0);
  }
  close(ends[1]);
  char text[400] = {};
  size_t bytes = 0;
  for (ssize_t more; (more = read(ends[0], text + bytes, sizeof text - 1 - bytes)) > 0;)
    bytes += static_cast<size_t>(more);
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0 ? text : "the child ended with " + std::to_string(status);
}

std::string lingering_child() {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_RDWR);
    for (int standard : {0, 1, 2}) dup2(null, standard);
    while (true) pause();
  }
  return std::to_string(child);
}

void on_bus_error(int) {}

std::string queues() {
  std::vector<storage::Queue*> all;
  int error = 0;
  while (error == 0 && all.size() < 1000) {
    auto opened = device->open_queue(1);
    if (opened)
      all.push_back(*opened);
    else
      error = opened.error().number;
  }
  for (storage::Queue* one : all) device->close_queue(one);
  return std::to_string(all.size()) + " then " + std::to_string(error);
}

// How many the program would notice.
int low_descriptors() {
  int count = 0;
  for (int descriptor = 0; descriptor < 200; ++descriptor) count += fcntl(descriptor, F_GETFD) >= 0;
  return count;
}
int first_descriptors = 0;

std::string marks() {
  struct sigaction action;
  sigaction(SIGBUS, nullptr, &action);
  return std::string("bus error ") + (action.sa_handler == on_bus_error ? "kept" : "taken") + ", " +
         std::to_string(low_descriptors() - first_descriptors) + " low descriptors";
}

std::string answer(const std::string& line) {
  const std::string word = line.substr(0, line.find(' '));
  const int number = word.size() < line.size() ? std::stoi(line.substr(word.size())) : 0;
  if (word == "write") return batch(Operation::kWrite, static_cast<unsigned>(number));
  if (word == "read") return batch(Operation::kRead, static_cast<unsigned>(number));
  if (word == "discard") return batch(Operation::kDiscard, 0);
  if (word == "fixed") return fixed(static_cast<unsigned>(number));
  if (word == "large") return large(static_cast<unsigned>(number));
  if (word == "finish") return finish(Operation::kWrite, 0);
  if (word == "queue") return use_queue(static_cast<size_t>(number));
  if (word == "quiet") return quiet();
  if (word == "linger") return lingering_child();
  if (word == "journal") return journal();
  if (word == "fork") return in_child();
  if (word == "queues") return queues();
  if (word == "marks") return marks();
  if (word == "begin") {
    begin(Operation::kWrite, static_cast<unsigned>(number));
    return "begun";
  }
  if (word != "stream") return "what is " + word + "?";
  puts("begun");
  fflush(stdout);
  return stream();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  signal(SIGBUS, on_bus_error);
  first_descriptors = low_descriptors();
  auto opened = storage::open_device(arguments[1], {.overwrite = count > 2, .spill = true});
  if (!opened) {
    printf("error %d %s\n", opened.error().number, opened.error().message);
    return 1;
  }
  device = *opened;
  use_queue(0);
  printf("open %s\n", device->name());
  fflush(stdout);
  char line[100];
  while (fgets(line, sizeof line, stdin) != nullptr) {
    line[strcspn(line, "\n")] = 0;
    if (strcmp(line, "end") == 0) break;
    puts(answer(line).c_str());
    fflush(stdout);
  }
  for (storage::Queue* one : all_queues) device->close_queue(one);
  device->close();
}
