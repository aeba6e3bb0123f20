// Sessions, and the calls that block.
#include <algorithm>

#include "capi/pages/objects.h"

namespace capi::pages {
namespace {

constexpr size_t kMinViewBytes = 32;  // of the struct's first version
static_assert(sizeof(spillway_pagecache_view) == kMinViewBytes);

// Checks what all calls for a range are given. `memory` is where its bytes go, or come from.
int check(spillway_pagecache_session* session, const spillway_pagecache_file* file, const void* memory,
          size_t bytes) {
  if (session == nullptr) [[unlikely]]
    return refuse_invalid(nullptr, "page cache: session is null");
  if (file == nullptr) [[unlikely]]
    return refuse_invalid(session, "page cache: file is null");
  if (file->cache != session->cache) [[unlikely]]
    return refuse_invalid(session, "page cache: ", file->device->name(), " is a file of another cache");
  if (memory == nullptr && bytes > 0) [[unlikely]]
    return refuse_invalid(session, "page cache: the memory is null");
  return SPILLWAY_PAGECACHE_OK;
}

int check_write(spillway_pagecache_session* session, const spillway_pagecache_file* file, const void* memory,
                size_t bytes) {
  if (const int status = check(session, file, memory, bytes); status != SPILLWAY_PAGECACHE_OK) return status;
  if (file->is_read_only) [[unlikely]]
    return refuse(session, base::Error::of(EACCES, "page cache: ", file->device->name(),
                                           " was added for reading only"));
  return SPILLWAY_PAGECACHE_OK;
}

int answer(spillway_pagecache_session& session, const base::Expected<void>& done) {
  return done ? SPILLWAY_PAGECACHE_OK : refuse(&session, done.error());
}

Holder* take_holder(spillway_pagecache_session& session) {
  Holder* const holder = session.free_holders;
  if (holder == nullptr) return make<Holder>();
  session.free_holders = holder->next;
  return holder;
}

void give_back(spillway_pagecache_session& session, Holder& holder) {
  holder.next = session.free_holders;
  session.free_holders = &holder;
}

uint32_t& view_count_of(spillway_pagecache_session& session, size_t file_index) {
  if (file_index >= session.view_counts.size()) session.view_counts.resize(file_index + 1);
  return session.view_counts[file_index];
}

// A session's call: inside its gate.
class Turn {
 public:
  explicit Turn(spillway_pagecache_session& session) : gate_(session.gate) { gate_.enter(); }
  ~Turn() { gate_.leave(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  sys::Gate& gate_;
};

// Views only the part of the range that lies in its first page, but the whole range has to be within the file.
// REQUIRES: the view holds nothing.
base::Expected<void> get_view(spillway_pagecache_session& session, spillway_pagecache_file& file,
                              uint64_t offset, size_t bytes, spillway_pagecache_view& view) {
  const uint64_t file_bytes = file.file->bytes();
  const bool is_within = offset <= file_bytes && bytes <= file_bytes - offset;
  const uint64_t part =
      is_within
          ? std::min<uint64_t>(bytes, file.file->page_data_bytes() - file.file->position_of(offset).begin)
          : bytes;
  auto found = session.session.view(*file.file, offset, part);
  if (!found) return std::unexpected(found.error());
  if (part == 0) return {};
  Holder* const holder = take_holder(session);
  if (holder == nullptr) return base::failure(ENOMEM, "page cache: no memory for a view");
  holder->session = &session;
  holder->file_index = file.file->number() - 1;
  holder->view = std::move(*found);
  ++view_count_of(session, holder->file_index);
  ++session.view_count;
  view.data = holder->view.bytes().data();
  view.data_bytes = holder->view.bytes().size();
  view.holder = holder;
  return {};
}

}  // namespace
}  // namespace capi::pages

extern "C" {

int spillway_pagecache_session_open(spillway_pagecache* cache, spillway_pagecache_session** session) {
  using namespace capi::pages;
  if (session != nullptr) *session = nullptr;
  if (cache == nullptr || session == nullptr)
    return refuse_invalid(nullptr, "page cache: the cache or the place for a session is null");
  auto* const own = capi::make<spillway_pagecache_session>(*cache);
  if (own == nullptr) return refuse(nullptr, base::Error::of(ENOMEM, "page cache: no memory for a session"));
  own->session.open(*cache->cache);
  sys::LockGuard scope(cache->lock);
  cache->sessions.add(*own);
  *session = own;
  return SPILLWAY_PAGECACHE_OK;
}

int spillway_pagecache_session_close(spillway_pagecache_session* session) {
  using namespace capi::pages;
  if (session == nullptr) return SPILLWAY_PAGECACHE_OK;
  if (session->view_count > 0)
    return refuse_in_use(session, "page cache: ", session->view_count,
                         " views of the session are held; release them first");
  while (Holder* const holder = session->free_holders) {
    session->free_holders = holder->next;
    capi::destroy(holder);
  }
  {
    sys::LockGuard scope(session->cache->lock);
    session->cache->sessions.remove(*session);
    session->session.close();  // a file's removal finds either the open session or nothing of it
    session->cache->closed_counts += session->session.counts();
  }
  capi::destroy(session);
  return SPILLWAY_PAGECACHE_OK;
}

int spillway_pagecache_read(spillway_pagecache_session* session, spillway_pagecache_file* file,
                            uint64_t offset, void* to, size_t bytes) {
  using namespace capi::pages;
  if (const int status = check(session, file, to, bytes); status != SPILLWAY_PAGECACHE_OK) return status;
  const Turn turn(*session);
  return answer(*session, session->session.read(*file->file, offset, {static_cast<std::byte*>(to), bytes}));
}

int spillway_pagecache_write(spillway_pagecache_session* session, spillway_pagecache_file* file,
                             uint64_t offset, const void* from, size_t bytes) {
  using namespace capi::pages;
  if (const int status = check_write(session, file, from, bytes); status != SPILLWAY_PAGECACHE_OK)
    return status;
  const Turn turn(*session);
  return answer(*session,
                session->session.write(*file->file, offset, {static_cast<const std::byte*>(from), bytes}));
}

int spillway_pagecache_update(spillway_pagecache_session* session, spillway_pagecache_file* file,
                              uint64_t offset, size_t bytes, spillway_pagecache_change change,
                              void* context) {
  using namespace capi::pages;
  if (const int status = check_write(session, file, nullptr, 0); status != SPILLWAY_PAGECACHE_OK)
    return status;
  if (change == nullptr) return refuse_invalid(session, "page cache: the callback is null");
  const auto call = [&](std::span<std::byte> piece, uint64_t at) {
    change(context, piece.data(), piece.size(), at);
  };
  const Turn turn(*session);
  return answer(*session, session->session.update(*file->file, offset, bytes, call));
}

int spillway_pagecache_view_get(spillway_pagecache_session* session, spillway_pagecache_file* file,
                                uint64_t offset, size_t bytes, spillway_pagecache_view* view) {
  using namespace capi::pages;
  if (view == nullptr || view->struct_bytes < kMinViewBytes)
    return refuse_invalid(session,
                          "page cache: the view is null, or its struct_bytes is not the struct's sizeof");
  view->data = nullptr;
  view->holder = nullptr;
  view->data_bytes = 0;
  if (const int status = check(session, file, nullptr, 0); status != SPILLWAY_PAGECACHE_OK) return status;
  const Turn turn(*session);
  return answer(*session, get_view(*session, *file, offset, bytes, *view));
}

void spillway_pagecache_view_release(spillway_pagecache_view* view) {
  using namespace capi::pages;
  if (view == nullptr || view->holder == nullptr) return;
  Holder& holder = *static_cast<Holder*>(view->holder);
  spillway_pagecache_session& session = *holder.session;
  const Turn turn(session);
  holder.view.reset();
  --session.view_counts[holder.file_index];
  --session.view_count;
  give_back(session, holder);
  view->data = nullptr;
  view->holder = nullptr;
}

int spillway_pagecache_sync(spillway_pagecache_session* session, spillway_pagecache_file* file) {
  using namespace capi::pages;
  if (const int status = check(session, file, nullptr, 0); status != SPILLWAY_PAGECACHE_OK) return status;
  const Turn turn(*session);
  return answer(*session, session->session.sync(*file->file));
}

int spillway_pagecache_resize(spillway_pagecache_session* session, uint64_t memory_bytes) {
  using namespace capi::pages;
  if (session == nullptr) return refuse_invalid(nullptr, "page cache: session is null");
  const Turn turn(*session);
  return answer(*session, session->session.resize(memory_bytes));
}

}  // extern "C"
