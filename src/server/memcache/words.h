// Words: a line taken apart at its blanks. As in memcached only ' ' separates words; a tab is part of one.
//
// Numbers in words are read by parse_number(). memcached also takes a '+' and tabs before a number, tabs after it,
// and the lower 32 bits of numbers that are too long.
#pragma once
#include <cstddef>
#include <string_view>

namespace server::memcache {

// The words of a text, one after the other, without a copy or an allocation, however many and long they are. A copy
// of the object goes on where the original is.
class Words {
 public:
  Words() = default;
  explicit Words(std::string_view text) : rest_(text) {}

  // Empty: there are no more.
  std::string_view next() {
    const size_t begin = rest_.find_first_not_of(' ');
    if (begin == std::string_view::npos) return rest_ = {};
    rest_.remove_prefix(begin);
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }
  // What next() has not returned, with its blanks.
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace server::memcache
