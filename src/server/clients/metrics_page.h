// MetricsPage: metrics as Prometheus reads them, in its text format (version 0.0.4).
//
//   # HELP spillway_store_segments Segments, by what they are.
//   # TYPE spillway_store_segments gauge
//   spillway_store_segments{state="free"} 12
//   spillway_store_segments{state="sealed"} 240
//
// All samples of a metric stand together, behind its help and its type. Help and values of labels may be any bytes: characters that are special in
// the format are escaped, and invalid UTF-8 is replaced, since one such byte makes a reader refuse the whole page.
#pragma once
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace server {

class MetricsPage {
 public:
  // Names, which are letters and '_', and values.
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  // Begins spillway_<name>, to which the following calls of add() belong; without any, the metric is left out. REQUIRES: it was not begun before.
  void begin(std::string_view name, std::string_view type, std::string_view help);
  // REQUIRES: no sample of this metric and suffix has the same labels.
  template <class Number>
  void add(const Labels& labels, Number value, std::string_view suffix = "") {
    char digits[32];
    const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    add_text(labels, std::string_view(digits, static_cast<size_t>(end - digits)), suffix);
  }
  // Metrics with a single sample.
  void counter(std::string_view name, std::string_view help, uint64_t value);
  void gauge(std::string_view name, std::string_view help, uint64_t value);

  std::string take() { return std::move(text_); }

 private:
  void add_text(const Labels& labels, std::string_view value, std::string_view suffix);

  std::string name_;
  std::string head_;  // help and type; empty once they are written
  std::string text_;
};

}  // namespace server
