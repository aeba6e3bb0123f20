#include "storage/opening/device_string.h"

#include <bit>

#include "base/ids.h"
#include "base/options.h"
#include "storage/opening/device_settings.h"

namespace storage {
namespace {

using base::failure;

base::Expected<void> parse_path(std::string_view path, DeviceNode& node) {
  if (path.empty())
    return failure(EINVAL, "storage: the path is empty; name a directory, file or block device");
  if (path.size() > kMaxPathBytes)
    return failure(EINVAL, "storage: the path is longer than ", kMaxPathBytes, " bytes");
  if (path.find('\0') != std::string_view::npos)
    return failure(EINVAL, "storage: the path contains a zero byte");
  node.path = path;
  return {};
}

// "qd=128,threads=4,iopoll=1"
base::Expected<void> parse_settings(std::string_view text, DeviceNode& node) {
  const bool is_ring = node.scheme == Scheme::kUring;
  for (bool more = true; more;) {
    Split item = split_at(text, ",");
    more = item.found;
    text = item.after;
    Split setting = split_at(item.before, "=");
    if (is_ring && setting.found && (setting.before == "iopoll" || setting.before == "sqpoll")) {
      auto wanted = parse_count(setting.before, setting.after, 0, 1);
      if (!wanted) return std::unexpected(wanted.error());
      (setting.before == "iopoll" ? node.modes.polls_device : node.modes.kernel_thread) = *wanted == 1;
    } else if (setting.before == "qd" && setting.found) {
      auto depth = parse_count("qd", setting.after, 1, kMaxQueueDepth);
      if (!depth) return std::unexpected(depth.error());
      node.depth = *depth;
    } else if (setting.before == "threads" && setting.found) {
      auto count = parse_count("threads", setting.after, 0, FileHelpers::kMaxHelpers);
      if (!count) return std::unexpected(count.error());
      node.helper_count = static_cast<uint32_t>(*count);
    } else {
      return failure(EINVAL, "storage: '", Shown(item.before), "' is not a setting; there are qd=N",
                     is_ring ? ", threads=N, iopoll=1 and sqpoll=1" : " and threads=N");
    }
  }
  return {};
}

base::Expected<void> parse_file(std::string_view rest, DeviceNode& node) {
  Split parts = split_at(rest, "?");
  if (auto path = parse_path(parts.before, node); !path) return path;
  if (!parts.found) return {};
  return parse_settings(parts.after, node);
}

// "size=64M,dax=0"
base::Expected<void> parse_pmem_settings(std::string_view text, PmemSettings& pmem) {
  for (bool more = true; more;) {
    Split item = split_at(text, ",");
    more = item.found;
    text = item.after;
    Split setting = split_at(item.before, "=");
    if (setting.before == "size" && setting.found) {
      auto size = base::parse_size(setting.after);
      if (!size || *size < base::kOsPageBytes || *size > kMaxPmemBytes)
        return failure(EINVAL, "storage: size: '", Shown(setting.after), "' is not a size from 4K to ",
                       base::Bytes{kMaxPmemBytes});
      pmem.size_bytes = *size;
    } else if (setting.before == "dax" && setting.found) {
      auto needed = parse_count("dax", setting.after, 0, 1);
      if (!needed) return std::unexpected(needed.error());
      pmem.needs_dax = *needed == 1;
    } else {
      return failure(EINVAL, "storage: '", Shown(item.before),
                     "' is not a setting of pmem; there are size=SIZE and dax=0");
    }
  }
  return {};
}

base::Expected<void> parse_pmem(std::string_view rest, DeviceNode& node) {
  Split parts = split_at(rest, "?");
  if (auto path = parse_path(parts.before, node); !path) return path;
  if (!parts.found) return {};
  return parse_pmem_settings(parts.after, node.pmem);
}

base::Expected<void> parse_memory(std::string_view rest, DeviceNode& node) {
  auto size = base::parse_size(rest);
  if (!size) return failure(EINVAL, "storage: memory: '", Shown(rest), "' is not a size, such as 64M");
  if (*size < 4096)
    return failure(EINVAL, "storage: memory: ", *size, " bytes are too few; give at least 4K");
  node.capacity_bytes = *size;
  return {};
}

// The two parts of "seed=7,read_eio=1/1000:[inner]".
struct Decorated {
  std::string_view settings;
  std::string_view inner;
};

// Splits what follows the scheme of a decorator over one device; `example` is shown if it is wrong.
base::Expected<Decorated> split_decorated(std::string_view scheme, std::string_view rest,
                                          const char* example) {
  size_t open = rest.find('[');
  bool settings_end_well = open == 0 || (open != std::string_view::npos && rest[open - 1] == ':');
  if (!settings_end_well || !rest.ends_with(']'))
    return failure(EINVAL, "storage: '", scheme, ":", Shown(rest), "' should be ", example);
  return Decorated{open > 0 ? rest.substr(0, open - 1) : std::string_view(),
                   rest.substr(open + 1, rest.size() - open - 2)};
}

// Where the bracket with which `text` begins is closed; npos: nowhere.
size_t closing_bracket(std::string_view text) {
  size_t nesting = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++nesting;
    if (text[i] == ']' && --nesting == 0) return i;
  }
  return std::string_view::npos;
}

// The length of the first device in a list: it ends at a comma outside of brackets that is neither among the device's settings nor followed
// by one more of them.
size_t first_device_bytes(std::string_view list) {
  const bool settings_come_first = list.starts_with("fault:") || list.starts_with("latency:") ||
                                   list.starts_with("trace:") || list.starts_with("encrypt:");
  bool bracket_seen = false, question_seen = false;
  size_t nesting = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    switch (list[i]) {
      case '[': ++nesting, bracket_seen = true; break;
      case ']': nesting -= nesting > 0; break;
      case '?': question_seen = question_seen || nesting == 0; break;
      case ',': {
        const std::string_view after = list.substr(i + 1);
        const bool is_among_settings = settings_come_first && !bracket_seen;
        bool is_before_one = !question_seen && list.starts_with("spdk:") && begins_with_spdk_setting(after);
        for (std::string_view setting : {"qd=", "threads=", "iopoll=", "sqpoll=", "size=", "dax="})
          is_before_one = is_before_one || (question_seen && after.starts_with(setting));
        if (nesting == 0 && !is_among_settings && !is_before_one) return i;
        break;
      }
      default: break;
    }
  }
  return list.size();
}

