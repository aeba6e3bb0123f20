// spillway kv make: an empty store, on a device or in a file that it makes if there is none.
//
// 1 what is refused leaves everything as it was, the file's existence and size included
// 2 content is asked for in files as a whole, and on devices at both ends (storage/content.h)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/ids.h"
#include "kv.h"
#include "kv/media/channel.h"
#include "storage/content.h"
#include "storage/device_string.h"
#include "sys/files.h"

namespace tools {
namespace {

constexpr const char* kContent = "; pass --overwrite to lose all of it";

// The files and devices that a device string names.
std::vector<std::string> paths_of(std::string_view device) {
  const storage::DeviceTree tree = value_of(storage::parse_device_string(device));
  std::vector<std::string> paths;
  for (const storage::DeviceNode& node : std::span(tree.nodes).first(tree.node_count)) {
    using enum storage::Scheme;
    if (node.scheme == kFile || node.scheme == kUring || node.scheme == kAio || node.scheme == kPmem)
      paths.emplace_back(node.path);
  }
  return paths;
}

// A file whose size is being chosen; back to what it was unless keep() is called.
class File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {
    struct stat facts = {};
    is_there_ = stat(path_.c_str(), &facts) == 0;
    is_missing_ = !is_there_ && errno == ENOENT;
    is_file_ = is_there_ && S_ISREG(facts.st_mode);
    size_bytes_ = is_file_ ? static_cast<uint64_t>(facts.st_size) : 0;
  }
  ~File() {
    if (was_made_) unlink(path_.c_str());
    if (was_resized_) static_cast<void>(truncate(path_.c_str(), static_cast<off_t>(size_bytes_)));
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool needs_size() const { return is_missing_ ? !path_.starts_with("/dev/") : is_file_ && size_bytes_ == 0; }
  bool is_smaller_than(uint64_t bytes) const { return is_file_ && size_bytes_ < bytes; }

  void set_size(const KvLine& line, uint64_t bytes) {
    if (bytes > sys::file_size_limit())
      line.refuse(concat("--capacity: files may be no larger than ", readable_bytes(sys::file_size_limit()),
                         " in this process; raise ulimit -f"));
    const int descriptor =
        open(path_.c_str(), O_WRONLY | O_CLOEXEC | (is_there_ ? 0 : O_CREAT | O_EXCL), 0600);
    if (descriptor < 0 && errno == EEXIST)
      line.refuse(concat("cannot make '", printable(path_),
                         "': it is a link to a file that is not there; remove the link, or name that file"));
    if (descriptor < 0) refuse(line, "");
    (is_there_ ? was_resized_ : was_made_) = true;
    const bool done = ftruncate(descriptor, static_cast<off_t>(bytes)) == 0;
    const int error = errno;
    close(descriptor);
    errno = error;
    if (!done) refuse(line, " as large as that");
  }
  void keep() { was_made_ = was_resized_ = false; }

 private:
  [[noreturn]] void refuse(const KvLine& line, std::string_view how) const {
    line.refuse(concat("cannot make '", printable(path_), '\'', how, ": ", std::strerror(errno)));
  }

  std::string path_;
  uint64_t size_bytes_ = 0;
  bool is_there_ = false;
  bool is_missing_ = false;
  bool is_file_ = false;
  bool was_made_ = false;
  bool was_resized_ = false;
};

kv::Geometry geometry_of(storage::Device& device) {
  kv::Channel channel;
  value_of(channel.open_for_threads(device));
  alignas(4096) std::byte block[kv::kSuperblockBytes] = {};
  const int error = channel.read(kv::kSuperblockOffsets[0], block);
  channel.close();
  if (error != 0)
    throw_error(
        base::Error::of(error, "kv make: cannot read ", device.name(), ": ", base::error_name(error)));
  return value_of(kv::read_superblock(block, device.capacity_bytes())).geometry;
}

kv::MakeOptions make_options(const KvLine& line) {
  kv::MakeOptions options;
  constexpr uint64_t kMost = uint64_t{1} << 31;
  if (line.has("--grain")) options.grain_bytes = static_cast<uint32_t>(std::min(line.size("--grain"), kMost));
  if (line.has("--segment")) options.segment_bytes = line.size("--segment");
  if (line.has("--spare")) options.spare_percent = static_cast<uint32_t>(line.number("--spare", 0, 90));
  if (line.has("--capacity")) {
    options.capacity_bytes = base::round_down(line.size("--capacity"), base::kOsPageBytes);
    if (options.capacity_bytes == 0) line.refuse("--capacity: that is no room for a store; see docs/kv.md");
  }
  if (!kv::may_be_grain_bytes(options.grain_bytes)) line.refuse("--grain: give 512, 1K, 2K or 4K");
  if (line.has("--segment") && options.segment_bytes == 0)
    line.refuse("--segment: 0 bytes; give a power of two from 1M to 1G");
  return options;
}

}  // namespace

int kv_make(const KvLine& line) {
  const kv::MakeOptions options = make_options(line);
  const bool overwrite = line.has("--overwrite");
  const std::vector<std::string> paths = paths_of(line.words[0]);
  if (!overwrite)
    for (const std::string& path : paths)
      if (value_of(storage::path_has_content(path)))
        line.refuse(concat('\'', printable(path), "' has content", kContent));
  // A store in several files is as large as they are.
  std::optional<File> file;
  if (paths.size() == 1) {
    file.emplace(paths[0]);
    if (file->needs_size() && options.capacity_bytes == 0)
      line.refuse(
          concat('\'', printable(paths[0]), "' has no size yet; say how large it is to be: --capacity SIZE"));
    if (file->needs_size() || file->is_smaller_than(options.capacity_bytes))
      file->set_size(line, options.capacity_bytes);
  }
  KvDevice device(line.words[0]);
  if (!overwrite && value_of(storage::device_has_content(*device)))
    line.refuse(concat(printable(device->name()), " has content", kContent));
  value_of(kv::Store::make(*device, options));
  if (file) file->keep();
  const kv::Geometry geometry = geometry_of(*device);
  std::printf("made a store of %lu segments of %s; values of more than %s are kept in pieces\n",
              geometry.segment_count, readable_bytes(geometry.segment_bytes).c_str(),
              readable_bytes(geometry.value_bytes_max()).c_str());
  return 0;
}

}  // namespace tools
