// Fuzzes parse_device_string: what is accepted must be within its bounds, what is refused says why.
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "storage/opening/device_string.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using storage::Scheme;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto tree = storage::parse_device_string(text);
  if (!tree) {
    CHECK_EQ(tree.error().number, EINVAL);
    CHECK(std::string_view(tree.error().message).starts_with("storage: "));
    return 0;
  }
  CHECK_GE(tree->node_count, 1u);
  CHECK_LE(tree->node_count, storage::DeviceTree::kMaxNodes);
  int parent_counts[storage::DeviceTree::kMaxNodes] = {};
  for (size_t i = 0; i < tree->node_count; ++i) {
    const storage::DeviceNode& node = tree->nodes[i];
    const bool decorates_one =
        node.scheme == Scheme::kFault || node.scheme == Scheme::kLatency || node.scheme == Scheme::kTrace;
    const size_t least = decorates_one ? 1 : node.scheme == Scheme::kStripe ? 2 : 0;
    const size_t most = node.scheme == Scheme::kStripe ? storage::kMaxStripeMembers : least;
    CHECK(node.child_count >= least && node.child_count <= most);
    for (size_t c = 0; c < node.child_count; ++c) {
      CHECK_GT(node.children[c], i);
      CHECK_LT(node.children[c], tree->node_count);
      CHECK_EQ(++parent_counts[node.children[c]], 1);
    }
    CHECK_EQ(parent_counts[i], i == 0 ? 0 : 1);  // parents come before
    CHECK(node.unit_bytes >= storage::kMinStripeUnitBytes && std::has_single_bit(node.unit_bytes));
    CHECK(node.latency.channel_count >= 1 &&
          node.latency.channel_count <= storage::LatencyParameters::kMaxChannels);
    CHECK_LE(storage::service_ns(node.latency, size, uint64_t{1} << 40), uint64_t{1} << 62);
    CHECK_LE(node.faults.rule_count, storage::FaultSchedule::kMaxRules);
    for (size_t r = 0; r < node.faults.rule_count; ++r) {
      const storage::FaultRule& rule = node.faults.rules[r];
      CHECK_GE(rule.n, 1u);
      CHECK_NE(rule.operations, 0);
      if (rule.when == storage::FaultRule::When::kChance) CHECK_LE(rule.n, rule.m);
      storage::fault_fires(node.faults, r, size + 1);
    }
    if (node.scheme == Scheme::kSpdk) {
      CHECK(!node.spdk.address.empty() && node.spdk.address.size() < sizeof storage::SpdkTarget::address);
      CHECK_LT(node.spdk.port.size(), sizeof storage::SpdkTarget::port);
      CHECK_LT(node.spdk.nqn.size(), sizeof storage::SpdkTarget::nqn);
      CHECK_EQ(node.spdk.nqn.empty(), node.spdk.transport == storage::SpdkTransport::kPcie);
      CHECK(node.depth >= 1 && node.depth <= storage::kMaxQueueDepth);
      CHECK_GE(node.spdk.timeout_seconds, 1u);
    }
    if (node.scheme == Scheme::kMemory) CHECK_GE(node.capacity_bytes, 4096u);
    CHECK_LE(node.pmem.size_bytes, storage::kMaxPmemBytes);
    const bool has_path = node.scheme == Scheme::kFile || node.scheme == Scheme::kUring ||
                          node.scheme == Scheme::kAio || node.scheme == Scheme::kPmem;
    if (has_path) {
      CHECK(!node.path.empty() && node.path.size() <= storage::kMaxPathBytes);
      CHECK(node.path.data() >= text.data() &&
            node.path.data() + node.path.size() <= text.data() + text.size());
      if (node.scheme != Scheme::kPmem) CHECK_GE(node.depth, 1u);
      CHECK_LE(node.depth, storage::kMaxQueueDepth);
      CHECK_LE(node.helper_count, storage::FileHelpers::kMaxHelpers);
    }
  }
  return 0;
}
