#include "storage/opening/open.h"

#include "base/check.h"
#include "storage/backends/memory.h"
#include "storage/decorators/encrypt.h"
#include "storage/decorators/fault.h"
#include "storage/decorators/latency.h"
#include "storage/decorators/trace.h"
#include "storage/opening/key_file.h"
#include "sys/files.h"

namespace storage {
namespace {

base::Expected<Device*> open_innermost(const DeviceNode& node, const OpenParameters& parameters) {
  if (node.scheme == Scheme::kMemory) return make_memory_device(node.capacity_bytes);
  if (node.scheme == Scheme::kSpdk) return make_spdk_device(node.spdk, node.depth, parameters);
  auto medium = open_medium(node.path, {.overwrite = parameters.overwrite,
                                        .spill = parameters.spill,
                                        .store = parameters.store,
                                        .whole = parameters.whole,
                                        .is_locked = parameters.is_locked,
                                        .read_only = parameters.read_only && node.scheme != Scheme::kPmem,
                                        .keep_size = node.scheme == Scheme::kPmem});
  if (!medium) return std::unexpected(medium.error());
  if (node.scheme == Scheme::kPmem) return make_pmem_device(*medium, node.pmem);
  if (node.scheme == Scheme::kFile) return make_file_device(*medium, node.helper_count, node.depth);
  // A ring would pass each Io to a kernel worker, only to have it copied there.
  if (medium->is_memory) return make_file_device(*medium, 0, node.depth);
  if (node.scheme == Scheme::kAio) return make_aio_device(*medium, node.depth, node.helper_count);
  CHECK(node.scheme == Scheme::kUring);
  return make_uring_device(*medium, node.depth, node.helper_count, node.modes);
}

base::Expected<Device*> open_node(const DeviceTree& tree, const DeviceNode& node,
                                  const OpenParameters& parameters);

// The key is read first, so that the device is not opened if there is none.
base::Expected<Device*> open_encrypted(const DeviceTree& tree, const DeviceNode& node,
                                       const OpenParameters& parameters) {
  if (auto able = XtsCipher::check_cpu(); !able) return std::unexpected(able.error());
  XtsKey key;
  if (!node.path.empty()) {
    if (auto read = read_key_file(node.path, key); !read) return std::unexpected(read.error());
  } else if (parameters.store) {
    return base::failure(
        EINVAL, "storage: encrypt: what is to be there after this process needs a key that is, too: ",
        "encrypt:key=FILE:[DEVICE]");
  } else {
    sys::random_bytes(key.bytes);
  }
  auto inner = open_node(tree, tree.nodes[node.children[0]], parameters);
  if (!inner) return inner;
  return make_encrypt_device(*inner, key);
}

base::Expected<Device*> open_node(const DeviceTree& tree, const DeviceNode& node,
                                  const OpenParameters& parameters) {
  if (node.child_count == 0) return open_innermost(node, parameters);
  if (node.scheme == Scheme::kEncrypt) return open_encrypted(tree, node, parameters);
  Device* children[kMaxStripeMembers];
  for (size_t i = 0; i < node.child_count; ++i) {
    auto child = open_node(tree, tree.nodes[node.children[i]], parameters);
    if (!child) {
      while (i > 0) children[--i]->close();
      return child;
    }
    children[i] = *child;
  }
  if (node.scheme == Scheme::kStripe)
    return make_stripe_device({children, node.child_count}, node.unit_bytes);
  if (node.scheme == Scheme::kLatency) return make_latency_device(children[0], node.latency);
  if (node.scheme == Scheme::kTrace) return make_trace_device(children[0], node.path);
  CHECK(node.scheme == Scheme::kFault);
  return make_fault_device(children[0], node.faults);
}

}  // namespace

base::Expected<Device*> open_device(std::string_view text, const OpenParameters& parameters) {
  auto tree = parse_device_string(text);
  if (!tree) return std::unexpected(tree.error());
  return open_node(*tree, tree->nodes[0], parameters);
}

}  // namespace storage
