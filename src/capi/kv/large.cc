// Large values, a part at a time.
#include "capi/kv/request.h"

struct spillway_kv_writer {
  spillway_kv_session* session = nullptr;
  kv::ValueWriter writer;
  bool has_failed = false;
};

namespace capi {
namespace {

void close_writer(spillway_kv_writer* writer) {
  --writer->session->held_count;
  destroy(writer);  // what was appended and not committed is forgotten
}

}  // namespace
}  // namespace capi

extern "C" {

int spillway_kv_value_read(spillway_kv_value* value, uint64_t offset, void* to, size_t bytes,
                           size_t* read_bytes) {
  if (read_bytes != nullptr) *read_bytes = 0;
  if (value == nullptr || value->holder == nullptr || (to == nullptr && bytes > 0))
    return capi::refuse_invalid(nullptr, "store: the value holds nothing, or the place for it is null");
  auto& holder = *static_cast<capi::Holder*>(value->holder);
  auto read = holder.session->session.read_value(holder.found, offset, {static_cast<std::byte*>(to), bytes});
  if (!read) return capi::refuse(holder.session, read.error());
  if (read_bytes != nullptr) *read_bytes = *read;
  return SPILLWAY_KV_OK;
}

int spillway_kv_writer_open(spillway_kv_session* session, const void* key, size_t key_bytes,
                            spillway_kv_writer** writer) {
  if (writer != nullptr) *writer = nullptr;
  if (session == nullptr || writer == nullptr)
    return capi::refuse_invalid(session, "store: the session or the place for a writer is null");
  capi::Request request;
  if (auto set = capi::set_key(request, key, key_bytes); !set) return capi::refuse(session, set.error());
  auto* const own = capi::make<spillway_kv_writer>();
  if (own == nullptr) return capi::refuse(session, base::Error::of(ENOMEM, "store: no memory for a writer"));
  if (auto opened = own->writer.open(session->session, request.key); !opened) {
    capi::destroy(own);
    return capi::refuse(session, opened.error());
  }
  own->session = session;
  ++session->held_count;
  *writer = own;
  return SPILLWAY_KV_OK;
}

int spillway_kv_writer_append(spillway_kv_writer* writer, const void* part, size_t bytes) {
  if (writer == nullptr) return capi::refuse_invalid(nullptr, "store: writer is null");
  if (writer->has_failed)
    return capi::refuse_invalid(writer->session, "store: the writer has failed; abandon it");
  if (bytes == 0) return SPILLWAY_KV_OK;
  if (part == nullptr) return capi::refuse_invalid(writer->session, "store: the part is null");
  if (bytes > kv::kMaxValueBytes) {
    writer->has_failed = true;
    return capi::refuse(writer->session,
                        base::Error::of(E2BIG, "store: a part of ", bytes, " bytes; values have ",
                                        kv::kMaxValueBytes, " or fewer"));
  }
  auto appended = writer->writer.append({static_cast<const std::byte*>(part), bytes});
  if (appended) return SPILLWAY_KV_OK;
  writer->has_failed = true;
  return capi::refuse(writer->session, appended.error());
}

int spillway_kv_writer_commit(spillway_kv_writer* writer, const spillway_kv_change_options* options,
                              uint64_t* version) {
  if (version != nullptr) *version = 0;
  if (writer == nullptr) return capi::refuse_invalid(nullptr, "store: writer is null");
  spillway_kv_session* const session = writer->session;
  capi::Request request;
  request.kind = capi::Request::Kind::kPut;
  auto set = capi::set_options(request, options);
  if (set && writer->has_failed) set = base::failure(EINVAL, "store: the writer has failed; nothing was put");
  if (!set) {
    capi::close_writer(writer);
    return capi::refuse(session, set.error());
  }
  capi::end_change(request, writer->writer.commit(request.options));
  capi::close_writer(writer);
  if (request.value.status < 0) return capi::refuse(session, request.error);
  if (version != nullptr) *version = request.value.version;
  return request.value.status;
}

void spillway_kv_writer_abandon(spillway_kv_writer* writer) {
  if (writer != nullptr) capi::close_writer(writer);
}

}  // extern "C"
