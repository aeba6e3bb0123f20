// Words: a line taken apart at its blanks. Only ' ' parts words: a tab is a byte of one, as in memcached.
//
// Numbers that words say are parse_number()'s. memcached also takes a '+' and tabs before a number and tabs
// after it, and cuts 32-bit numbers from longer ones.
#pragma once
#include <cstddef>
#include <string_view>

namespace server::memcache {

// The words of a text, one after the other, without a copy or an allocation: neither how many they are nor
// how long is bounded here. A copy of it begins where the original is.
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
