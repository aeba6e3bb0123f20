// A spilled buffer with a plain twin: what an interceptor did to the first, the C library does to the
// second, and they must stay equal. Spans enough pages that every operation crosses some of them.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <random>
#include <string>

#include "spill/access.h"
#include "spill/testing/fake_runtime.h"

namespace fake {

class Mirrored {
 public:
  Mirrored(size_t bytes, size_t offset) : spilled(allocate(bytes, offset)), twin(bytes, '\0') {}
  explicit Mirrored(const std::string& text, size_t offset = 4093) : Mirrored(text.size() + 1, offset) {
    fill(0, text.c_str(), text.size() + 1);
  }

  void fill(size_t at, const void* bytes, size_t n) {
    memcpy(&twin[at], bytes, n);
    spill::copy(spilled + at, bytes, n);
  }
  // Bytes from a small alphabet, so that searches find something and comparisons go far.
  void randomize(std::mt19937_64& random, unsigned alphabet) {
    std::string bytes(twin.size(), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % alphabet);
    fill(0, bytes.data(), bytes.size());
  }
  std::string now() const {
    std::string bytes(twin.size(), '\0');
    spill::copy(bytes.data(), spilled, bytes.size());
    return bytes;
  }
  void expect_equal(const char* what) const {
    if (now() == twin) return;
    const std::string bytes = now();
    size_t i = 0;
    while (bytes[i] == twin[i]) ++i;
    FAIL() << what << ": byte " << i << " of " << twin.size() << " is " << int{bytes[i]} << ", expected "
           << int{twin[i]};
  }
  size_t size() const { return twin.size(); }

  char* spilled;
  std::string twin;
};

// Content for a file or message: any bytes.
inline std::string content(size_t n) {
  std::string result(n, '\0');
  for (char& c : result) c = static_cast<char>(random());
  return result;
}

// Puts `text` into spilled memory so that it straddles pages, and returns its address.
inline char* spilled_string(const std::string& text, size_t offset = 4093) {
  char* address = allocate(text.size() + 1, offset);
  spill::copy(address, text.c_str(), text.size() + 1);
  return address;
}

inline std::string read_string(const char* spilled) {
  std::string text(spill::string_length(spilled), '\0');
  spill::copy(text.data(), spilled, text.size());
  return text;
}

// A copy of a value in spilled memory, where it crosses a page's edge; and its value now.
template <class T>
T* spilled_object(const T& value = {}) {
  char* address = allocate(sizeof(T), 4096 - sizeof(T) / 2);
  spill::copy(address, &value, sizeof(T));
  return reinterpret_cast<T*>(address);
}
template <class T>
T read_object(const T* spilled) {
  T value;
  spill::copy(&value, spilled, sizeof value);
  return value;
}

// Whether a call releases a page that compiled code was holding.
template <class Call>
bool lets_go(Call call) {
  constexpr unsigned kSlot = 5;
  __spillway_slots[kSlot].store(reinterpret_cast<uint64_t>(allocate(1, 0)));
  call();
  return __spillway_slots[kSlot].exchange(0) == 0;
}

// Starts the fake runtime with moving pages, and checks after each test that nothing stayed held.
class SpillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    start();
    set_moving(true);
  }
  void TearDown() override {
    set_moving(false);
    expect_nothing_held();
  }
  std::mt19937_64 random{20240601};
};

}  // namespace fake
