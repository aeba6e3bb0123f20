// Iterations: all keys of a store as they were at one moment.
#include "capi/kv/objects.h"
#include "kv/snapshot.h"

struct spillway_kv_iteration {
  spillway_kv_session* session = nullptr;
  kv::Snapshot snapshot;
  bool has_entry = false;
};

extern "C" {

int spillway_kv_iterate_open(spillway_kv_session* session, spillway_kv_iteration** iteration) {
  if (iteration != nullptr) *iteration = nullptr;
  if (session == nullptr || iteration == nullptr)
    return capi::refuse_invalid(session, "store: the session or the place for an iteration is null");
  auto* const own = capi::make<spillway_kv_iteration>();
  if (own == nullptr)
    return capi::refuse(session, base::Error::of(ENOMEM, "store: no memory for an iteration"));
  if (auto opened = own->snapshot.open(session->session); !opened) {
    capi::destroy(own);
    return capi::refuse(session, opened.error());
  }
  own->session = session;
  ++session->iteration_count;
  *iteration = own;
  return SPILLWAY_KV_OK;
}

int spillway_kv_iterate_next(spillway_kv_iteration* iteration, const void** key, size_t* key_bytes,
                             spillway_kv_value* value) {
  if (iteration == nullptr) return capi::refuse_invalid(nullptr, "store: iteration is null");
  if (value != nullptr && !capi::has_struct_bytes(*value))
    return capi::refuse_invalid(iteration->session,
                                "spillway_kv_value: set struct_bytes to the struct's sizeof");
  kv::Snapshot::Entry entry;
  auto next = iteration->snapshot.next(entry);
  iteration->has_entry = next && *next;
  spillway_kv_value own = {};
  own.status = !next   ? capi::refuse(iteration->session, next.error())
               : *next ? SPILLWAY_KV_OK
                       : SPILLWAY_KV_ABSENT;
  if (iteration->has_entry) {
    own.data = entry.is_large ? nullptr : entry.value.data();
    own.data_bytes = entry.value_bytes;
    own.version = entry.version;
    own.expires_ms = entry.expires_ms;
    own.flags = entry.flags;
  }
  if (key != nullptr) *key = iteration->has_entry ? entry.key.data() : nullptr;
  if (key_bytes != nullptr) *key_bytes = iteration->has_entry ? entry.key.size() : 0;
  if (value != nullptr) capi::set_value(value, own);
  return own.status;
}

int spillway_kv_iterate_read(spillway_kv_iteration* iteration, uint64_t offset, void* buffer,
                             size_t buffer_bytes, size_t* read_bytes) {
  if (iteration == nullptr) return capi::refuse_invalid(nullptr, "store: iteration is null");
  if (read_bytes != nullptr) *read_bytes = 0;
  if (buffer == nullptr && buffer_bytes > 0)
    return capi::refuse_invalid(iteration->session, "store: the buffer is null");
  if (!iteration->has_entry)
    return capi::refuse_invalid(iteration->session,
                                "store: no key was given out by the last call for the next one");
  auto read = iteration->snapshot.read_value(offset, {static_cast<std::byte*>(buffer), buffer_bytes});
  if (!read) return capi::refuse(iteration->session, read.error());
  if (read_bytes != nullptr) *read_bytes = *read;
  return SPILLWAY_KV_OK;
}

int spillway_kv_iterate_close(spillway_kv_iteration* iteration) {
  if (iteration == nullptr) return SPILLWAY_KV_OK;
  iteration->snapshot.close();
  --iteration->session->iteration_count;
  capi::destroy(iteration);
  return SPILLWAY_KV_OK;
}

}  // extern "C"
