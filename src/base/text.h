// Text<N>: a fixed buffer that messages are composed in, without allocation, locale or libc.
// What does not fit is cut off. Not thread-safe. Async-signal-safe.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace base {

struct Hex {
  uint64_t value;
};

// A byte count, printed with the largest power-of-1024 suffix that keeps it exact: 4K, 256M, 12345.
struct Bytes {
  uint64_t value;
};

class TextRef {
 public:
  TextRef(char* buffer, size_t capacity) : buffer_(buffer), capacity_(capacity) {
    if (capacity_ > 0) buffer_[0] = 0;
  }
  TextRef& operator<<(std::string_view text) {
    for (char c : text) put(c);
    return *this;
  }
  TextRef& operator<<(const char* text) {
    return *this << std::string_view(text != nullptr ? text : "(null)");
  }
  TextRef& operator<<(char c) {
    put(c);
    return *this;
  }
  TextRef& operator<<(std::integral auto value) {
    if constexpr (std::is_signed_v<decltype(value)>) {
      if (value < 0) {
        put('-');
        return number(~static_cast<uint64_t>(value) + 1, 10);
      }
    }
    return number(static_cast<uint64_t>(value), 10);
  }
  TextRef& operator<<(Hex hex) {
    *this << "0x";
    return number(hex.value, 16);
  }
  TextRef& operator<<(Bytes bytes) {
    static constexpr char kSuffix[] = {'K', 'M', 'G', 'T'};
    uint64_t value = bytes.value;
    int suffix = -1;
    while (value != 0 && value % 1024 == 0 && suffix < 3) value /= 1024, ++suffix;
    number(value, 10);
    if (suffix >= 0) put(kSuffix[suffix]);
    return *this;
  }
  const char* c_str() const { return buffer_; }
  size_t size() const { return size_; }
  size_t room_bytes() const { return size_ + 1 < capacity_ ? capacity_ - size_ - 1 : 0; }  // what still fits
  std::string_view view() const { return {buffer_, size_}; }

 private:
  void put(char c) {
    if (size_ + 1 >= capacity_) return;
    buffer_[size_++] = c;
    buffer_[size_] = 0;
  }
  TextRef& number(uint64_t value, unsigned radix) {
    char digits[20];
    size_t n = 0;
    do {
      digits[n++] = "0123456789abcdef"[value % radix];
      value /= radix;
    } while (value != 0);
    while (n > 0) put(digits[--n]);
    return *this;
  }

  char* buffer_;
  size_t capacity_;
  size_t size_ = 0;
};

template <size_t N>
class Text : public TextRef {
 public:
  Text() : TextRef(storage_, N) {}
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

 private:
  char storage_[N];
};

}  // namespace base
