#include "storage/opening/device_string.h"

#include <gtest/gtest.h>

#include <string>

namespace storage {
namespace {

DeviceTree parse(std::string_view text) {
  auto tree = parse_device_string(text);
  EXPECT_TRUE(tree.has_value()) << text << ": " << tree.error().message;
  return tree.value_or(DeviceTree{});
}

TEST(DeviceString, PlainPathsAreTakenAsTheyAre) {
  for (const char* text :
       {"/mnt/nvme", "spill.dat", ".", "/a:b", "./file:x", "/dev/nvme0n1?qd=4", "/x[1]", "dir/mem:1"}) {
    DeviceTree tree = parse(text);
    ASSERT_EQ(tree.node_count, 1u) << text;
    EXPECT_EQ(tree.nodes[0].scheme, Scheme::kUring) << text;
    EXPECT_EQ(tree.nodes[0].path, text);
    EXPECT_EQ(tree.nodes[0].depth, kDefaultUringDepth);
  }
}

TEST(DeviceString, Schemes) {
  DeviceTree tree = parse("memory:64M");
  EXPECT_EQ(tree.nodes[0].scheme, Scheme::kMemory);
  EXPECT_EQ(tree.nodes[0].capacity_bytes, uint64_t{64} << 20);

  tree = parse("file:/a/b?threads=3,qd=9");
  EXPECT_EQ(tree.nodes[0].scheme, Scheme::kFile);
  EXPECT_EQ(tree.nodes[0].path, "/a/b");
  EXPECT_EQ(tree.nodes[0].helper_count, 3u);
  EXPECT_EQ(tree.nodes[0].depth, 9u);

  tree = parse("uring:relative?qd=4096");
  EXPECT_EQ(tree.nodes[0].scheme, Scheme::kUring);
  EXPECT_EQ(tree.nodes[0].path, "relative");
  EXPECT_EQ(tree.nodes[0].depth, 4096u);
  EXPECT_EQ(tree.nodes[0].helper_count, kDefaultHelperCount);
}

TEST(DeviceString, Aio) {
  DeviceTree tree = parse("aio:/dev/sdb?qd=64");
  EXPECT_EQ(tree.nodes[0].scheme, Scheme::kAio);
  EXPECT_EQ(tree.nodes[0].path, "/dev/sdb");
  EXPECT_EQ(tree.nodes[0].depth, 64u);
  EXPECT_EQ(parse("aio:x").nodes[0].depth, kDefaultAioDepth);
}

TEST(DeviceString, ModesOfRings) {
  DeviceTree tree = parse("stripe:[uring:/a?iopoll=1,uring:/b?qd=4,sqpoll=1,iopoll=0,/c,uring:/d]");
  ASSERT_EQ(tree.node_count, 5u);
  EXPECT_TRUE(tree.nodes[1].modes.polls_device);
  EXPECT_FALSE(tree.nodes[1].modes.kernel_thread);
  EXPECT_EQ(tree.nodes[2].path, "/b");
  EXPECT_EQ(tree.nodes[2].depth, 4u);
  EXPECT_FALSE(tree.nodes[2].modes.polls_device);
  EXPECT_TRUE(tree.nodes[2].modes.kernel_thread);
  for (int i : {3, 4}) {
    EXPECT_FALSE(tree.nodes[i].modes.polls_device);
    EXPECT_FALSE(tree.nodes[i].modes.kernel_thread);
  }
}

TEST(DeviceString, Pmem) {
  DeviceTree tree = parse("stripe:[pmem:/mnt/pmem/a?size=64M,dax=0,pmem:/b]");
  ASSERT_EQ(tree.node_count, 3u);
  EXPECT_EQ(tree.nodes[1].scheme, Scheme::kPmem);
  EXPECT_EQ(tree.nodes[1].path, "/mnt/pmem/a");
  EXPECT_EQ(tree.nodes[1].pmem.size_bytes, uint64_t{64} << 20);
  EXPECT_FALSE(tree.nodes[1].pmem.needs_dax);
  EXPECT_EQ(tree.nodes[2].path, "/b");
  EXPECT_EQ(tree.nodes[2].pmem.size_bytes, 0u);
  EXPECT_TRUE(tree.nodes[2].pmem.needs_dax);
}

TEST(DeviceString, FaultsDecorate) {
  DeviceTree tree = parse(
      "fault:seed=7,read_eio=2/1000,write_enospc=@5+,any_delay_us=%3x200,write_torn=@9:[fault:[uring:/"
      "p:[q]?qd=2]]");
  ASSERT_EQ(tree.node_count, 3u);
  const FaultSchedule& faults = tree.nodes[0].faults;
  EXPECT_EQ(tree.nodes[0].scheme, Scheme::kFault);
  EXPECT_EQ(faults.seed, 7u);
  ASSERT_EQ(faults.rule_count, 4u);
  EXPECT_EQ(faults.rules[0].operations, operation_bit(Operation::kRead));
  EXPECT_EQ(faults.rules[0].effect, FaultRule::Effect::kError);
  EXPECT_EQ(faults.rules[0].error, EIO);
  EXPECT_EQ(faults.rules[0].when, FaultRule::When::kChance);
  EXPECT_EQ(faults.rules[0].n, 2u);
  EXPECT_EQ(faults.rules[0].m, 1000u);
  EXPECT_EQ(faults.rules[1].error, ENOSPC);
  EXPECT_EQ(faults.rules[1].when, FaultRule::When::kFrom);
  EXPECT_EQ(faults.rules[1].n, 5u);
  EXPECT_EQ(faults.rules[2].operations, kAllOperations);
  EXPECT_EQ(faults.rules[2].effect, FaultRule::Effect::kDelayUs);
  EXPECT_EQ(faults.rules[2].when, FaultRule::When::kEvery);
  EXPECT_EQ(faults.rules[2].amount, 200u);
  EXPECT_EQ(faults.rules[3].effect, FaultRule::Effect::kTorn);
  EXPECT_EQ(faults.rules[3].when, FaultRule::When::kAt);
  EXPECT_EQ(tree.nodes[1].faults.rule_count, 0u);
  EXPECT_EQ(tree.nodes[2].path, "/p:[q]");
  EXPECT_EQ(tree.nodes[2].depth, 2u);
}

TEST(DeviceString, StripesHaveMembers) {
  DeviceTree tree = parse("stripe:[/a,file:/b?qd=3,threads=2,memory:1M]?unit=128K");
  ASSERT_EQ(tree.node_count, 4u);
  EXPECT_EQ(tree.nodes[0].scheme, Scheme::kStripe);
  EXPECT_EQ(tree.nodes[0].unit_bytes, uint64_t{128} << 10);
  ASSERT_EQ(tree.nodes[0].child_count, 3u);
  EXPECT_EQ(tree.nodes[1].path, "/a");
  EXPECT_EQ(tree.nodes[2].path, "/b");
  EXPECT_EQ(tree.nodes[2].depth, 3u);
  EXPECT_EQ(tree.nodes[2].helper_count, 2u);
  EXPECT_EQ(tree.nodes[3].scheme, Scheme::kMemory);
  EXPECT_EQ(parse("stripe:[a,b]").nodes[0].unit_bytes, kDefaultStripeUnitBytes);
}

TEST(DeviceString, StripesOfDecoratorsAndStripes) {
  DeviceTree tree = parse(
      "fault:[stripe:[fault:seed=2,read_eio=@1,write_eio=@2:[aio:/"
      "a?qd=5],stripe:[x,y]?unit=4K,fault:[z[1,2]]]]");
  ASSERT_EQ(tree.node_count, 9u);
  const DeviceNode& stripe = tree.nodes[1];
  EXPECT_EQ(tree.nodes[0].children[0], 1);
  ASSERT_EQ(stripe.child_count, 3u);
  EXPECT_EQ(stripe.unit_bytes, kDefaultStripeUnitBytes);
  const DeviceNode& faulty = tree.nodes[stripe.children[0]];
  EXPECT_EQ(faulty.faults.rule_count, 2u);
  EXPECT_EQ(tree.nodes[faulty.children[0]].path, "/a");
  EXPECT_EQ(tree.nodes[faulty.children[0]].depth, 5u);
  const DeviceNode& inner = tree.nodes[stripe.children[1]];
  EXPECT_EQ(inner.unit_bytes, 4096u);
  EXPECT_EQ(tree.nodes[inner.children[1]].path, "y");
  EXPECT_EQ(tree.nodes[tree.nodes[stripe.children[2]].children[0]].path, "z[1,2]");
}

TEST(DeviceString, Latencies) {
  DeviceTree tree = parse(
      "stripe:[latency:us=80,channels=8,mbps=2000,dist=exp,seed=7,sleep=1:[memory:1M],latency:us=0:[x]]");
  const DeviceNode& first = tree.nodes[tree.nodes[0].children[0]];
  EXPECT_EQ(first.scheme, Scheme::kLatency);
  EXPECT_EQ(first.latency.mean_us, 80u);
  EXPECT_EQ(first.latency.channel_count, 8u);
  EXPECT_EQ(first.latency.megabytes_per_second, 2000u);
  EXPECT_EQ(first.latency.distribution, LatencyParameters::Distribution::kExponential);
  EXPECT_EQ(first.latency.seed, 7u);
  EXPECT_TRUE(first.latency.sleeps);
  EXPECT_EQ(tree.nodes[first.children[0]].capacity_bytes, uint64_t{1} << 20);
  const DeviceNode& second = tree.nodes[tree.nodes[0].children[1]];
  EXPECT_EQ(second.latency.channel_count, 1u);
  EXPECT_FALSE(second.latency.sleeps);
  EXPECT_EQ(second.latency.megabytes_per_second, 0u);
  EXPECT_EQ(second.latency.distribution, LatencyParameters::Distribution::kFixed);
}

TEST(DeviceString, Traces) {
  DeviceTree tree = parse("stripe:[trace:file=/tmp/a:b,c:[memory:1M],trace:file=d:[x]]");
  const DeviceNode& first = tree.nodes[tree.nodes[0].children[0]];
  EXPECT_EQ(first.scheme, Scheme::kTrace);
  EXPECT_EQ(first.path, "/tmp/a:b,c");
  EXPECT_EQ(tree.nodes[tree.nodes[0].children[1]].path, "d");
}

TEST(DeviceString, Encrypted) {
  DeviceTree tree = parse("encrypt:[stripe:[encrypt:key=/k:a,b:[/m],encrypt:[memory:1M]]]");
  EXPECT_EQ(tree.nodes[0].scheme, Scheme::kEncrypt);
  EXPECT_EQ(tree.nodes[0].path, "");
  const DeviceNode& stripe = tree.nodes[tree.nodes[0].children[0]];
  const DeviceNode& first = tree.nodes[stripe.children[0]];
  EXPECT_EQ(first.scheme, Scheme::kEncrypt);
  EXPECT_EQ(first.path, "/k:a,b");
  EXPECT_FALSE(first.names_medium());
  EXPECT_EQ(tree.nodes[first.children[0]].path, "/m");
  EXPECT_TRUE(tree.nodes[first.children[0]].names_medium());
  EXPECT_EQ(tree.nodes[stripe.children[1]].path, "");
}

TEST(DeviceString, Spdk) {
  DeviceTree tree = parse("spdk:pci=0000:aF:1f.7");
  EXPECT_EQ(tree.nodes[0].scheme, Scheme::kSpdk);
  EXPECT_EQ(tree.nodes[0].spdk.transport, SpdkTransport::kPcie);
  EXPECT_EQ(tree.nodes[0].spdk.address, "0000:aF:1f.7");
  EXPECT_EQ(tree.nodes[0].spdk.namespace_id, 1u);
  EXPECT_EQ(tree.nodes[0].spdk.timeout_seconds, kDefaultSpdkTimeoutSeconds);
  EXPECT_FALSE(tree.nodes[0].spdk.bounces);
  EXPECT_EQ(tree.nodes[0].depth, kDefaultSpdkDepth);

  tree = parse("spdk:ns=7,tcp=node.example:4420,qd=32,timeout=3,bounce=1,nqn=nqn.2016-06.io.spdk:cnode1");
  const SpdkParameters& spdk = tree.nodes[0].spdk;
  EXPECT_EQ(spdk.transport, SpdkTransport::kTcp);
  EXPECT_EQ(spdk.address, "node.example");
  EXPECT_EQ(spdk.port, "4420");
  EXPECT_EQ(spdk.nqn, "nqn.2016-06.io.spdk:cnode1");
  EXPECT_EQ(spdk.namespace_id, 7u);
  EXPECT_EQ(spdk.timeout_seconds, 3u);
  EXPECT_TRUE(spdk.bounces);
  EXPECT_EQ(tree.nodes[0].depth, 32u);

  tree = parse("spdk:rdma=[fe80::1]:65535,nqn=nqn.a");
  EXPECT_EQ(tree.nodes[0].spdk.transport, SpdkTransport::kRdma);
  EXPECT_EQ(tree.nodes[0].spdk.address, "fe80::1");
}

TEST(DeviceString, StripesOfSpdk) {
  DeviceTree tree =
      parse("stripe:[spdk:tcp=[::1]:1,nqn=nqn.a,ns=1,spdk:pci=0000:01:00.0,qd=2,/b,aio:/a?qd=3]?unit=4K");
  ASSERT_EQ(tree.node_count, 5u);
  EXPECT_EQ(tree.nodes[1].spdk.address, "::1");
  EXPECT_EQ(tree.nodes[1].spdk.nqn, "nqn.a");
  EXPECT_EQ(tree.nodes[2].spdk.address, "0000:01:00.0");
  EXPECT_EQ(tree.nodes[2].depth, 2u);
  EXPECT_EQ(tree.nodes[3].path, "/b");
  EXPECT_EQ(tree.nodes[4].depth, 3u);
}

TEST(DeviceString, TheLargestStripes) {
  std::string text = "fault:[stripe:[";
  for (int i = 0; i < 16; ++i) text += std::string(i > 0 ? "," : "") + "fault:[memory:1M]";
  EXPECT_EQ(parse(text + "]]").node_count, 34u);
}

TEST(DeviceString, RefusesBadInputWithOneLine) {
  std::string long_path = "/" + std::string(kMaxPathBytes, 'a');
  std::string many_faults = "fault:";
  for (int i = 0; i < 17; ++i) many_faults += "read_eio=@1,";
  many_faults.back() = ':';
  many_faults += "[memory:1M]";
  std::string many_members = "stripe:[m";
  for (int i = 0; i < 16; ++i) many_members += ",m";
  std::string many_devices = "stripe:[stripe:[a,b";
  for (int i = 0; i < 13; ++i) many_devices += ",a";
  many_devices += "],stripe:[a,b";
  for (int i = 0; i < 13; ++i) many_devices += ",a";
  many_devices += "],stripe:[a,b,c,d,e,f,g,h]]";
  const std::string kBad[] = {
      "",
      ":",
      ":/x",
      "foo:bar",
      "File:/x",
      "memory:",
      "memory:x",
      "memory:1",
      "memory:-1",
      "memory:4095",
      "memory:99999999999999999999",
      "memory:64M ",
      "file:",
      "file:?qd=1",
      "uring:",
      "aio:",
      "aio:/x?qd=0",
      "aio:/x?unit=4K",
      "uring:/x?",
      "uring:/x?qd",
      "uring:/x?qd=",
      "uring:/x?qd=0",
      "uring:/x?qd=4097",
      "uring:/x?qd=1,",
      "uring:/x?qd=1,,qd=2",
      "uring:/x?QD=1",
      "uring:/x?qd=+1",
      "uring:/x?qd=1?qd=2",
      "uring:/x?iopoll",
      "uring:/x?iopoll=",
      "uring:/x?iopoll=2",
      "uring:/x?sqpoll=yes",
      "uring:/x?sqpoll=-1",
      "aio:/x?iopoll=1",
      "file:/x?sqpoll=0",
      "pmem:",
      "pmem:?dax=0",
      "pmem:/x?",
      "pmem:/x?size",
      "pmem:/x?size=",
      "pmem:/x?size=4095",
      "pmem:/x?size=9T",
      "pmem:/x?dax=2",
      "pmem:/x?dax=no",
      "pmem:/x?qd=4",
      "file:/x?threads=65",
      "file:/x?threads=-1",
      "file:/x?unit=64K",
      "fault:",
      "fault:[",
      "fault:]",
      "fault:[]",
      "fault:[memory:1M",
      "fault:[memory:1M] ",
      "fault:memory:1M",
      "fault::[]",
      "fault::[memory:1M]",
      "fault:seed:[memory:1M]",
      "fault:seed=:[memory:1M]",
      "fault:seed=x:[memory:1M]",
      "fault:read_eio:[memory:1M]",
      "fault:read_eio=:[memory:1M]",
      "fault:read_eio=1:[memory:1M]",
      "fault:read_eio=0/5:[memory:1M]",
      "fault:read_eio=6/5:[memory:1M]",
      "fault:read_eio=1/0:[memory:1M]",
      "fault:read_eio=@:[memory:1M]",
      "fault:read_eio=@0:[memory:1M]",
      "fault:read_eio=@+:[memory:1M]",
      "fault:read_eio=%0:[memory:1M]",
      "fault:read_eio=%:[memory:1M]",
      "fault:read_eio=@1x2:[memory:1M]",
      "fault:read_delay_us=@1:[memory:1M]",
      "fault:read_delay_us=@1x:[memory:1M]",
      "fault:read_delay_us=@1x99999999999:[memory:1M]",
      "fault:read_torn=@1:[memory:1M]",
      "fault:flush_short=@1:[memory:1M]",
      "fault:discard_split=@1:[memory:1M]",
      "fault:erase_eio=@1:[memory:1M]",
      "fault:read_=@1:[memory:1M]",
      "fault:_eio=@1:[memory:1M]",
      "fault:seed=7,:[memory:1M]",
      "fault:seed=7[memory:1M]",
      "fault:[foo:bar]",
      "fault:[fault:[fault:[fault:[fault:[fault:[fault:[fault:[memory:1M]]]]]]]]",
      "encrypt:",
      "encrypt:/x",
      "encrypt::[memory:1M]",
      "encrypt:key:[memory:1M]",
      "encrypt:key=:[memory:1M]",
      "encrypt:key=/k[memory:1M]",
      "encrypt:file=/k:[memory:1M]",
      "encrypt:[]",
      "encrypt:key=" + long_path + ":[memory:1M]",
      "trace:",
      "trace:[memory:1M]",
      "trace::[memory:1M]",
      "trace:file:[memory:1M]",
      "trace:file=:[memory:1M]",
      "trace:file=/x[memory:1M]",
      "trace:path=/x:[memory:1M]",
      "trace:file=/x:[]",
      "trace:file=/x:memory:1M",
      "trace:file=" + long_path + ":[memory:1M]",
      "latency:",
      "latency:[memory:1M]",
      "latency::[memory:1M]",
      "latency:us=80",
      "latency:us=80[memory:1M]",
      "latency:us:[memory:1M]",
      "latency:us=:[memory:1M]",
      "latency:us=-1:[memory:1M]",
      "latency:us=10000001:[memory:1M]",
      "latency:us=1,:[memory:1M]",
      "latency:channels=3:[memory:1M]",
      "latency:us=1,channels=0:[memory:1M]",
      "latency:us=1,channels=257:[memory:1M]",
      "latency:us=1,mbps=0:[memory:1M]",
      "latency:us=1,dist=:[memory:1M]",
      "latency:us=1,dist=normal:[memory:1M]",
      "latency:us=1,depth=3:[memory:1M]",
      "latency:us=1,sleep:[memory:1M]",
      "latency:us=1,sleep=2:[memory:1M]",
      "latency:us=1:[]",
      "spdk:",
      "spdk:ns=1",
      "spdk:/x",
      "spdk:pci=",
      "spdk:pci=01:00.0",
      "spdk:pci=0000:01:00,0",
      "spdk:pci=0000:01:00.g",
      "spdk:pci=0000:01:00.0,",
      "spdk:pci=0000:01:00.0,pci=0000:01:00.0",
      "spdk:pci=0000:01:00.0,nqn=nqn.a",
      "spdk:pci=0000:01:00.0,ns=0",
      "spdk:pci=0000:01:00.0,ns=4294967295",
      "spdk:pci=0000:01:00.0,qd=0",
      "spdk:pci=0000:01:00.0,qd=4097",
      "spdk:pci=0000:01:00.0,timeout=0",
      "spdk:pci=0000:01:00.0,timeout=3601",
      "spdk:pci=0000:01:00.0,bounce=2",
      "spdk:pci=0000:01:00.0,threads=2",
      "spdk:pci=0000:01:00.0,tcp=a:1,nqn=nqn.a",
      "spdk:tcp=a:1",
      "spdk:tcp=a,nqn=nqn.a",
      "spdk:tcp=:1,nqn=nqn.a",
      "spdk:tcp=a:,nqn=nqn.a",
      "spdk:tcp=a:0,nqn=nqn.a",
      "spdk:tcp=a:65536,nqn=nqn.a",
      "spdk:tcp=a:000001,nqn=nqn.a",
      "spdk:tcp=::1:4420,nqn=nqn.a",
      "spdk:tcp=[]:1,nqn=nqn.a",
      "spdk:tcp=a b:1,nqn=nqn.a",
      "spdk:tcp=a:1,nqn=",
      "spdk:tcp=a:1,nqn=iqn.a",
      "spdk:tcp=a:1,nqn=nqn." + std::string(220, 'a'),
      "spdk:tcp=" + std::string(128, 'a') + ":1,nqn=nqn.a",
      std::string("spdk:tcp=a\0b:1,nqn=nqn.a", 23),
      "stripe:[spdk:pci=0000:01:00.0,ns=1]",
      "stripe:",
      "stripe:a,b",
      "stripe:[",
      "stripe:[]",
      "stripe:[,]",
      "stripe:[a]",
      "stripe:[a,]",
      "stripe:[a,,b]",
      "stripe:[a,b",
      "stripe:[a,b]]",
      "stripe:[a,b]?",
      "stripe:[a,b]?unit",
      "stripe:[a,b]?unit=",
      "stripe:[a,b]?unit=3K",
      "stripe:[a,b]?unit=2K",
      "stripe:[a,b]?unit=2G",
      "stripe:[a,b]?unit=0",
      "stripe:[a,b]?unit=64K,qd=3",
      "stripe:[a,b]?qd=3",
      "stripe:[a,b]:[c]",
      "stripe:unit=64K:[a,b]",
      "stripe:[a,foo:b]",
      "stripe:[aio:/a?qd=0,b]",
      "stripe:[fault:[a,b]",
      "stripe:[a,fault:seed=1,b]",
      many_members + "]",
      many_devices,
      "stripe:" + std::string(50000, ',') + "]",
      "stripe:[fault:" + std::string(50000, ',') + "]",
      std::string("/a\0b", 4),
      std::string("file:/a\0b", 9),
      long_path,
      "file:" + long_path,
      many_faults,
      std::string(100000, '['),
      std::string(5000, ':'),
      "\xff\xfe:\n",
  };
  for (const std::string& text : kBad) {
    auto tree = parse_device_string(text);
    ASSERT_FALSE(tree.has_value()) << text;
    EXPECT_EQ(tree.error().number, EINVAL) << text;
    std::string message = tree.error().message;
    EXPECT_TRUE(message.starts_with("storage: ")) << message;
    EXPECT_LT(message.size(), sizeof tree.error().message - 1) << "cut off: " << message;
    for (char c : message) EXPECT_TRUE(c >= ' ' && c <= '~') << message;
  }
}

TEST(DeviceString, MostNestingIsAccepted) {
  EXPECT_EQ(parse("fault:[fault:[fault:[fault:[fault:[fault:[fault:[memory:1M]]]]]]]").node_count,
            DeviceTree::kMaxNesting);
}

}  // namespace
}  // namespace storage
