#include "server/resp/reply.h"

#include <cstring>

#include "base/check.h"
#include "base/text.h"

namespace server::resp {
namespace {

// A number's digits.
template <class T>
class Digits {
 public:
  explicit Digits(T value) { text_ << value; }
  std::string_view view() const { return text_.view(); }

 private:
  base::Text<24> text_;
};

}  // namespace

void ReplyWriter::rewind(size_t size) {
  CHECK_LE(size, size_);
  size_ = size;
  is_full_ = false;
}

void ReplyWriter::put(std::initializer_list<std::string_view> pieces) {
  size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  if (is_full_ || bytes > buffer_.size() - size_) {
    is_full_ = true;
    return;
  }
  for (const std::string_view piece : pieces) {
    if (piece.empty()) continue;
    memcpy(buffer_.data() + size_, piece.data(), piece.size());
    size_ += piece.size();
  }
}

void ReplyWriter::line(char kind, std::string_view text) {
  const size_t begin = size_;
  put({{&kind, 1}, text, kLineEnd});
  if (is_full_) return;
  for (char& c : buffer_.subspan(begin, 1 + text.size()))
    if (c == '\r' || c == '\n') c = ' ';
}

void ReplyWriter::header(char kind, uint64_t count) { put({{&kind, 1}, Digits(count).view(), kLineEnd}); }

void ReplyWriter::simple(std::string_view text) { line('+', text); }

void ReplyWriter::error(std::string_view text) {
  if (!text.empty()) line('-', text);
}

void ReplyWriter::integer(int64_t value) { put({":", Digits(value).view(), kLineEnd}); }

void ReplyWriter::bulk(std::string_view bytes) {
  put({"$", Digits(bytes.size()).view(), kLineEnd, bytes, kLineEnd});
}

void ReplyWriter::bulk_header(uint64_t bytes) { header('$', bytes); }

void ReplyWriter::null() { put({protocol_ == Protocol::kResp3 ? "_\r\n" : "$-1\r\n"}); }

void ReplyWriter::null_array() { put({protocol_ == Protocol::kResp3 ? "_\r\n" : "*-1\r\n"}); }

void ReplyWriter::array(uint64_t count) { header('*', count); }

void ReplyWriter::map(uint64_t count) {
  if (protocol_ == Protocol::kResp3)
    header('%', count);
  else
    header('*', 2 * count);
}

void ReplyWriter::set(uint64_t count) { header(protocol_ == Protocol::kResp3 ? '~' : '*', count); }

}  // namespace server::resp
