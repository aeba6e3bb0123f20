#include "images.h"

#include <algorithm>
#include <set>

#include "base/mix.h"

namespace persist_check {
namespace {

class Chosen {
 public:
  explicit Chosen(size_t count_max) : count_max_(count_max) {}
  bool is_full() const { return images_.size() == count_max_; }
  // Returns false if it was added before, or if there is no room.
  bool add(const Image& image) {
    if (is_full() || !seen_.insert(image).second) return false;
    images_.push_back(image);
    return true;
  }
  std::vector<Image> take() { return std::move(images_); }

 private:
  const size_t count_max_;
  std::vector<Image> images_;
  std::set<Image> seen_;
};

std::vector<size_t> shuffled(size_t count, Random& random) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

void add_all(const Choices& choices, Chosen& chosen) {
  Image image = choices.least();
  for (;;) {
    chosen.add(image);
    size_t line = 0;
    while (line < image.size() && image[line] == choices.newest(line)) image[line++] = 0;
    if (line == image.size()) return;
    ++image[line];
  }
}

void add_some(const Choices& choices, Chosen& chosen, Random& random) {
  const Image least = choices.least(), most = choices.most();
  chosen.add(least);
  chosen.add(most);
  const size_t count = choices.lines.size();
  for (const bool is_ahead : {true, false})
    for (const size_t line : shuffled(count, random)) {
      Image image = is_ahead ? least : most;
      image[line] = is_ahead ? choices.newest(line) : 0;
      chosen.add(image);
    }
  for (const size_t line : shuffled(count, random))
    for (uint32_t state = 1; state < choices.newest(line); ++state)
      for (Image image : {least, most}) {
        image[line] = state;
        chosen.add(image);
      }
  // An image that is drawn may have been chosen already. After so many of these in a row there are hardly any others left.
  constexpr int kMaxInVain = 64;
  for (int in_vain = 0; in_vain < kMaxInVain && !chosen.is_full();) {
    Image image(count);
    for (size_t line = 0; line < count; ++line) {
      const uint64_t draw = random.below(8);
      image[line] = draw < 3   ? 0
                    : draw < 6 ? choices.newest(line)
                               : static_cast<uint32_t>(random.below(choices.states[line].size()));
    }
    in_vain = chosen.add(image) ? 0 : in_vain + 1;
  }
}

}  // namespace

uint64_t Random::next() {
  const uint64_t value = base::mix(state_);
  state_ += base::kMixStep;
  return value;
}

Choices::Choices(const Medium& medium, size_t states_max) {
  for (const LineId id : medium.open_lines()) {
    lines.push_back(id);
    states.push_back(medium.states(id, states_max, is_all));
  }
}

Image Choices::most() const {
  Image image(lines.size());
  for (size_t line = 0; line < image.size(); ++line) image[line] = newest(line);
  return image;
}

std::vector<Image> choose_images(const Choices& choices, size_t count_max, Random& random, bool& is_all) {
  uint64_t product = 1;
  for (const auto& states : choices.states) {
    product *= states.size();
    if (product > count_max) break;
  }
  Chosen chosen(count_max);
  if (product <= count_max) {
    add_all(choices, chosen);
    is_all &= choices.is_all;
  } else {
    add_some(choices, chosen, random);
    is_all = false;
  }
  return chosen.take();
}

}  // namespace persist_check
