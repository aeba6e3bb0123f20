#include "capi/device.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "kv/media/format.h"
#include "storage/open.h"
#include "storage/piece_io.h"

namespace capi {
namespace {

using storage::Scheme;

// The files among what a device string names.
struct Files {
  size_t count = 0;
  size_t missing_count = 0;
  uint64_t last_bytes = 0;  // size of the last one
};

bool names_path(Scheme scheme) {
  return scheme == Scheme::kFile || scheme == Scheme::kUring || scheme == Scheme::kAio ||
         scheme == Scheme::kPmem;
}

base::Expected<Files> look_at_files(std::string_view text) {
  auto tree = storage::parse_device_string(text);
  if (!tree) return std::unexpected(tree.error());
  Files files;
  for (size_t i = 0; i < tree->node_count; ++i) {
    const storage::DeviceNode& node = tree->nodes[i];
    if (!names_path(node.scheme)) continue;
    base::Text<storage::kMaxPathBytes + 1> path;
    path << node.path;
    struct stat facts = {};
    if (stat(path.c_str(), &facts) != 0) {
      if (errno != ENOENT) continue;  // opening it says what is wrong
      ++files.missing_count;
      ++files.count;
    } else if (S_ISREG(facts.st_mode)) {
      ++files.count;
      files.last_bytes = static_cast<uint64_t>(facts.st_size);
    }
  }
  return files;
}

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

base::Expected<bool> is_blank(storage::Device& device) {
  auto queue = device.open_queue(1);
  if (!queue) return std::unexpected(queue.error());
  alignas(4096) std::byte block[kv::kSuperblockBytes];
  bool blank = true;
  int error = 0;
  for (uint64_t offset : kv::kSuperblockOffsets) {
    if (offset + sizeof block > device.capacity_bytes()) continue;
    memset(block, 0, sizeof block);
    storage::PieceIo io(storage::Operation::kRead, offset, block, sizeof block);
    (*queue)->run(io);
    if (error == 0) error = io.error;
    for (const std::byte byte : block) blank = blank && byte == std::byte{0};
  }
  device.close_queue(*queue);
  if (error != 0)
    return base::failure(error, "store: cannot read ", device.name(), ": ", base::error_name(error));
  return blank;
}

}  // namespace

base::Expected<storage::Device*> open_device(std::string_view text, bool read_only) {
  auto files = look_at_files(text);
  if (!files) return std::unexpected(files.error());
  if (files->missing_count > 0) return base::failure(ENOENT, "store: there is no ", text, "; make it first");
  return open_locked(text, read_only);
}

base::Expected<storage::Device*> make_device(std::string_view text, bool overwrite,
                                             uint64_t& capacity_bytes) {
  auto files = look_at_files(text);
  if (!files) return std::unexpected(files.error());
  if (capacity_bytes == 0 && files->count > 0) {
    // A file grows as it is written: its device is as large as any file may be.
    if (files->count > 1 || files->last_bytes == 0)
      return base::failure(EINVAL, "store: ", text, " is a file, which may grow; set capacity_bytes");
    capacity_bytes = files->last_bytes;
  }
  auto device = open_locked(text);
  if (!device || overwrite) return device;
  auto blank = is_blank(**device);
  if (blank && *blank) return device;
  (*device)->close();
  if (!blank) return std::unexpected(blank.error());
  return base::failure(EEXIST, "store: ", text, " holds data, maybe a store; set overwrite to lose it");
}

}  // namespace capi
