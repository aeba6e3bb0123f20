#include "server/clients/resp_answer.h"

#include <algorithm>

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

void RespAnswer::array(uint64_t count) {
  write([&](ReplyWriter& reply) { reply.array(count); });
}

void RespAnswer::map(uint64_t count) {
  write([&](ReplyWriter& reply) { reply.map(count); });
}

void RespAnswer::raw(std::string_view text) {
  if (!is_open()) return;
  if (auto written = stream_.write(text); !written) fail(written.error());
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
  auto begun = stream_.begin_value(items_, item, 0, item.value_bytes());
  if (!begun) return failed(begun.error());
  if (!*begun) return null();
  write([&](ReplyWriter& reply) { reply.bulk_header(item.value_bytes()); });
  if (!is_open()) return;
  if (auto written = stream_.write_value(items_, std::move(item), resp::kLineEnd); !written)
    fail(written.error());
}

void RespAnswer::part_of_value(Item& item, uint64_t offset, uint64_t bytes) {
  if (!is_open()) return;
  auto begun = stream_.begin_value(items_, item, offset, bytes);
  if (!begun) return failed(begun.error());
  if (!*begun) return bulk("");
  write([&](ReplyWriter& reply) { reply.bulk_header(bytes); });
  if (!is_open()) return;
  if (auto written = stream_.write_part(items_, item, offset, bytes); !written) return fail(written.error());
  raw(resp::kLineEnd);
}

void RespAnswer::refuse(const resp::Refusal& refusal, resp::Arguments arguments) {
  write([&](ReplyWriter& reply) { resp::write_refusal(reply, refusal, arguments); });
}

void RespAnswer::failed(const base::Error& error) {
  if (error.number == ENOSPC) return this->error("OOM command not allowed when used memory > 'maxmemory'.");
  base::Text<resp::kErrorBytesMax - 3> text;
  text << "ERR " << error.message;
  this->error(text.view());
}

}  // namespace server