// Makes the nodes of a tree, the outermost first.
class TreeParser {
 public:
  explicit TreeParser(DeviceTree& tree) : tree_(tree) {}

  // Makes the node of the device that `text` describes, which is inside `nesting` others, and the nodes inside it; returns its index.
  base::Expected<size_t> parse(std::string_view text, size_t nesting) {
    if (nesting == DeviceTree::kMaxNesting)
      return failure(EINVAL, "storage: more than ", DeviceTree::kMaxNesting, " devices inside each other");
    if (tree_.node_count == DeviceTree::kMaxNodes)
      return failure(EINVAL, "storage: more than ", DeviceTree::kMaxNodes, " devices");
    const size_t index = tree_.node_count++;
    if (auto parsed = parse_node(text, nesting, tree_.nodes[index]); !parsed)
      return std::unexpected(parsed.error());
    return index;
  }

 private:
  base::Expected<void> parse_node(std::string_view text, size_t nesting, DeviceNode& node) {
    const Split parts = split_at(text, ":");
    const std::string_view scheme = parts.before, rest = parts.after;
    if (!parts.found || scheme.find('/') != std::string_view::npos) {
      set(node, Scheme::kUring, kDefaultUringDepth);
      return parse_path(text, node);
    }
    if (scheme == "uring") return parse_file(rest, set(node, Scheme::kUring, kDefaultUringDepth));
    if (scheme == "aio") return parse_file(rest, set(node, Scheme::kAio, kDefaultAioDepth));
    if (scheme == "file") return parse_file(rest, set(node, Scheme::kFile, kMaxQueueDepth));
    if (scheme == "pmem") return parse_pmem(rest, set(node, Scheme::kPmem, 0));
    if (scheme == "memory") return parse_memory(rest, set(node, Scheme::kMemory, 0));
    if (scheme == "fault") return parse_fault(rest, nesting, set(node, Scheme::kFault, 0));
    if (scheme == "latency") return parse_latency(rest, nesting, set(node, Scheme::kLatency, 0));
    if (scheme == "trace") return parse_trace_file(rest, nesting, set(node, Scheme::kTrace, 0));
    if (scheme == "encrypt") return parse_encrypt(rest, nesting, set(node, Scheme::kEncrypt, 0));
    if (scheme == "stripe") return parse_stripe(rest, nesting, set(node, Scheme::kStripe, 0));
    if (scheme == "spdk") {
      set(node, Scheme::kSpdk, kDefaultSpdkDepth);
      return parse_spdk_settings(rest, node.spdk, node.depth);
    }
    return failure(EINVAL, "storage: '", Shown(scheme),
                   ":' is not known; there are uring:, aio:, file:, pmem:, memory:, ",
                   "spdk:, encrypt:, fault:, stripe:, latency: and trace:; a path with a colon is written ./",
                   Shown(text));
  }

  static DeviceNode& set(DeviceNode& node, Scheme scheme, size_t depth) {
    node.scheme = scheme;
    node.depth = depth;
    return node;
  }

  base::Expected<void> add_child(DeviceNode& node, std::string_view text, size_t nesting) {
    auto child = parse(text, nesting + 1);
    if (!child) return std::unexpected(child.error());
    node.children[node.child_count++] = static_cast<uint8_t>(*child);
    return {};
  }

