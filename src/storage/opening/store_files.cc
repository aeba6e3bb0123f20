#include "storage/opening/store_files.h"

#include <fcntl.h>

#include "storage/opening/content.h"
#include "sys/files.h"

namespace storage {
namespace {

constexpr int kTries = 8;  // for a file that comes and goes

}  // namespace

StoreFiles::~StoreFiles() {
  for (const File& file : std::span(files_).first(is_kept_ ? 0 : count_)) {
    const Path path(tree_.nodes[file.node].path);
    struct statx facts;
    if (sys::failed(describe(file.opened.get(), "", facts))) continue;
    if (!file.was_made && facts.stx_size > file.bytes)
      sys::syscall(SYS_ftruncate, file.opened.get(), file.bytes);
    // Another file that was moved there meanwhile is not ours to remove.
    if (file.was_made && is_at(path, facts)) sys::syscall(SYS_unlinkat, AT_FDCWD, path.c_str(), 0);
  }
  for (const File& file : std::span(files_).first(count_)) give_up_lock(file.opened.get());
}

base::Expected<void> StoreFiles::open(std::string_view text) {
  auto tree = parse_device_string(text);
  if (!tree) return std::unexpected(tree.error());
  tree_ = *tree;
  for (size_t i = 0; i < tree_.node_count; ++i)
    if (tree_.nodes[i].names_medium())
      if (auto opened = open_node(i); !opened) return opened;
  return {};
}

base::Expected<void> StoreFiles::open_node(size_t node) {
  const Path path(tree_.nodes[node].path);
  for (int tries = 0; tries < kTries; ++tries) {
    struct statx facts;
    const long found = describe(AT_FDCWD, path.c_str(), facts);
    const bool is_missing = found == -ENOENT;
    if (sys::failed(found) && !is_missing) return std::unexpected(open_error(path, found));
    // Everything else is left to open_device, which has the message for it.
    if (is_missing ? is_in_dev(tree_.nodes[node].path) : (facts.stx_mode & S_IFMT) != S_IFREG) return {};
    Opened opened(open_path(path, is_missing ? O_CREAT | O_EXCL : O_NONBLOCK));
    if (is_missing && opened.get() == -EEXIST && is_link(path)) return std::unexpected(broken_link(path));
    if (opened.get() == (is_missing ? -EEXIST : -ENOENT)) continue;
    if (sys::failed(opened.get())) return std::unexpected(open_error(path, opened.get()));
    if (auto locked = lock_for_store(path, opened.get()); !locked) {
      // Whoever has the lock makes a store there. If nobody can have it, nobody else uses the file.
      const bool is_others = locked.error().number == EBUSY;
      if (is_missing && !is_others && !sys::failed(describe(opened.get(), "", facts)) && is_at(path, facts))
        sys::syscall(SYS_unlinkat, AT_FDCWD, path.c_str(), 0);
      return std::unexpected(locked.error());
    }
    if (const long result = describe(opened.get(), "", facts); sys::failed(result))
      return std::unexpected(open_error(path, result));
    // Meanwhile the file's creator may have removed it again, or somebody may have made a store in the file that this call has created.
    if (!is_at(path, facts)) continue;
    files_[count_].opened = std::move(opened);
    files_[count_].node = node;
    files_[count_].bytes = facts.stx_size;
    files_[count_++].was_made = is_missing && facts.stx_size == 0;
    if (const long result = is_missing ? sys::sync_name(path.text.view()) : 0; sys::failed(result))
      return base::failure(static_cast<int>(-result), path, ": its name cannot be made durable: ",
                           base::error_name(static_cast<int>(-result)));
    return {};
  }
  return base::failure(EBUSY, path, ": it keeps changing; name another place");
}

bool StoreFiles::needs_capacity() const {
  return std::ranges::any_of(std::span(files_).first(count_),
                             [](const File& file) { return file.bytes == 0; });
}

base::Expected<std::string_view> StoreFiles::path_with_content() const {
  for (const DeviceNode& node : std::span(tree_.nodes).first(tree_.node_count)) {
    if (!node.names_medium()) continue;
    const auto content = path_has_content(node.path);
    if (!content) return std::unexpected(content.error());
    if (*content) return node.path;
  }
  return "";
}

base::Expected<void> StoreFiles::set_sizes(uint64_t capacity_bytes) {
  // So that nothing below overflows.
  constexpr uint64_t kMax = uint64_t{1} << 62;
  if (capacity_bytes > kMax)
    return base::failure(EFBIG, "storage: ", capacity_bytes, " bytes are more than any file may have");
  return set_size(0, capacity_bytes);
}

// Makes the node's files large enough for a device of `bytes`.
base::Expected<void> StoreFiles::set_size(size_t index, uint64_t bytes) {
  const DeviceNode& node = tree_.nodes[index];
  if (node.scheme == Scheme::kStripe)
    bytes = base::round_up((bytes + node.child_count - 1) / node.child_count, node.unit_bytes);
  for (const uint8_t child : std::span(node.children).first(node.child_count))
    if (auto set = set_size(child, bytes); !set) return set;
  const auto files = std::span(files_).first(count_);
  const auto file = std::ranges::find(files, index, &File::node);
  bytes = base::round_up(bytes, base::kOsPageBytes);
  if (file == files.end() || file->bytes >= bytes) return {};
  const Path path(node.path);
  if (bytes > sys::file_size_limit())
    return base::failure(EFBIG, path, ": files may be no larger than ", base::Bytes{sys::file_size_limit()},
                         " in this process; raise ulimit -f");
  const long result = sys::syscall(SYS_ftruncate, file->opened.get(), bytes);
  if (sys::failed(result))
    return base::failure(static_cast<int>(-result), path, ": it cannot be made as large as that: ",
                         base::error_name(static_cast<int>(-result)));
  return {};
}

}  // namespace storage
