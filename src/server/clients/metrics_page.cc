#include "server/clients/metrics_page.h"

#include <algorithm>

#include "base/utf8.h"

namespace server {
namespace {

constexpr std::string_view kPrefix = "spillway_";
constexpr std::string_view kNoCharacter = "\xef\xbf\xbd";  // U+FFFD

// A quotation mark is special only between quotes: escaping it elsewhere would be an error.
void append_escaped(std::string& to, std::string_view text, bool is_quoted) {
  while (!text.empty()) {
    const size_t bytes = base::character_bytes(text);
    const char first = text.front();
    if (bytes == 0)
      to += kNoCharacter;
    else if (first == '\n')
      to += "\\n";
    else if (first == '\\' || (first == '"' && is_quoted))
      (to += '\\') += first;
    else
      to += text.substr(0, bytes);
    text.remove_prefix(std::max(bytes, size_t{1}));
  }
}

}  // namespace

void MetricsPage::begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  head_.assign("# HELP ").append(kPrefix).append(name).append(" ");
  append_escaped(head_, help, false);
  head_.append("\n# TYPE ").append(kPrefix).append(name).append(" ").append(type).append("\n");
}

void MetricsPage::counter(std::string_view name, std::string_view help, uint64_t value) {
  begin(name, "counter", help);
  add({}, value);
}

void MetricsPage::gauge(std::string_view name, std::string_view help, uint64_t value) {
  begin(name, "gauge", help);
  add({}, value);
}

void MetricsPage::add_text(const Labels& labels, std::string_view value, std::string_view suffix) {
  text_ += std::exchange(head_, {});
  text_.append(kPrefix).append(name_).append(suffix);
  char before = '{';
  for (const auto& [name, label] : labels) {
    text_ += before;
    text_.append(name).append("=\"");
    append_escaped(text_, label, true);
    text_ += '"';
    before = ',';
  }
  if (!labels.empty()) text_ += '}';
  text_.append(" ").append(value).append("\n");
}

}  // namespace server
