// What a path or a device string would be as storage (info.h).
#include <algorithm>
#include <span>
#include <string_view>

#include "base/ids.h"
#include "command.h"
#include "info.h"
#include "kv/media/format.h"
#include "problems.h"
#include "storage/opening/open.h"
#include "storage/piece_io.h"

namespace tools {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const base::Error& error) { throw WrongInput(printable(error.message)); }

// Is there a key-value store on the device, which may be an encrypting one?
bool holds_store(std::string_view text) {
  auto device = storage::open_device(text, {.store = true, .read_only = true});
  if (!device) return false;
  bool holds = false;
  if (auto queue = (*device)->open_queue(1)) {
    for (const uint64_t offset : kv::kSuperblockOffsets) {
      alignas(base::kOsPageBytes) std::byte block[kv::kSuperblockBytes];
      if (offset + sizeof block > (*device)->capacity_bytes()) continue;
      storage::PieceIo io(storage::Operation::kRead, offset, block, sizeof block);
      (*queue)->run(io);
      if (!io.whole()) continue;
      // A superblock that is damaged, or of a newer format, is a store's, too.
      const auto read = kv::read_superblock(block);
      holds = holds || read || read.error().number != EINVAL;
    }
    (*device)->close_queue(*queue);
  }
  (*device)->close();
  return holds;
}

// Opens one path of a device as storage; if content forbids it, to look only.
base::Expected<storage::Medium> open_to_look(std::string_view path, std::string_view device,
                                             Problems& problems) {
  auto medium = storage::open_medium(path, {.overwrite = false, .spill = true});
  if (medium || medium.error().number != EEXIST) return medium;
  // Nobody is to be told how to lose a store.
  if (holds_store(device))
    problems.add(path,
                 ": this is a key-value store, where nothing can be spilled; spillway kv stats tells of it");
  else
    problems.add(medium.error().message);
  return storage::open_medium(path, {});
}

Json describe_medium(std::string_view path, std::string_view device, Problems& problems) {
  auto medium = open_to_look(path, device, problems);
  if (!medium) refuse(medium.error());
  storage::close_medium(*medium);
  Json answers = {{"path", path},
                  {"is", medium->label},
                  {"block_bytes", medium->block_bytes},
                  {"capacity_bytes", medium->capacity_bytes},
                  {"direct_io", medium->is_direct},
                  {"discards", medium->discards},
                  {"can_be_polled", medium->polls},
                  {"is_memory", medium->is_memory}};
  if (medium->takes_commands()) answers["largest_command_bytes"] = medium->nvme.command_bytes;
  return answers;
}

}  // namespace

Json device_info(std::string_view text) {
  Problems problems;
  Json answers;
  auto tree = storage::parse_device_string(text);
  if (!tree) refuse(tree.error());
  const std::span nodes = std::span(tree->nodes).first(tree->node_count);
  const auto has = [&](storage::Scheme scheme) {
    return std::ranges::find(nodes, scheme, &storage::DeviceNode::scheme) != nodes.end();
  };
  if (has(storage::Scheme::kTrace))
    throw WrongInput("info would overwrite the trace; give the device inside trace:...:[DEVICE]");
  const bool changes_by_opening = has(storage::Scheme::kPmem);
  Json media = Json::object();
  for (const storage::DeviceNode& node : nodes)
    if (node.names_medium())
      media[concat("medium_", media.size() + 1)] =
          describe_medium(node.path, changes_by_opening ? node.path : text, problems);
  if (!changes_by_opening) {
    auto device = storage::open_device(text, {.overwrite = false, .spill = true});
    if (!device && device.error().number != EEXIST) refuse(device.error());
    // The problem of a path has been named already.
    if (!device && problems.lines().empty()) problems.add(device.error().message);
    if (device) {
      answers["device"] = {{"is", (*device)->name()},
                           {"block_bytes", (*device)->block_bytes()},
                           {"capacity_bytes", (*device)->capacity_bytes()},
                           {"discards", (*device)->discards()}};
      (*device)->close();
    }
  }
  answers.update(media);
  answers["problems"] = problems.lines();
  return answers;
}

}  // namespace tools
