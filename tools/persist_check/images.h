// Images: chooses which of the contents that a medium may have after a crash are tried: all of them if they are few, otherwise some, by a seed,
// beginning with those that find the most bugs.
#pragma once
#include <cstdint>
#include <vector>

#include "medium.h"

namespace persist_check {

// Pseudo-random numbers from a seed, the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

// For each of Choices::lines, the number of the state that it has.
using Image = std::vector<uint32_t>;

// The open lines of a medium, and the states that each may have.
struct Choices {
  std::vector<LineId> lines;
  std::vector<std::vector<LineState>> states;
  bool is_all = true;  // no state of any line was left out

  explicit Choices(const Medium& medium, size_t states_max);
  uint32_t newest(size_t line) const { return static_cast<uint32_t>(states[line].size() - 1); }
  Image least() const { return Image(lines.size(), 0); }
  Image most() const;
};

// Returns up to `count_max` different images; `is_all` becomes false if there are others. If there are more than count_max, they come in this order:
// the least, the most, each line alone ahead of the others, each alone behind them, each line in each of its other states with the others at their
// least or most, and random ones.
std::vector<Image> choose_images(const Choices& choices, size_t count_max, Random& random, bool& is_all);

}  // namespace persist_check
