// Sessions, and the calls that block: get, put, remove, and many of each at a time.
#include <algorithm>

#include "capi/kv/objects.h"
#include "capi/kv/workers.h"
#include "kv/multi_get.h"

namespace capi {
namespace {

constexpr size_t kBatch = 256;              // changes of a call that are under way together
constexpr uint32_t kBackgroundTasks = 128;  // that carry out changes for all sessions of a store

Holder* take_holder(spillway_kv_session& session) {
  Holder* holder = session.free_holders;
  if (holder != nullptr)
    session.free_holders = holder->next;
  else if (holder = make<Holder>(); holder == nullptr)
    return nullptr;
  holder->session = &session;
  ++session.held_count;
  return holder;
}

// Gives the caller what was found. The first error of a call becomes its `result`, and the line is kept.
void hand_over(spillway_kv_session& session, base::Expected<kv::Found>& found, spillway_kv_value* value,
               int& result) {
  spillway_kv_value own = {};
  if (found && found->found()) {
    if (Holder* const holder = take_holder(session); holder != nullptr) {
      own = describe(*found);
      own.data = found->is_large() ? nullptr : found->value().data();
      own.holder = holder;
      holder->found = std::move(*found);
    } else {
      found = base::failure(ENOMEM, "store: no memory for a value");
    }
  } else if (found) {
    own.status = SPILLWAY_KV_ABSENT;
  }
  if (!found) {
    own.status = status_of(found.error());
    if (result == SPILLWAY_KV_OK) result = refuse(&session, found.error());
  }
  set_value(value, own);
}

// Carries out the request of a call, and returns the call's status.
int run(spillway_kv_session& session, Request& request) {
  perform(session.session, request);
  if (request.value.status < 0) return refuse(&session, request.error);
  return request.value.status;
}

// The store's workers for batches, which are opened for the first one.
base::Expected<Workers*> background(spillway_kv& store) {
  sys::LockGuard scope(store.lock);
  if (store.background != nullptr) return store.background;
  auto* const workers = make<Workers>();
  if (workers == nullptr) return base::failure(ENOMEM, "store: no memory for threads");
  if (auto opened = workers->open(*store.store, 1, kBackgroundTasks); !opened) {
    destroy(workers);
    return std::unexpected(opened.error());
  }
  store.background = workers;
  return workers;
}

struct BatchRequest : Request {
  sys::Latch* latch = nullptr;
  spillway_kv_change* change = nullptr;
};

base::Expected<void> prepare(BatchRequest& request, spillway_kv_change& change) {
  request.kind = change.is_remove != 0 ? Request::Kind::kRemove : Request::Kind::kPut;
  if (auto key = set_key(request, change.key, change.key_bytes); !key) return key;
  if (auto options = set_options(request, change.options); !options) return options;
  return change.is_remove != 0 ? base::Expected<void>()
                               : set_pieces(request, change.value, change.value_count);
}

// Tells the caller how a change ended. The status of the first one with an error becomes `result`, and its line is kept.
void end_change(spillway_kv_session& session, const BatchRequest& request, int& result) {
  request.change->status = request.value.status;
  request.change->version = request.value.version;
  if (request.value.status < 0 && result == SPILLWAY_KV_OK) result = refuse(&session, request.error);
}

// Makes `count` changes together; their structs are `stride` bytes apart.
void run_batch(spillway_kv_session& session, Workers& workers, BatchRequest* requests, char* changes,
               size_t stride, size_t count, int& result) {
  sys::Latch latch(static_cast<uint32_t>(count));
  for (size_t i = 0; i < count; ++i) {
    BatchRequest& request = *new (&requests[i]) BatchRequest;
    request.change = reinterpret_cast<spillway_kv_change*>(changes + i * stride);
    request.latch = &latch;
    request.ended = [](Request& ended) { static_cast<BatchRequest&>(ended).latch->count_down(); };
    auto prepared = prepare(request, *request.change);
    if (prepared) {
      workers.submit(request);
      continue;
    }
    request.value.status = status_of(prepared.error());
    request.error = prepared.error();
    latch.count_down();
  }
  latch.wait();
  for (size_t i = 0; i < count; ++i) end_change(session, requests[i], result);
}

}  // namespace
}  // namespace capi

