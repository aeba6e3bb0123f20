// A connection's part in parsing, for tests and the fuzzer: receives pieces of a stream, keeps the parser's
// input, takes large arguments out of it, and records what came of it. Each parse() gets an input of exactly
// its size in memory of its own, so that a view into an earlier one is found by the address sanitizer.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/resp/request.h"

namespace server::resp {

// What came of a stream: requests with their arguments, empty ones, and perhaps an error as the last.
struct Event {
  Parsed outcome;
  std::vector<std::string> arguments = {};
  std::string error = {};

  bool operator==(const Event&) const = default;
};

class TestStream {
 public:
  explicit TestStream(const RequestLimits& limits) : limits_(limits) {}

  void receive(std::string_view piece) {
    std::string arriving(piece);
    while (!is_closed_) {
      if (large_left_ > 0) {
        const size_t bytes = std::min<size_t>(large_left_, arriving.size());
        large_.append(arriving, 0, bytes);
        arriving.erase(0, bytes);
        large_left_ -= bytes;
        if (large_left_ > 0) return;
        keep_large();
      }
      replace_input(std::string(input()) + arriving);
      arriving.clear();
      if (!parse(arriving)) return;
    }
  }

  const std::vector<Event>& events() const { return events_; }
  size_t large_count() const { return large_count_; }
  // Nothing of a request has come since the last one.
  bool is_between_requests() const { return input_bytes_ == 0 && large_left_ == 0 && !is_closed_; }

 private:
  std::string_view input() const { return {input_.get(), input_bytes_}; }

  void replace_input(const std::string& bytes) {
    input_ = std::make_unique<char[]>(bytes.size());
    if (!bytes.empty()) memcpy(input_.get(), bytes.data(), bytes.size());
    input_bytes_ = bytes.size();
  }

  void keep_large() {
    large_.resize(large_.size() - 2);
    kept_.push_back(std::make_unique<std::string>(large_));
    large_.clear();
    ++large_count_;
    parser_.take(*kept_.back());
  }

  // False: more has to arrive. The part of a large argument that is in the input goes to `arriving`.
  bool parse(std::string& arriving) {
    const Parsed outcome = parser_.parse(input(), limits_);
    if (input_bytes_ < needed_bytes_) CHECK(outcome == Parsed::kMore || outcome == Parsed::kError);
    needed_bytes_ = 0;
    switch (outcome) {
      case Parsed::kMore:
        CHECK_GE(parser_.missing_bytes(), 1u);
        needed_bytes_ = input_bytes_ + parser_.missing_bytes();
        return false;
      case Parsed::kLarge:
        CHECK_LE(parser_.bytes(), input_bytes_);
        for (size_t i = 0; i < parser_.argument_count(); ++i)
          CHECK_LE(parser_.argument(i).size(), limits_.bulk_bytes_max);
        arriving = std::string(input().substr(parser_.bytes()));
        large_left_ = parser_.large_bytes() + 2;
        replace_input(std::string(input().substr(0, parser_.bytes())));
        return true;
      case Parsed::kRequest:
      case Parsed::kNothing: {
        Event event = {.outcome = outcome};
        for (const std::string_view argument : parser_.arguments()) event.arguments.emplace_back(argument);
        CHECK_EQ(event.arguments.empty(), outcome == Parsed::kNothing);
        CHECK(parser_.bytes() > 0 && parser_.bytes() <= input_bytes_);
        events_.push_back(event);
        kept_.clear();
        replace_input(std::string(input().substr(parser_.bytes())));
        return true;
      }
      case Parsed::kError:
        events_.push_back({.outcome = outcome, .error = std::string(parser_.error())});
        is_closed_ = true;
        return false;
    }
    return false;
  }

  const RequestLimits limits_;
  RequestParser parser_;
  std::unique_ptr<char[]> input_;
  size_t input_bytes_ = 0;
  uint64_t needed_bytes_ = 0;  // the parser has said that it needs so many
  uint64_t large_left_ = 0;    // to be received, with the two bytes behind it
  std::string large_;
  std::vector<std::unique_ptr<std::string>> kept_;
  size_t large_count_ = 0;
  std::vector<Event> events_;
  bool is_closed_ = false;
};

}  // namespace server::resp
