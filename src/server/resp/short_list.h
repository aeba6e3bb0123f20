// ShortList: a list that most often is short, whose first elements need no allocation.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace server::resp {

// push_back() copies the element, and costs as much as a vector's once there are more than kInlineCount.
template <class T>
class ShortList {
 public:
  static constexpr size_t kInlineCount = 16;
  static constexpr size_t kKeptCount = 1024;  // the memory of more is given back by clear()

  void push_back(const T& element) {
    if (size_ == kInlineCount) many_.assign(few_.begin(), few_.end());
    if (size_ < kInlineCount)
      few_[size_] = element;
    else
      many_.push_back(element);
    ++size_;
  }
  void clear() {
    size_ = 0;
    many_.clear();
    if (many_.capacity() > kKeptCount) many_ = std::vector<T>();
  }
  size_t size() const { return size_; }
  // Of the heap.
  size_t memory_bytes() const { return many_.capacity() * sizeof(T); }
  std::span<const T> view() const { return {size_ > kInlineCount ? many_.data() : few_.data(), size_}; }

 private:
  std::array<T, kInlineCount> few_ = {};
  std::vector<T> many_;  // all of them, once they are more
  size_t size_ = 0;
};

}  // namespace server::resp
