// A process that is killed: puts, replaces and removes keys of a store, from several threads, and reports what it was promised.
//
//   kv_writer make FILE DEVICE               makes the file, and an empty store of 48 segments on the device in it
//   kv_writer DEVICE none|batch|sync SEED
//
// Standard input begins with a line for each key that was ever written: the key, and the numbers of the values that it may have now, 0 for
// none; then `counter LEAST MOST`, and an empty line. Each key is read, and its value must be one of these, byte for byte; otherwise the
// process ends with a line on standard error and status 3. Then it makes changes until standard input ends, closes the store and ends.
// Standard output: Report after Report. A change is reported before it begins, and again when the store has acknowledged it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../fail.h"
#include "kv/media/clock.h"
#include "kv/multi_get.h"
#include "kv/store.h"
#include "storage/opening/open.h"

namespace {

constexpr uint32_t kThreads = 4, kKeysOfThread = 60;
constexpr uint32_t kLargeOfThread = 2;  // keys that have large values at times

struct Report {
  // 's': the key was found with this value. 'r': all have been read. 'b': a change begins; 'a': it is made; number 0: a removal. 'n':
  // the counter has this number. 'c': victims collected and checkpoints taken so far.
  char what = 0;
  uint8_t expires = 0;
  uint16_t reserved = 0;
  uint32_t key = 0;
  uint32_t number = 0;
  uint32_t other = 0;
};
static_assert(sizeof(Report) == 16);

void report(const Report& report) {
  // One call each, so that a report is whole whenever the process is killed.
  if (write(STDOUT_FILENO, &report, sizeof report) != sizeof report) _exit(4);
}

std::string key_of(uint32_t key) { return "key" + std::to_string(key); }

// The key's value of that number.
std::string value_of(uint32_t key, uint32_t number) {
  std::mt19937_64 random(uint64_t{key} << 32 | number);
  const bool is_large = key % kKeysOfThread < kLargeOfThread && number % 4 == 0;
  const size_t bytes = is_large ? 270'000 + random() % 600'000 : random() % (number % 5 == 0 ? 40'000 : 3000);
  std::string value = key_of(key) + "#" + std::to_string(number) + "#";
  while (value.size() < bytes) {
    const uint64_t piece = random();
    value.append(reinterpret_cast<const char*>(&piece), sizeof piece);
  }
  return value;
}

class Writer {
 public:
  Writer(kv::Store& store, uint64_t seed) : store_(store), seed_(seed) {}

  void verify() {
    kv::Session session;
    if (!session.open(store_)) fail("no session");
    for (std::string line; std::getline(std::cin, line) && !line.empty();) {
      std::istringstream words(line);
      std::string key;
      words >> key;
      const std::vector<uint32_t> numbers{std::istream_iterator<uint32_t>(words), {}};
      if (key == "counter") {
        const uint32_t found = counter(session);
        if (found < numbers.at(0) || found > numbers.at(1))
          fail("the counter is %u: %s", found, line.c_str());
        continue;
      }
      const auto number_of_key = static_cast<uint32_t>(strtoul(key.c_str(), nullptr, 10));
      const std::string value = read(session, number_of_key);
      const auto is_it = [&](uint32_t number) {
        return number == 0 ? value.empty() : value == value_of(number_of_key, number);
      };
      const auto at = std::ranges::find_if(numbers, is_it);
      if (at == numbers.end())
        fail("%s is \"%.20s\" of %zu bytes, and not one of %s", key_of(number_of_key).c_str(), value.c_str(),
             value.size(), line.c_str());
      report({.what = 's', .key = number_of_key, .number = *at});
      first_number_ = std::max(first_number_, *std::ranges::max_element(numbers));
    }
    session.close();
    report({.what = 'r'});
  }

  void run() {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([this, i] { work(i); });
    for (char byte; read_input(byte);) {
    }
    ends_ = true;
    for (auto& thread : threads) thread.join();
  }

 private:
  static bool read_input(char& byte) { return ::read(STDIN_FILENO, &byte, 1) == 1; }

  // "": there is none.
  static std::string read(kv::Session& session, uint32_t key) {
    auto found = session.get(key_of(key));
    if (!found) fail("%s: %s", key_of(key).c_str(), found.error().message);
    std::string value(found->value_bytes(), '\0');
    if (!found->found()) return value;
    auto got = session.read_value(*found, 0, std::as_writable_bytes(std::span(value)));
    if (!got) fail("%s: %s", key_of(key).c_str(), got.error().message);
    return value;
  }

  static uint32_t counter(kv::Session& session, uint64_t* version = nullptr) {
    auto found = session.get("counter");
    if (!found) fail("counter: %s", found.error().message);
    if (version != nullptr) *version = found->found() ? found->version() : 0;
    uint32_t number = 0;
    if (found->found()) memcpy(&number, found->value().data(), sizeof number);
    return number;
  }

  static void count_up(kv::Session& session) {
    uint64_t version = 0;
    const uint32_t number = counter(session, &version) + 1;
    auto done =
        session.put("counter", std::as_bytes(std::span(&number, 1)),
                    {.when = version == 0 ? kv::When::kIfAbsent : kv::When::kIfVersion, .version = version});
    if (!done) fail("counter: %s", done.error().message);
    if (done->outcome == kv::Changed::Outcome::kDone) report({.what = 'n', .number = number});
  }

  // Begins to write a value in parts, and never commits it.
  static void abandon(kv::Session& session, uint32_t key) {
    kv::ValueWriter writer;
    if (auto opened = writer.open(session, key_of(key)); !opened) fail("%s", opened.error().message);
    const std::string part(400'000, 'a');
    if (auto done = writer.append(kv::bytes_of(part)); !done) fail("%s", done.error().message);
  }

  // Checks that this thread finds its keys as its last changes left them.
  void look(kv::Session& session, const std::map<uint32_t, uint32_t>& known) {
    std::vector<std::string> keys;
    for (const auto& [key, number] : known) keys.push_back(key_of(key));
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<base::Expected<kv::Found>> found(keys.size());
    kv::MultiGet::get(session, views, found);
    size_t i = 0;
    for (const auto& [key, number] : known) {
      auto& one = found[i++];
      if (!one) fail("%s: %s", key_of(key).c_str(), one.error().message);
      if (one->found() != (number != 0)) fail("%s is not there, or not gone", key_of(key).c_str());
      if (number == 0 || one->is_large()) continue;
      const std::string expected = value_of(key, number);
      const kv::Bytes value = one->value();
      if (value.size() != expected.size() || memcmp(value.data(), expected.data(), value.size()) != 0)
        fail("%s is not number %u", key_of(key).c_str(), number);
    }
  }

  void work(uint32_t thread) {
    kv::Session session;
    if (!session.open(store_)) fail("no session");
    std::mt19937_64 random(seed_ * kThreads + thread);
    std::map<uint32_t, uint32_t> known;  // except keys that may expire
    std::map<uint32_t, uint64_t> versions;
    for (uint32_t number = first_number_ + 1; !ends_; ++number) {
      const uint32_t key = thread * kKeysOfThread + static_cast<uint32_t>(random() % kKeysOfThread);
      switch (random() % 40) {
        case 0: count_up(session); break;
        case 1: abandon(session, key); break;
        case 2: look(session, known); break;
        case 3: {
          const kv::StoreCounts counts = store_.counts();
          report({.what = 'c',
                  .number = static_cast<uint32_t>(counts.collected.victims),
                  .other = static_cast<uint32_t>(counts.collected.checkpoints)});
          break;
        }
        default: break;
      }
      const bool is_remove = random() % 4 == 0, expires = !is_remove && random() % 8 == 0;
      const uint32_t to = is_remove ? 0 : number;
      report({.what = 'b', .expires = expires, .key = key, .number = to});
      kv::PutOptions options = {.expires_ms = expires ? kv::now_ms() + random() % 60 : 0};
      if (!is_remove && versions.contains(key) && random() % 3 == 0) {
        options.when = kv::When::kIfVersion;
        options.version = versions[key];
      }
      const std::string value = is_remove ? "" : value_of(key, number);
      auto done =
          is_remove ? session.remove(key_of(key)) : session.put(key_of(key), kv::bytes_of(value), options);
      if (!done) fail("%s: %s", key_of(key).c_str(), done.error().message);
      if (!is_remove && done->outcome != kv::Changed::Outcome::kDone)
        fail("%s was changed by somebody", key_of(key).c_str());
      report({.what = 'a', .expires = expires, .key = key, .number = to});
      known.erase(key);
      versions.erase(key);
      if (!expires) known[key] = to;
      if (!expires && !is_remove) versions[key] = done->version;
    }
    session.close();
  }

  kv::Store& store_;
  uint64_t seed_;
  uint32_t first_number_ = 0;
  std::atomic<bool> ends_{false};
};

}  // namespace

namespace {

// `text` is the device string of a device on the file.
int make(const char* path, const char* text) {
  const int file = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, 49 << 20) != 0) fail("%s: %s", path, strerror(errno));
  close(file);
  auto device = storage::open_device(text, {.store = true});
  if (!device) fail("%s", device.error().message);
  if (auto made = kv::Store::make(**device, {.segment_bytes = 1 << 20}); !made)
    fail("%s", made.error().message);
  (*device)->close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "make") return make(argv[2], argv[3]);
  if (argc != 4) fail("usage: kv_writer DEVICE none|batch|sync SEED");
  const std::string durability = argv[2];
  auto device = storage::open_device(argv[1], {.store = true});
  if (!device) fail("%s", device.error().message);
  auto opened = kv::Store::open(**device, {.durability = durability == "none"    ? kv::Durability::kNone
                                                         : durability == "batch" ? kv::Durability::kBatch
                                                                                 : kv::Durability::kSync,
                                           .batch_ns = 2'000'000,
                                           .stream_count = 2,
                                           .checkpoint_records = 200});
  if (!opened) fail("%s", opened.error().message);
  Writer writer(**opened, strtoull(argv[3], nullptr, 10));
  writer.verify();
  writer.run();
  (*opened)->verify();
  if (auto closed = (*opened)->close(); !closed) fail("%s", closed.error().message);
  (*device)->close();
  return 0;
}
