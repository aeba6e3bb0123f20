#include "storage/opening/open_nvme.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/ids.h"
#include "storage/piece_io.h"
#include "sys/files.h"

namespace storage {
namespace {

using base::failure;

// The folder of a character device in /sys.
struct FolderOf {
  const struct statx& facts;
};
base::TextRef& operator<<(base::TextRef& to, const FolderOf& folder) {
  return to << "/sys/dev/char/" << folder.facts.stx_rdev_major << ':' << folder.facts.stx_rdev_minor;
}

// A block device that is held open exclusively.
struct Block {
  Opened descriptor{-1};
  uint32_t major = 0;
  uint32_t minor = 0;
  base::Text<40> path;
};

// Opens the block device of the namespace to which a character device belongs. Their folders in /sys are siblings: "nvme0n1" and "ng0n1".
base::Expected<void> open_block_of(const Path& path, const struct statx& facts, Block& block) {
  char text[256];
  base::Text<64> folder;
  folder << FolderOf{facts};
  std::string_view name = link_name(folder.c_str(), text);
  name.remove_prefix(name.starts_with("ng") ? 2 : name.size());
  base::Text<128> numbers_path;
  numbers_path << folder.view() << "/../nvme" << name << "/dev";
  char numbers[32];
  if (sys::read_small_file(numbers_path.c_str(), numbers) <= 0)
    return failure(ENODEV, path,
                   ": there is no block device of its namespace, by which others are kept away");

  block.path << "/dev/nvme" << name;
  const long result =
      sys::syscall(SYS_openat, AT_FDCWD, block.path.c_str(), O_RDONLY | O_EXCL | O_DIRECT | O_CLOEXEC);
  const auto refusal = [&](int number, const char* advice) {
    return failure(number, path, ": its block device ", block.path.view(), ": ", base::error_name(number),
                   advice);
  };
  if (result == -EBUSY) return refusal(EBUSY, "; it is mounted or in use, name another device");
  if (sys::failed(result))
    return refusal(static_cast<int>(-result), "; others are kept away by it, let it be opened");
  block.descriptor = Opened(result);
  struct statx block_facts;
  if (const long described = describe(result, "", block_facts); sys::failed(described))
    return std::unexpected(open_error(path, described));
  block.major = block_facts.stx_rdev_major;
  block.minor = block_facts.stx_rdev_minor;
  base::Text<32> wanted;
  wanted << block.major << ':' << block.minor << '\n';
  if ((block_facts.stx_mode & S_IFMT) != S_IFBLK || wanted.view() != numbers)
    return refusal(ENODEV, "; this is another one");
  return {};
}

// The most that the kernel takes in one command, however the memory is aligned.
uint64_t command_bytes(const Block& block) {
  const uint64_t most_bytes = queue_number(block.major, block.minor, "max_hw_sectors_kb") << 10;
  const uint64_t most_pages = queue_number(block.major, block.minor, "max_segments");
  // Memory that begins inside an OS page spans one more.
  const uint64_t whole_pages = most_pages > 1 ? most_pages - 1 : 1;
  return std::max(base::kOsPageBytes, base::round_down(std::min(most_bytes, whole_pages * base::kOsPageBytes),
                                                       base::kOsPageBytes));
}

}  // namespace

bool is_nvme(const struct statx& facts) {
  base::Text<64> link;
  link << FolderOf{facts} << "/subsystem";
  char text[256];
  return link_name(link.c_str(), text) == "nvme-generic";
}

base::Expected<Medium> open_nvme(const Path& path, const OpenParameters& parameters) {
  const long result = open_path(path, 0);
  if (sys::failed(result)) return std::unexpected(open_error(path, result));
  Opened opened(result);
  struct statx facts;
  if (const long described = describe(result, "", facts); sys::failed(described))
    return std::unexpected(open_error(path, described));
  Block block;
  if (auto found = open_block_of(path, facts, block); !found) return std::unexpected(found.error());
  auto space = identify_nvme(result);
  if (!space) return failure(space.error().number, path, ": ", space.error().message);

  Medium medium;
  medium.nvme = *space;
  medium.nvme.command_bytes = command_bytes(block);
  medium.block_bytes = space->block_bytes;
  medium.capacity_bytes = base::round_down(space->block_count * space->block_bytes, base::kOsPageBytes);
  medium.is_direct = true;
  medium.discards = queue_number(block.major, block.minor, "discard_max_bytes") != 0;
  const auto read = [&](char* to, uint64_t bytes, uint64_t offset) -> int64_t {
    PieceIo io(Operation::kRead, offset, to, bytes);
    const long status = run_nvme_command(static_cast<int>(opened.get()), medium.nvme, io);
    if (status > 0) return -EIO;
    return status < 0 ? status : static_cast<int64_t>(nvme_command(medium.nvme, io).transferred_bytes);
  };
  if (auto checked = check_content(path, medium.capacity_bytes, parameters, read); !checked)
    return std::unexpected(checked.error());

  base::TextRef(medium.label, sizeof medium.label) << path.shown.view() << " (NVMe namespace " << space->id
                                                   << ", passthrough beside " << block.path.view() << ')';
  auto owned = opened.own();
  if (!owned) return std::unexpected(owned.error());
  medium.descriptor = *owned;
  owned = block.descriptor.own();
  if (!owned) {
    close_medium(medium);
    return std::unexpected(owned.error());
  }
  medium.block_descriptor = *owned;
  return medium;
}

}  // namespace storage
