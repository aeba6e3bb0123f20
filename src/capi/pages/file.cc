// Files: how they are added to a cache, by path, device string or descriptor, and how they leave it.
#include <fcntl.h>

#include "capi/pages/objects.h"
#include "storage/opening/open.h"
#include "storage/opening/store_files.h"

namespace capi::pages {
namespace {

// Sets the file's size before it is opened. A failure leaves the file as it was.
base::Expected<void> set_sizes(std::string_view text, uint64_t bytes, storage::OpenParameters parameters) {
  storage::StoreFiles files;
  if (auto locked = files.open(text); !locked) return std::unexpected(locked.error());
  if (auto set = files.set_sizes(bytes); !set) return std::unexpected(set.error());
  parameters.is_locked = true;
  auto device = storage::open_device(text, parameters);
  if (!device) return std::unexpected(device.error());
  (*device)->close();
  files.keep();
  return {};
}

base::Expected<storage::Device*> open_device(std::string_view text,
                                             const spillway_pagecache_file_options& options,
                                             uint64_t page_bytes) {
  if (options.checksums > 1)
    return base::failure(EINVAL, "page cache: checksums is ", options.checksums, "; give 0 or 1");
  const bool is_read_only = options.read_only != 0;
  storage::OpenParameters parameters = {.store = true, .whole = true, .read_only = is_read_only};
  if (is_read_only) {
    if (options.bytes != 0)
      return base::failure(EINVAL, "page cache: ", text, " is for reading only, and cannot be given ",
                           options.bytes, " bytes");
    parameters.is_locked = true;  // readers do not disturb each other, so none takes the lock
    return storage::open_device(text, parameters);
  }
  if (options.bytes != 0) {
    const uint64_t bytes =
        options.checksums == 0 ? options.bytes : pagecache::File::device_bytes_for(options.bytes, page_bytes);
    if (auto set = set_sizes(text, bytes, parameters); !set) return std::unexpected(set.error());
  }
  return storage::open_device(text, parameters);
}

base::Expected<spillway_pagecache_file*> add(spillway_pagecache& cache, std::string_view text,
                                             const spillway_pagecache_file_options& options) {
  auto device = open_device(text, options, cache.cache->page_bytes());
  if (!device) return std::unexpected(device.error());
  base::Expected<spillway_pagecache_file*> added = make<spillway_pagecache_file>();
  if (*added == nullptr) added = base::failure(ENOMEM, "page cache: no memory for a file");
  if (added) {
    if (auto file = cache.cache->add(**device, {.checksums = options.checksums != 0}); file) {
      (*added)->cache = &cache;
      (*added)->device = *device;
      (*added)->file = *file;
      (*added)->is_read_only = options.read_only != 0;
      sys::LockGuard scope(cache.lock);
      cache.files.add(**added);
      return added;
    } else {
      destroy(*added);
      added = std::unexpected(file.error());
    }
  }
  (*device)->close();
  return added;
}

int answer(base::Expected<spillway_pagecache_file*> added, spillway_pagecache_file** file) {
  if (!added) return refuse(nullptr, added.error());
  *file = *added;
  return SPILLWAY_PAGECACHE_OK;
}

// The rest REQUIRES the cache's lock.

// Requests that are under way.
uint32_t request_count(spillway_pagecache& cache, const spillway_pagecache_file& file) {
  uint32_t count = 0;
  for (auto* queue = cache.queues.first(); queue != nullptr; queue = queue->next)
    for (uint32_t i = 0; i < queue->slot_count; ++i)
      count += queue->slots[i].used_file.load(std::memory_order_relaxed) == &file;
  return count;
}

// Takes the file from all sessions, except those that have views of it; returns how many views these have.
size_t leave_by_all(spillway_pagecache& cache, const spillway_pagecache_file& file) {
  const size_t index = file.file->number() - 1;
  size_t count = 0;
  for (auto* session = cache.sessions.first(); session != nullptr; session = session->next) {
    session->gate.shut();
    const size_t views = index < session->view_counts.size() ? session->view_counts[index] : 0;
    if (views == 0) session->session.leave(*file.file);
    session->gate.open();
    count += views;
  }
  return count;
}

// The file has been synced, so no session writes its pages back to get their frames, and none comes to use it again.
base::Expected<void> remove(spillway_pagecache_session& session, spillway_pagecache_file& file) {
  spillway_pagecache& cache = *file.cache;
  if (const uint32_t count = request_count(cache, file); count > 0)
    return base::failure(EBUSY, "page cache: ", count, " requests for ", file.device->name(),
                         " have not ended; poll their queues first");
  if (cache.servers != nullptr) cache.servers->leave(*file.file);
  base::Expected<void> removed;
  if (const size_t count = leave_by_all(cache, file); count > 0) {
    removed = base::failure(EBUSY, "page cache: ", count, " views of ", file.device->name(),
                            " are held; release them first");
  } else {
    session.gate.enter();
    removed = session.session.remove(*file.file);
    session.gate.leave();
  }
  if (removed)
    cache.files.remove(file);
  else
    pagecache::Servers::take_up(*file.file);
  return removed;
}

}  // namespace
}  // namespace capi::pages

extern "C" {

int spillway_pagecache_add(spillway_pagecache* cache, const char* device,
                           const spillway_pagecache_file_options* options, spillway_pagecache_file** file) {
  using namespace capi::pages;
  if (file != nullptr) *file = nullptr;
  if (cache == nullptr || device == nullptr || file == nullptr)
    return refuse_invalid(nullptr, "page cache: the cache, the device or the place for a file is null");
  const auto given = capi::read_struct(options, "spillway_pagecache_file_options");
  if (!given) return refuse(nullptr, given.error());
  return answer(add(*cache, device, *given), file);
}

int spillway_pagecache_add_descriptor(spillway_pagecache* cache, int descriptor,
                                      const spillway_pagecache_file_options* options,
                                      spillway_pagecache_file** file) {
  using namespace capi::pages;
  if (file != nullptr) *file = nullptr;
  if (cache == nullptr || file == nullptr)
    return refuse_invalid(nullptr, "page cache: the cache or the place for a file is null");
  auto given = capi::read_struct(options, "spillway_pagecache_file_options");
  if (!given) return refuse(nullptr, given.error());
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0) return refuse_invalid(nullptr, "page cache: descriptor ", descriptor, " is not open");
  if ((flags & O_ACCMODE) == O_WRONLY || (flags & O_PATH) != 0)
    return refuse_invalid(nullptr, "page cache: descriptor ", descriptor,
                          " cannot be read from; open it for reading and writing");
  if ((flags & O_ACCMODE) == O_RDONLY) given->read_only = 1;
  base::Text<64> path;
  path << "/proc/self/fd/" << descriptor;
  return answer(add(*cache, path.view(), *given), file);
}

uint64_t spillway_pagecache_file_bytes(const spillway_pagecache_file* file) {
  return file != nullptr ? file->file->bytes() : 0;
}

int spillway_pagecache_remove(spillway_pagecache_session* session, spillway_pagecache_file* file) {
  using namespace capi::pages;
  if (file == nullptr) return SPILLWAY_PAGECACHE_OK;
  // Others go on working while this syncs.
  if (const int synced = spillway_pagecache_sync(session, file); synced != SPILLWAY_PAGECACHE_OK)
    return synced;
  {
    sys::LockGuard scope(file->cache->lock);
    if (auto removed = remove(*session, *file); !removed) return refuse(session, removed.error());
  }
  file->device->close();
  capi::destroy(file);
  return SPILLWAY_PAGECACHE_OK;
}

}  // extern "C"