extern "C" {

int spillway_kv_session_open(spillway_kv* store, spillway_kv_session** session) {
  if (session != nullptr) *session = nullptr;
  if (store == nullptr || session == nullptr)
    return capi::refuse_invalid(nullptr, "store: the store or the place for a session is null");
  auto* const own = capi::make<spillway_kv_session>();
  if (own == nullptr) return capi::refuse(nullptr, base::Error::of(ENOMEM, "store: no memory for a session"));
  own->store = store;
  if (auto opened = own->session.open(*store->store); !opened) {
    capi::destroy(own);
    return capi::refuse(nullptr, opened.error());
  }
  store->add_user();
  *session = own;
  return SPILLWAY_KV_OK;
}

int spillway_kv_session_close(spillway_kv_session* session) {
  if (session == nullptr) return SPILLWAY_KV_OK;
  if (session->held_count > 0)
    return capi::refuse(session,
                        base::Error::of(EBUSY, "store: ", session->held_count,
                                        " values and writers of the session are held; release them first"));
  if (session->iteration_count > 0)
    return capi::refuse(session, base::Error::of(EBUSY, "store: ", session->iteration_count,
                                                 " iterations of the session are open; close them first"));
  while (capi::Holder* const holder = session->free_holders) {
    session->free_holders = holder->next;
    capi::destroy(holder);
  }
  session->session.close();
  session->store->remove_user();
  capi::destroy(session);
  return SPILLWAY_KV_OK;
}

int spillway_kv_get(spillway_kv_session* session, const void* key, size_t key_bytes, void* buffer,
                    size_t buffer_bytes, spillway_kv_value* value) {
  if (session == nullptr) return capi::refuse_invalid(nullptr, "store: session is null");
  if (buffer == nullptr && buffer_bytes > 0) return capi::refuse_invalid(session, "store: buffer is null");
  if (value != nullptr && !capi::has_struct_bytes(*value))
    return capi::refuse_invalid(session, "spillway_kv_value: set struct_bytes to the struct's sizeof");
  capi::Request request;
  request.buffer = buffer;
  request.buffer_bytes = buffer_bytes;
  auto checked = capi::set_key(request, key, key_bytes);
  const int status = checked ? capi::run(*session, request) : capi::refuse(session, checked.error());
  request.value.status = status;
  if (value != nullptr) capi::set_value(value, request.value);
  return status;
}

int spillway_kv_get_value(spillway_kv_session* session, const void* key, size_t key_bytes,
                          spillway_kv_value* value) {
  const iovec one = {const_cast<void*>(key), key_bytes};
  if (const int status = spillway_kv_get_many(session, &one, 1, value); status != SPILLWAY_KV_OK)
    return status;
  return value->status;
}

int spillway_kv_get_many(spillway_kv_session* session, const iovec* keys, size_t count,
                         spillway_kv_value* values) {
  if (session == nullptr) return capi::refuse_invalid(nullptr, "store: session is null");
  if (count == 0) return SPILLWAY_KV_OK;
  if (keys == nullptr || values == nullptr || !capi::has_struct_bytes(*values))
    return capi::refuse_invalid(session,
                                "store: keys or values are null, or struct_bytes of these is not set");
  const size_t stride = values->struct_bytes;
  int result = SPILLWAY_KV_OK;
  constexpr size_t kGroup = kv::MultiGet::kGroup;
  for (size_t at = 0; at < count; at += kGroup) {
    const size_t group = std::min(kGroup, count - at);
    std::string_view own_keys[kGroup];
    base::Expected<kv::Found> found[kGroup];
    for (size_t i = 0; i < group; ++i) {
      const iovec& key = keys[at + i];
      if (key.iov_base != nullptr) own_keys[i] = {static_cast<const char*>(key.iov_base), key.iov_len};
    }
    if (group == 1)
      found[0] = session->session.get(own_keys[0]);
    else
      kv::MultiGet::get(session->session, {own_keys, group}, {found, group});
    for (size_t i = 0; i < group; ++i) {
      auto* const value =
          reinterpret_cast<spillway_kv_value*>(reinterpret_cast<char*>(values) + (at + i) * stride);
      value->struct_bytes = stride;
      capi::hand_over(*session, found[i], value, result);
    }
  }
  return result;
}

void spillway_kv_value_release(spillway_kv_value* values, size_t count) {
  if (values == nullptr || count == 0) return;
  const size_t stride = values->struct_bytes;
  for (size_t i = 0; i < count; ++i) {
    auto* const value = reinterpret_cast<spillway_kv_value*>(reinterpret_cast<char*>(values) + i * stride);
    auto* const holder = static_cast<capi::Holder*>(value->holder);
    if (holder == nullptr) continue;
    spillway_kv_session& session = *holder->session;
    holder->found = kv::Found();
    holder->next = session.free_holders;
    session.free_holders = holder;
    --session.held_count;
    value->data = nullptr;
    value->holder = nullptr;
  }
}

int spillway_kv_put(spillway_kv_session* session, const void* key, size_t key_bytes, const iovec* value,
                    size_t value_count, const spillway_kv_change_options* options, uint64_t* version) {
  if (session == nullptr) return capi::refuse_invalid(nullptr, "store: session is null");
  capi::Request request;
  request.kind = capi::Request::Kind::kPut;
  auto checked = capi::set_key(request, key, key_bytes);
  if (checked) checked = capi::set_pieces(request, value, value_count);
  if (checked) checked = capi::set_options(request, options);
  const int status = checked ? capi::run(*session, request) : capi::refuse(session, checked.error());
  if (version != nullptr) *version = request.value.version;
  return status;
}

int spillway_kv_remove(spillway_kv_session* session, const void* key, size_t key_bytes,
                       const spillway_kv_change_options* options, uint64_t* version) {
  if (session == nullptr) return capi::refuse_invalid(nullptr, "store: session is null");
  capi::Request request;
  request.kind = capi::Request::Kind::kRemove;
  auto checked = capi::set_key(request, key, key_bytes);
  if (checked) checked = capi::set_options(request, options);
  const int status = checked ? capi::run(*session, request) : capi::refuse(session, checked.error());
  if (version != nullptr) *version = request.value.version;
  return status;
}

int spillway_kv_change_many(spillway_kv_session* session, spillway_kv_change* changes, size_t count) {
  if (session == nullptr) return capi::refuse_invalid(nullptr, "store: session is null");
  if (count == 0) return SPILLWAY_KV_OK;
  if (changes == nullptr || !capi::has_struct_bytes(*changes))
    return capi::refuse_invalid(session, "store: changes are null, or struct_bytes of these is not set");
  const size_t stride = changes->struct_bytes;
  auto* const bytes = reinterpret_cast<char*>(changes);
  const size_t batch = std::min(count, capi::kBatch);
  auto* const requests = static_cast<capi::BatchRequest*>(malloc(batch * sizeof(capi::BatchRequest)));
  auto workers = capi::background(*session->store);
  int result = SPILLWAY_KV_OK;
  if (requests == nullptr)
    result = capi::refuse(session, base::Error::of(ENOMEM, "store: no memory for ", batch, " changes"));
  else if (!workers)
    result = capi::refuse(session, workers.error());
  for (size_t at = 0; at < count; at += batch) {
    const size_t part = std::min(batch, count - at);
    if (requests != nullptr && workers)
      capi::run_batch(*session, **workers, requests, bytes + at * stride, stride, part, result);
    else
      for (size_t i = 0; i < part; ++i) {
        auto* const change = reinterpret_cast<spillway_kv_change*>(bytes + (at + i) * stride);
        change->status = result;
        change->version = 0;
      }
  }
  free(requests);
  return result;
}

}  // extern "C"
