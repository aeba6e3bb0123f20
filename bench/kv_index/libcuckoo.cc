// libcuckoo's map beside the index, as its own benchmark uses it: 8-byte keys and values, a lock for each access.
#include <libcuckoo/cuckoohash_map.hh>

#include "cases.h"

class Map {
 public:
  Map(uint64_t keys, bool sized) {
    if (sized) map_.reserve(keys);
  }
  uint64_t insert(uint64_t begin, uint64_t end) {
    uint64_t done = 0;
    for (uint64_t number = begin; number < end; ++number) done += map_.insert(cases::key_of(number), number);
    return done;
  }
  uint64_t look_up(unsigned thread, uint64_t keys, uint64_t count, bool) {
    uint64_t state = thread, found = 0, value = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t number = cases::random_below(state, keys);
      found += map_.find(cases::key_of(number), value) && value == number;
    }
    return found;
  }

 private:
  libcuckoo::cuckoohash_map<uint64_t, uint64_t> map_;
};

int main(int count, char** words) { return cases::run<Map>(count, words); }
