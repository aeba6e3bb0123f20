#include "server/clients/resp_answer.h"

#include <algorithm>
#include <utility>

namespace server {

using resp::ReplyWriter;

void RespAnswer::simple(std::string_view text) {
  write([&](ReplyWriter& reply) { reply.simple(text); });
}

void RespAnswer::error(std::string_view text) {
  write([&](ReplyWriter& reply) { reply.error(text); });
}

void RespAnswer::integer(int64_t number) {
  write([&](ReplyWriter& reply) { reply.integer(number); });
}

void RespAnswer::null() {
  write([&](ReplyWriter& reply) { reply.null(); });
}

void RespAnswer::null_array() {
  write([](ReplyWriter& reply) { reply.null_array(); });
}

void RespAnswer::array(uint64_t count) {
  write([&](ReplyWriter& reply) { reply.array(count); });
}

void RespAnswer::map(uint64_t count) {
  write([&](ReplyWriter& reply) { reply.map(count); });
}

// As Stream::room() and wrote().
base::Expected<std::span<char>> RespAnswer::room(size_t bytes) {
  if (!kept_) return stream_.room(bytes);
  std::string& memory = kept_->memory;
  if (memory.size() - kept_->bytes < bytes) memory.resize(std::max(2 * memory.size(), kept_->bytes + bytes));
  return std::span(memory).subspan(kept_->bytes);
}

void RespAnswer::wrote(size_t bytes) {
  if (!kept_) return stream_.wrote(bytes);
  kept_->bytes += bytes;
  if (kept_->bytes > kept_->bytes_max) give_up_kept();
}

void RespAnswer::give_up_kept() { kept_.emplace(Kept{.bytes_max = kept_->bytes_max, .is_over = true}); }

void RespAnswer::raw(std::string_view text) {
  if (!is_open()) return;
  if (!kept_) {
    if (auto written = stream_.write(text); !written) fail(written.error());
    return;
  }
  if (text.size() > kept_->bytes_max) return give_up_kept();
  std::ranges::copy(text, room(text.size())->begin());
  wrote(text.size());
}

void RespAnswer::bulk(std::string_view text) {
  write([&](ReplyWriter& reply) { reply.bulk_header(text.size()); });
  raw(text);
  raw(resp::kLineEnd);
}

void RespAnswer::text_for_people(std::string_view text) {
  constexpr std::string_view kFormat = "txt:";
  if (protocol == resp::Protocol::kResp2) return bulk(text);
  base::Text<32> header;
  header << '=' << kFormat.size() + text.size() << resp::kLineEnd << kFormat;
  raw(header.view());
  raw(text);
  raw(resp::kLineEnd);
}

void RespAnswer::value(Item&& item) {
  if (!is_open()) return;
  if (!item.found()) return null();
  auto begun = kept_ ? keep_value(item, 0, item.value_bytes())
                     : stream_.begin_value(items_, item, 0, item.value_bytes());
  if (!begun) return failed(begun.error());
  if (!*begun) return null();
  if (kept_) return;
  write([&](ReplyWriter& reply) { reply.bulk_header(item.value_bytes()); });
  if (!is_open()) return;
  if (auto written = stream_.write_value(items_, std::move(item), resp::kLineEnd); !written)
    fail(written.error());
}

void RespAnswer::part_of_value(Item& item, uint64_t offset, uint64_t bytes) {
  if (!is_open()) return;
  auto begun = kept_ ? keep_value(item, offset, bytes) : stream_.begin_value(items_, item, offset, bytes);
  if (!begun) return failed(begun.error());
  if (!*begun) return bulk("");
  if (kept_) return;
  write([&](ReplyWriter& reply) { reply.bulk_header(bytes); });
  if (!is_open()) return;
  if (auto written = stream_.write_part(items_, item, offset, bytes); !written) return fail(written.error());
  raw(resp::kLineEnd);
}

// Keeps the whole value, with its header and line end. Like Stream::begin_value(), returns false if a cache has dropped the value since it was
// found; then nothing of it is kept.
base::Expected<bool> RespAnswer::keep_value(Item& item, uint64_t offset, uint64_t bytes) {
  if (bytes > kept_->bytes_max) {
    give_up_kept();
    return true;
  }
  const size_t begin = kept_->bytes;
  write([&](ReplyWriter& reply) { reply.bulk_header(bytes); });
  if (!is_open()) return true;
  const std::span<char> to = room(bytes)->first(bytes);
  auto read = items_.read(item, offset, std::as_writable_bytes(to));
  if (!read) {
    kept_->bytes = begin;
    if (read.error().number == ESTALE) return false;
    return std::unexpected(read.error());
  }
  CHECK_EQ(*read, bytes);
  wrote(bytes);
  raw(resp::kLineEnd);
  return true;
}

void RespAnswer::keep(uint64_t bytes_max) {
  CHECK(!kept_);
  kept_ = Kept{.bytes_max = bytes_max};
}

void RespAnswer::send_kept() {
  const std::optional<Kept> kept = std::exchange(kept_, std::nullopt);
  if (kept->is_over) {
    base::Text<resp::kMaxErrorBytes - 3> text;
    text << "ERR the answers of the transaction, which was carried out, have more than " << kept->bytes_max
         << " bytes";
    return error(text.view());
  }
  if (!result_) return;
  if (auto written = stream_.write({kept->memory.data(), kept->bytes}); !written) fail(written.error());
}

void RespAnswer::refuse(const resp::Refusal& refusal, resp::Arguments arguments) {
  write([&](ReplyWriter& reply) { resp::write_refusal(reply, refusal, arguments); });
}

void RespAnswer::failed(const base::Error& error) {
  items_.note_error(error);
  if (error.number == ENOSPC) return this->error("OOM command not allowed when used memory > 'maxmemory'.");
  base::Text<resp::kMaxErrorBytes - 3> text;
  text << "ERR " << error.message;
  this->error(text.view());
}

}  // namespace server