  base::Expected<void> parse_fault(std::string_view rest, size_t nesting, DeviceNode& node) {
    auto parts = split_decorated("fault", rest, "fault:seed=7,read_eio=1/1000:[DEVICE], or fault:[DEVICE]");
    if (!parts) return std::unexpected(parts.error());
    if (!rest.starts_with('['))
      if (auto faults = parse_faults(parts->settings, node.faults); !faults) return faults;
    return add_child(node, parts->inner, nesting);
  }

  base::Expected<void> parse_latency(std::string_view rest, size_t nesting, DeviceNode& node) {
    auto parts = split_decorated("latency", rest, "latency:us=80,channels=8:[DEVICE]");
    if (!parts) return std::unexpected(parts.error());
    if (auto parsed = parse_latency_settings(parts->settings, node.latency); !parsed) return parsed;
    return add_child(node, parts->inner, nesting);
  }

  // "NAME=PATH", the only setting of a device.
  static base::Expected<void> parse_path_of(std::string_view kind, std::string_view name,
                                            std::string_view settings, const char* example,
                                            DeviceNode& node) {
    const Split setting = split_at(settings, "=");
    if (setting.before != name || !setting.found)
      return failure(EINVAL, "storage: ", kind, ": '", Shown(settings), "' does not name a ", name,
                     "; write ", example);
    return parse_path(setting.after, node);
  }

  base::Expected<void> parse_trace_file(std::string_view rest, size_t nesting, DeviceNode& node) {
    constexpr const char* kExample = "trace:file=PATH:[DEVICE]";
    auto parts = split_decorated("trace", rest, kExample);
    if (!parts) return std::unexpected(parts.error());
    if (auto path = parse_path_of("trace", "file", parts->settings, kExample, node); !path) return path;
    return add_child(node, parts->inner, nesting);
  }

  base::Expected<void> parse_encrypt(std::string_view rest, size_t nesting, DeviceNode& node) {
    constexpr const char* kExample = "encrypt:key=FILE:[DEVICE], or encrypt:[DEVICE]";
    auto parts = split_decorated("encrypt", rest, kExample);
    if (!parts) return std::unexpected(parts.error());
    if (!rest.starts_with('[')) {
      if (auto path = parse_path_of("encrypt", "key", parts->settings, kExample, node); !path) return path;
    }
    return add_child(node, parts->inner, nesting);
  }

  // "[a,b]?unit=64K"
  base::Expected<void> parse_stripe(std::string_view rest, size_t nesting, DeviceNode& node) {
    const size_t close = rest.starts_with('[') ? closing_bracket(rest) : std::string_view::npos;
    const std::string_view after = close < rest.size() ? rest.substr(close + 1) : rest;
    if (close == std::string_view::npos || !(after.empty() || after.starts_with("?unit="))) {
      return failure(EINVAL, "storage: 'stripe:", Shown(rest),
                     "' should be stripe:[DEVICE,DEVICE,...] or stripe:[DEVICE,DEVICE,...]?unit=64K");
    }
    if (!after.empty()) {
      const std::string_view text = after.substr(6);
      auto unit = base::parse_size(text);
      if (!unit || *unit < kMinStripeUnitBytes || *unit > kMaxStripeUnitBytes || !std::has_single_bit(*unit))
        return failure(EINVAL, "storage: unit: '", Shown(text), "' is not a power of two from ",
                       base::Bytes{kMinStripeUnitBytes}, " to ", base::Bytes{kMaxStripeUnitBytes});
      node.unit_bytes = *unit;
    }
    std::string_view list = rest.substr(1, close - 1);
    if (list.empty())
      return failure(EINVAL, "storage: stripe: no devices; give ", kMinStripeMembers, " to ",
                     kMaxStripeMembers);
    for (bool more = true; more;) {
      if (node.child_count == kMaxStripeMembers)
        return failure(EINVAL, "storage: stripe: more than ", kMaxStripeMembers, " devices");
      const size_t bytes = first_device_bytes(list);
      if (auto added = add_child(node, list.substr(0, bytes), nesting); !added) return added;
      more = bytes < list.size();
      if (more) list.remove_prefix(bytes + 1);
    }
    if (node.child_count < kMinStripeMembers)
      return failure(EINVAL, "storage: stripe: one device is none; give ", kMinStripeMembers, " to ",
                     kMaxStripeMembers);
    return {};
  }

  DeviceTree& tree_;
};

}  // namespace

base::Expected<DeviceTree> parse_device_string(std::string_view text) {
  base::Expected<DeviceTree> tree{std::in_place};
  if (auto root = TreeParser(*tree).parse(text, 0); !root) return std::unexpected(root.error());
  return tree;
}

}  // namespace storage
