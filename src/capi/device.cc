#include "capi/device.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <span>

#include "kv/media/format.h"
#include "storage/content.h"
#include "storage/open.h"

namespace capi {
namespace {

using storage::Scheme;

bool names_path(Scheme scheme) {
  return scheme == Scheme::kFile || scheme == Scheme::kUring || scheme == Scheme::kAio ||
         scheme == Scheme::kPmem;
}

}  // namespace

base::Expected<Files> look_at_files(std::string_view text) {
  auto tree = storage::parse_device_string(text);
  if (!tree) return std::unexpected(tree.error());
  Files files;
  for (size_t i = 0; i < tree->node_count; ++i) {
    const storage::DeviceNode& node = tree->nodes[i];
    if (!names_path(node.scheme)) continue;
    Files::Path& path = files.paths[files.path_count++];
    path.text = node.path;
    base::Text<storage::kMaxPathBytes + 1> name;
    name << node.path;
    struct stat facts = {};
    if (stat(name.c_str(), &facts) != 0) {
      if (errno != ENOENT) continue;  // opening it says what is wrong
      path.is_missing = true;
      ++files.missing_count;
      ++files.count;
    } else if (S_ISREG(facts.st_mode)) {
      path.is_file = true;
      path.bytes = static_cast<uint64_t>(facts.st_size);
      ++files.count;
      files.last_bytes = path.bytes;
    }
  }
  return files;
}

void leave_as_before(const Files& files) {
  for (const Files::Path& path : std::span(files.paths).first(files.path_count)) {
    if (!path.is_missing && !path.is_file) continue;
    base::Text<storage::kMaxPathBytes + 1> name;
    name << path.text;
    struct stat facts = {};
    if (stat(name.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    if (path.is_missing)
      static_cast<void>(unlink(name.c_str()));
    else if (static_cast<uint64_t>(facts.st_size) > path.bytes)
      static_cast<void>(truncate(name.c_str(), static_cast<off_t>(path.bytes)));
  }
}

namespace {

base::Expected<storage::Device*> try_open_locked(std::string_view text, bool read_only) {
  auto device = storage::open_device(text, {.read_only = read_only});
  if (!device) return device;
  const int descriptor = (*device)->whereabouts().descriptor;
  if (descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return device;
  (*device)->close();
  return base::failure(EBUSY, "store: ", text,
                       " is open already, here or in another process; close it there");
}

// What the rings of a process that was killed had open is closed some milliseconds after its end.
base::Expected<storage::Device*> open_locked(std::string_view text, bool read_only = false) {
  constexpr int kTriesMax = 50;
  const timespec pause = {.tv_sec = 0, .tv_nsec = 10'000'000};
  auto device = try_open_locked(text, read_only);
  for (int tries = 1; tries < kTriesMax && !device && device.error().number == EBUSY; ++tries) {
    nanosleep(&pause, nullptr);
    device = try_open_locked(text, read_only);
  }
  return device;
}

// Once it is open, and so nobody else's.
base::Expected<bool> has_content(const Files& files, storage::Device& device) {
  for (const Files::Path& path : std::span(files.paths).first(files.path_count)) {
    auto content = storage::path_has_content(path.text);
    if (!content || *content) return content;
  }
  return storage::device_has_content(device);
}

}  // namespace

base::Expected<storage::Device*> open_device(std::string_view text, bool read_only) {
  auto files = look_at_files(text);
  if (!files) return std::unexpected(files.error());
  if (files->missing_count > 0) return base::failure(ENOENT, "store: there is no ", text, "; make it first");
  auto device = open_locked(text, read_only);
  // To its device a file has no end, and reading past it would be the medium's failure.
  if (!device || files->path_count != 1 || files->count != 1 || files->last_bytes >= kv::kSegmentsOffset)
    return device;
  (*device)->close();
  return base::failure(EINVAL, "store: ", text, " holds no store: it has ", files->last_bytes, " bytes");
}

base::Expected<storage::Device*> make_device(std::string_view text, const Files& files, bool overwrite,
                                             uint64_t& capacity_bytes) {
  if (capacity_bytes == 0 && files.count > 0) {
    // A file grows as it is written: its device is as large as any file may be.
    if (files.count > 1 || files.last_bytes == 0)
      return base::failure(EINVAL, "store: ", text, " is a file, which may grow; set capacity_bytes");
    capacity_bytes = files.last_bytes;
  }
  auto device = open_locked(text);
  if (!device) {
    // Of several some were made. Whoever has them has made them in the meantime.
    if (device.error().number != EBUSY) leave_as_before(files);
    return device;
  }
  if (overwrite) return device;
  auto content = has_content(files, **device);
  if (content && !*content) return device;
  leave_as_before(files);
  (*device)->close();
  if (!content) return std::unexpected(content.error());
  return base::failure(EEXIST, "store: ", text, " holds data, maybe a store; set overwrite to lose it");
}

}  // namespace capi
