#include "storage/open.h"

#include "base/check.h"
#include "storage/fault.h"
#include "storage/memory.h"

namespace storage {
namespace {

base::Expected<Device*> open_innermost(const DeviceNode& node, const OpenParameters& parameters) {
  if (node.scheme == Scheme::kMemory) return make_memory_device(node.capacity_bytes);
  auto medium = open_medium(node.path, parameters);
  if (!medium) return std::unexpected(medium.error());
  if (node.scheme == Scheme::kFile) return make_file_device(*medium, node.helper_count, node.depth);
  // A ring would hand each Io to a kernel worker, which does nothing but copy.
  if (medium->is_memory) return make_file_device(*medium, 0, node.depth);
  if (node.scheme == Scheme::kAio) return make_aio_device(*medium, node.depth, node.helper_count);
  CHECK(node.scheme == Scheme::kUring);
  return make_uring_device(*medium, node.depth, node.helper_count);
}

}  // namespace

base::Expected<Device*> open_device(std::string_view text, const OpenParameters& parameters) {
  auto tree = parse_device_string(text);
  if (!tree) return std::unexpected(tree.error());
  auto device = open_innermost(tree->nodes[tree->node_count - 1], parameters);
  for (size_t i = tree->node_count - 1; device && i > 0; --i)
    device = make_fault_device(*device, tree->nodes[i - 1].faults);
  return device;
}

}  // namespace storage
