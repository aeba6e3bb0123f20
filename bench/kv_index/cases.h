// What the programs of `spillway bench kv-index` share, one program for each table: their words, keys and answer.
//
//   PROGRAM CASE KEYS THREADS     prints one line of JSON: {"operations": N, "cpu_ns": N, "wall_ns": N, "bytes": N}
//
// | case         | an operation is                                                                                    |
// |--------------|----------------------------------------------------------------------------------------------------|
// | insert       | one of KEYS keys is put into a table that is empty before, and grows                                |
// | insert_sized | the same, into a table that has been told how many will come                                        |
// | lookup       | one of KEYS keys, all of which are there, is looked up; in random order, each about once. Several   |
// |              | at a time, where the table can do that                                                              |
// | lookup_one   | the same, one at a time                                                                             |
// | lookup_grown | as lookup, in a table that has grown as insert's                                                    |
//
// 1 keys are random numbers: a table may use them as hashes
// 2 the threads do equal parts of the operations at the same time, each on keys of its own. cpu_ns is the CPU time of all
// 3 a lookup that finds nothing, or another key's value, ends the program with status 1
// 4 bytes are what the process has more of when all keys are in, page tables included
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "../measure.h"
#include "../random.h"

namespace cases {

inline uint64_t key_of(uint64_t number) { return load::mix(number); }
// The number of the key that a thread looks up next.
inline uint64_t random_below(uint64_t& state, uint64_t limit) {
  state += 0x9e3779b97f4a7c15;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(key_of(state)) * limit) >> 64);
}

// A number of the command line; 0 where it is none, or none that can be meant.
inline uint64_t number_of(const char* word) {
  char* end = nullptr;
  const uint64_t number = std::strtoull(word, &end, 10);
  return *word < '0' || *word > '9' || *end != 0 || number > uint64_t{1} << 32 ? 0 : number;
}

inline int wrong_words(const char* program) {
  std::fprintf(stderr, "%s: give a case, the number of keys and the number of threads (cases.h)\n", program);
  return 2;
}

// Table has Table(keys, sized); insert(begin, end) of the keys with these numbers; look_up(thread, keys, count, several) of keys
// at random. Both return how many operations succeeded.
template <class Table>
int run(int count, char** words) {
  if (count != 4) return wrong_words(words[0]);
  const char* const name = words[1];
  const uint64_t keys = number_of(words[2]);
  const auto threads = static_cast<unsigned>(number_of(words[3]));
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  const bool grows = is("insert") || is("lookup_grown");
  const bool looks_up = is("lookup") || is("lookup_one") || is("lookup_grown");
  if (keys == 0 || threads == 0 || threads > 1024 || (!looks_up && !is("insert") && !is("insert_sized")))
    return wrong_words(words[0]);

  const Memory before;
  Table table(keys, !grows);
  std::vector<uint64_t> done(threads);
  Stopwatch watch;
  const auto by_all = [&](const auto& part) {
    watch.start();
    std::vector<std::thread> running;
    for (unsigned number = 0; number < threads; ++number)
      running.emplace_back([&, number] {
        const uint64_t begin = keys * number / threads, end = keys * (number + 1) / threads;
        done[number] = part(number, begin, end);
      });
    for (std::thread& thread : running) thread.join();
    watch.stop();
  };
  by_all([&](unsigned, uint64_t begin, uint64_t end) { return table.insert(begin, end); });
  const Memory after;
  const uint64_t bytes =
      after.resident_bytes + after.page_table_bytes - before.resident_bytes - before.page_table_bytes;
  if (looks_up)
    by_all([&](unsigned number, uint64_t begin, uint64_t end) {
      return table.look_up(number, keys, end - begin, !is("lookup_one"));
    });
  uint64_t operations = 0;
  for (const uint64_t part : done) operations += part;
  std::printf("{\"operations\": %lu, \"cpu_ns\": %lu, \"wall_ns\": %lu, \"bytes\": %lu}\n", operations,
              watch.cpu_ns(), watch.wall_ns(), bytes);
  return operations == keys ? 0 : 1;
}

}  // namespace cases
