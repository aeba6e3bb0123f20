// Images: which of the contents that a medium may have after a crash are looked at. All of them where they are few; else a choice by a
// seed, which always begins with those that find most mistakes.
#pragma once
#include <cstdint>
#include <vector>

#include "medium.h"

namespace persist_check {

// Numbers by a seed, the same on each machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

// Which of its states each line has; in the order of `lines`.
using Image = std::vector<uint32_t>;

// The open lines of a medium, and the states that each may have.
struct Choices {
  std::vector<LineId> lines;
  std::vector<std::vector<LineState>> states;
  bool is_all = true;  // no state of a line is left out

  explicit Choices(const Medium& medium, size_t states_max);
  uint32_t newest(size_t line) const { return static_cast<uint32_t>(states[line].size() - 1); }
  Image least() const { return Image(lines.size(), 0); }
  Image most() const;
};

// No image twice. `is_all` becomes false if there are more than these. In this order, as far as `count_max` reaches: the least, the
// most, each line alone ahead of the others, each alone behind them, each in one of its other states with the others
// at their least or most, random ones.
std::vector<Image> choose_images(const Choices& choices, size_t count_max, Random& random, bool& is_all);

}  // namespace persist_check
