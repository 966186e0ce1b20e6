// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/port_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpline/base/scratch_folder_testing.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::runtime {
namespace {

using testing::HasSubstr;

void expect_error(const Result<void>& result, ErrorKind kind, const std::string& text) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, kind);
  EXPECT_THAT(result.error().message(), HasSubstr(text));
  EXPECT_FALSE(result.error().fix.empty());
}

TEST(PortSpec, TellsPciFromVdev) {
  const auto pci = parse_port_spec("0000:3B:00.1,mprq_en=1");
  ASSERT_TRUE(pci.ok());
  EXPECT_TRUE(pci->pci);
  EXPECT_EQ(pci->device, "0000:3b:00.1");
  EXPECT_EQ(parse_port_spec("3b:00.1")->device, "0000:3b:00.1");
  const auto vdev = parse_port_spec("net_pcap12,rx_pcap=a.pcap,rx_pcap=b.pcap,tx_pcap=c.pcap");
  ASSERT_TRUE(vdev.ok());
  EXPECT_FALSE(vdev->pci);
  EXPECT_EQ(vdev->device, "net_pcap12");
  EXPECT_EQ(vdev->driver, "net_pcap");
  EXPECT_EQ(vdev->arguments.count("rx_pcap"), 2U);
}

TEST(PortSpec, RefusesWhatIsNeither) {
  for (const char* text :
       {"", "eth0", "0000:3b:00", "3b:00.9", "net_pcap", "net_pcap0,", "net_pcap0,=x", ",", "net_0"}) {
    const auto spec = parse_port_spec(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.error().kind, ErrorKind::usage);
    EXPECT_FALSE(spec.error().fix.empty());
  }
  EXPECT_THAT(parse_port_spec("net_af_paket").error().message(), HasSubstr("net_af_packet0"));
}

TEST(PortSpec, ADeviceIsTheSameHoweverItIsWritten) {
  EXPECT_TRUE(same_device("01:00.0", "0000:01:00.0,representor=0"));
  EXPECT_TRUE(same_device("net_vnic0,wire=sink", "net_vnic0"));
  EXPECT_FALSE(same_device("net_vnic0", "net_vnic1"));
  EXPECT_FALSE(same_device("01:00.0", "0001:01:00.0"));
  EXPECT_TRUE(same_device("socket", "socket"));
}

TEST(PortSpec, KnowsTheNodeOfADevice) {
  ScratchFolder sys;
  sys.write("bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
  sys.write("bus/pci/devices/0000:3c:00.0/numa_node", "-1\n");
  sys.write("class/net/eth1/device/numa_node", "3\n");
  EXPECT_EQ(port_node("3b:00.0", sys.path()), 1);
  EXPECT_EQ(port_node("3c:00.0", sys.path()), kAnyNode);
  EXPECT_EQ(port_node("3d:00.0", sys.path()), kAnyNode);
  EXPECT_EQ(port_node("net_af_packet0,iface=eth1", sys.path()), 3);
  EXPECT_EQ(port_node("net_null0", sys.path()), kAnyNode);
}

TEST(PortSpec, ShortFramesAreNotInlinedByConnectX) {
  ScratchFolder sys;
  sys.write("bus/pci/devices/0000:3b:00.0/vendor", "0x15b3\n");
  sys.write("bus/pci/devices/0000:3c:00.0/vendor", "0x8086\n");
  const auto told = [&](const char* spec) { return without_inlining(spec, sys.path()); };
  EXPECT_EQ(told("3b:00.0"), "3b:00.0,txq_inline_max=0");
  EXPECT_EQ(told("0000:3b:00.0,mprq_en=1"), "0000:3b:00.0,mprq_en=1,txq_inline_max=0");
  EXPECT_EQ(told("3b:00.0,txq_inline_max=18"), "3b:00.0,txq_inline_max=18") << "who says so knows";
  EXPECT_EQ(told("3c:00.0"), "3c:00.0");
  EXPECT_EQ(told("net_vnic0,persona=mlx5"), "net_vnic0,persona=mlx5,txq_inline_max=0");
  EXPECT_EQ(told("net_vnic0,persona=ice"), "net_vnic0,persona=ice");
  EXPECT_EQ(told("net_vnic0"), "net_vnic0");
  EXPECT_EQ(told("no port"), "no port");
}

TEST(PortSpec, AMissingInterfaceIsAnsweredWithThoseThatThereAre) {
  ScratchFolder sys;
  sys.write("class/net/eth1/ifindex", "1");
  sys.write("class/net/veth0/ifindex", "2");
  expect_error(check_port_spec("net_af_packet0,iface=eth7", sys.path()), ErrorKind::usage, "there are: eth1, veth0");
  expect_error(check_port_spec("net_pcap0,iface=../../etc", sys.path()), ErrorKind::usage, "no network interface");
  expect_error(check_port_spec("net_af_packet0", sys.path()), ErrorKind::usage, "it names no interface");
}

TEST(PortSpec, PcapsAreReadBeforeDpdkSeesThem) {
  ScratchFolder folder;
  const std::string good = folder.write("good.pcap", pcap_bytes({std::string(60, 'a')}));
  const std::string bad = folder.write("bad.pcap", pcap_bytes({}));
  EXPECT_TRUE(check_port_spec("net_pcap0,rx_pcap=" + good).ok());
  expect_error(check_port_spec("net_pcap0,rx_pcap=" + bad), ErrorKind::usage, "no packets");
  expect_error(check_port_spec("net_pcap0,tx_pcap=" + folder.path().string() + "/none/out.pcap"), ErrorKind::usage,
               "mkdir -p");
}

TEST(PortSpec, APciDeviceMustBeThereWithADriverThatDpdkUses) {
  ScratchFolder sys;
  const auto device = [&sys](const std::string& address, const std::string& driver) {
    sys.write("bus/pci/devices/" + address + "/vendor", "0x15b3");
    if (driver.empty()) return;
    sys.write("bus/pci/drivers/" + driver + "/bind", "");
    std::filesystem::create_symlink(sys.path() / "bus/pci/drivers" / driver,
                                    sys.path() / "bus/pci/devices" / address / "driver");
  };
  device("0000:01:00.0", "ice");
  device("0000:02:00.0", "mlx5_core");
  device("0000:03:00.0", "");
  expect_error(check_port_spec("0000:09:00.0", sys.path()), ErrorKind::usage, "no such PCI device");
  expect_error(check_port_spec("0000:01:00.0", sys.path()), ErrorKind::environment,
               "dpdk-devbind.py --bind=vfio-pci 0000:01:00.0");
  expect_error(check_port_spec("03:00.0", sys.path()), ErrorKind::environment, "no driver");
  EXPECT_TRUE(check_port_spec("02:00.0", sys.path()).ok());

  device("0000:04:00.0", "vfio-pci");
  device("0000:04:00.1", "ice");
  EXPECT_TRUE(check_port_spec("04:00.0", sys.path()).ok());
  sys.write("bus/pci/devices/0000:04:00.0/iommu_group/devices/0000:04:00.1", "");
  expect_error(check_port_spec("04:00.0", sys.path()), ErrorKind::environment,
               "its IOMMU group has 0000:04:00.1 (ice), too");
}

}  // namespace
}  // namespace warpline::runtime
