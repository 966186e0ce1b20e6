// SPDX-License-Identifier: Apache-2.0
#include "warpline/doctor/bus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::doctor {
namespace {

using testing::HasSubstr;

constexpr const char* kNic = "0000:19:00.0";
constexpr const char* kGpu = "0000:1a:00.0";
constexpr const char* kSwitch = "pci0000:16/0000:16:01.0/0000:17:00.0/";

/// A made-up bus, in a folder: a ConnectX and a GPU below one switch, all as it should be.
class BusTest : public testing::Test {
 protected:
  BusTest() {
    add(std::string(kSwitch) + "0000:18:00.0", kNic, "0x15b3", "0x020000", "mlx5_core");
    add(std::string(kSwitch) + "0000:18:01.0", kGpu, "0x10de", "0x030200", "nvidia");
    link(kNic, "16.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16");
    write(kNic, "config", config_space(0x5010));
    write(kGpu, "resource",
          "0x00000000de000000 0x00000000deffffff 0x0000000000040200\n"
          "0x0000210000000000 0x0000211fffffffff 0x000000000014220c\n");
    for (const std::string bridge : {"0000:18:00.0", "0000:18:01.0"}) write(bridge, "config", config_space(0));
    root_.write("proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build\n");
    root_.write("sys/module/nvidia_peermem/refcnt", "0\n");
  }

  void write(const std::string& address, const std::string& file, const std::string& bytes) {
    root_.write("sys/bus/pci/devices/" + address + "/" + file, bytes);
  }
  void add(const std::string& way, const std::string& address, const std::string& vendor, const std::string& kind,
           const std::string& driver) {
    const std::filesystem::path real = root_.path() / "sys/devices" / way / address;
    std::filesystem::create_directories(real);
    std::filesystem::create_directories(root_.path() / "sys/bus/pci/devices");
    std::filesystem::create_directory_symlink(real, root_.path() / "sys/bus/pci/devices" / address);
    write(address, "vendor", vendor + "\n");
    write(address, "class", kind + "\n");
    write(address, "numa_node", "0\n");
    give(address, driver);
  }
  void give(const std::string& address, const std::string& driver) {
    const std::filesystem::path link = root_.path() / "sys/bus/pci/devices" / address / "driver";
    std::filesystem::remove(link);
    if (!driver.empty()) std::filesystem::create_symlink("../../../../bus/pci/drivers/" + driver, link);
  }
  void link(const std::string& address, const std::string& speed, const std::string& width,
            const std::string& most_speed, const std::string& most_width) {
    write(address, "current_link_speed", speed + "\n");
    write(address, "current_link_width", width + "\n");
    write(address, "max_link_speed", most_speed + "\n");
    write(address, "max_link_width", most_width + "\n");
  }
  /// With Device Control at 0x68, and ACS Control, of bridges, at 0x106.
  static std::string config_space(unsigned device_control, unsigned access_control = 0, std::size_t size = 4096) {
    std::string space(4096, '\0');
    space[0x06] = 0x10;
    space[0x34] = 0x60;
    space[0x60] = 0x10;
    space[0x68] = static_cast<char>(device_control & 0xff);
    space[0x69] = static_cast<char>(device_control >> 8);
    space[0x100] = 0x0d;
    space[0x106] = static_cast<char>(access_control);
    return space.substr(0, size);
  }

  Check of_port(const std::string& name) { return named(examine_bus({}, root_.path()).ports.at(0).answers, name); }
  Check of_pair(const std::string& name, const std::vector<gpu::GpuFacts>& gpus = {}) {
    return named(examine_bus(gpus, root_.path()).pairs.at(0).answers, name);
  }
  static Check named(const std::vector<Check>& answers, const std::string& name) {
    const auto found = std::ranges::find(answers, name, &Check::name);
    return found != answers.end() ? *found : Check{.name = name, .found = "there is no such answer", .fix = {}};
  }

  ScratchFolder root_;
};

void expect_answer(const Check& check, Health health, const std::string& found, const std::string& fix = "") {
  EXPECT_EQ(check.health, health) << check.name << ": " << check.found;
  EXPECT_THAT(check.found, HasSubstr(found)) << check.name;
  EXPECT_EQ(check.fix.empty(), health == Health::ok) << check.name << ": " << check.fix;
  EXPECT_THAT(check.fix, HasSubstr(fix)) << check.name;
}

TEST_F(BusTest, APortAndAGpuAsTheyShouldBe) {
  const BusAnswers bus = examine_bus({}, root_.path());
  ASSERT_EQ(bus.ports.size(), 1U);
  ASSERT_EQ(bus.pairs.size(), 1U);
  EXPECT_EQ(bus.ports[0].pci, kNic);
  EXPECT_TRUE(bus.ports[0].is_for_dpdk);
  EXPECT_EQ(bus.pairs[0].gpu, kGpu);
  EXPECT_EQ(bus.pairs[0].distance, machine::PciDistance::pix);
  for (const Check& answer : bus.ports[0].answers) expect_answer(answer, Health::ok, "");
  for (const Check& answer : bus.pairs[0].answers) expect_answer(answer, Health::ok, "");
  expect_answer(of_port("pcie link"), Health::ok, "Gen4 x16, 252 Gbit/s each way");
  expect_answer(of_port("read requests"), Health::ok, "4096 bytes");
  expect_answer(of_pair("bar1"), Health::ok, "131072 MiB");
}

TEST_F(BusTest, LinksBelowTheCards) {
  link(kNic, "16.0 GT/s PCIe", "8", "16.0 GT/s PCIe", "16");
  expect_answer(of_port("pcie link"), Health::warning, "Gen4 x8, 126 Gbit/s each way: the card has Gen4 x16", "slot");
  link(kNic, "8.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16");
  expect_answer(of_port("pcie link"), Health::warning, "Gen3 x16, 126 Gbit/s each way: the card has Gen4 x16", "slot");
  link(kNic, "16.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16");
  link("0000:17:00.0", "8.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16");
  expect_answer(of_port("pcie link"), Health::warning, "bridge 0000:17:00.0 before it has Gen3 x16", "nearer");
  link(kNic, "Unknown", "0", "Unknown", "255");
  expect_answer(of_port("pcie link"), Health::warning, "not known: sysfs shows no speed", "as root");
}

TEST_F(BusTest, RequestsOfThePort) {
  write(kNic, "config", config_space(0x2000));
  expect_answer(of_port("read requests"), Health::warning, "MaxReadReq 512 bytes: DPDK's guide of mlx5 asks for 1024",
                "sudo setpci -s 0000:19:00.0 CAP_EXP+8.w=3000:7000");
  expect_answer(of_port("relaxed ordering"), Health::warning, "forbidden",
                "sudo setpci -s 0000:19:00.0 CAP_EXP+8.w=0010:0010");
  write(kNic, "vendor", "0x8086\n");
  expect_answer(of_port("read requests"), Health::ok, "512 bytes");
  expect_answer(of_port("relaxed ordering"), Health::ok, "forbidden");
  write(kNic, "config", config_space(0x2000, 0, 64));
  expect_answer(of_port("read requests"), Health::warning, "to root only", "as root");
  expect_answer(of_port("relaxed ordering"), Health::warning, "to root only", "as root");
}

TEST_F(BusTest, AFunctionWithoutPciExpress) {
  write(kNic, "config", std::string(256, '\0'));
  for (const char* name : {"pcie link", "read requests", "relaxed ordering"}) {
    expect_answer(of_port(name), Health::ok, "not a PCI Express function");
  }
}

TEST_F(BusTest, VirtualFunctionsHaveThePhysicalOnesRegisters) {
  add(std::string(kSwitch) + "0000:18:00.0", "0000:19:00.2", "0x15b3", "0x020000", "mlx5_core");
  write("0000:19:00.2", "config", config_space(0));
  std::filesystem::create_symlink("../0000:19:00.0", root_.path() / "sys/bus/pci/devices/0000:19:00.2/physfn");
  const BusAnswers bus = examine_bus({}, root_.path());
  ASSERT_EQ(bus.ports.size(), 2U);
  expect_answer(named(bus.ports[1].answers, "read requests"), Health::ok, "4096 bytes");
  expect_answer(named(bus.ports[1].answers, "pcie link"), Health::ok, "Gen4 x16");
}

TEST_F(BusTest, DriversAndGroups) {
  const auto vendor_intel = [&] { write(kNic, "vendor", "0x8086\n"); };
  expect_answer(of_port("driver"), Health::ok, "mlx5_core, which DPDK goes through");
  give(kNic, "");
  expect_answer(of_port("driver"), Health::warning, "none: nobody has it", "modprobe mlx5_core");
  give(kNic, "vfio-pci");
  expect_answer(of_port("driver"), Health::warning, "goes through mlx5_core", "--bind=mlx5_core 0000:19:00.0");
  give(kNic, "");
  vendor_intel();
  expect_answer(of_port("driver"), Health::warning, "none: nobody has it", "setup nic --pci 0000:19:00.0");
  give(kNic, "ice");
  expect_answer(of_port("driver"), Health::warning, "ice: the kernel has it", "which takes it from the kernel");
  EXPECT_FALSE(examine_bus({}, root_.path()).ports[0].is_for_dpdk);
  give(kNic, "vfio-pci");
  expect_answer(of_port("driver"), Health::ok, "vfio-pci, for DPDK");
  expect_answer(of_port("iommu group"), Health::warning, "not known: it is in no IOMMU group", "iommu=on");
  write(kNic, "iommu_group/devices/0000:19:00.0", "");
  expect_answer(of_port("iommu group"), Health::ok, "of its own");
  add(std::string(kSwitch) + "0000:18:00.0", "0000:19:00.1", "0x8086", "0x0c0300", "xhci_hcd");
  write(kNic, "iommu_group/devices/0000:19:00.1", "");
  expect_answer(of_port("iommu group"), Health::warning, "while the kernel has 0000:19:00.1 (xhci_hcd)",
                "--bind=vfio-pci 0000:19:00.1");
  give("0000:19:00.1", "vfio-pci");
  expect_answer(of_port("iommu group"), Health::ok, "shared with 0000:19:00.1");
}

TEST_F(BusTest, BridgesThatRedirect) {
  write("0000:18:01.0", "config", config_space(0, 0x1d));
  expect_answer(of_pair("acs"), Health::warning, "0000:18:01.0 sends what one writes to the other through the CPU",
                "sudo setpci -s 0000:18:01.0 ECAP_ACS+6.w=0000:000c");
  write("0000:18:01.0", "config", config_space(0, 0, 64));
  expect_answer(of_pair("acs"), Health::warning, "not known: 0000:18:01.0: the kernel shows", "as root");
}

TEST_F(BusTest, TheNearestGpuComesFirst) {
  add("pci0000:40/0000:40:01.0", "0000:11:00.0", "0x10de", "0x030200", "nvidia");
  const BusAnswers bus = examine_bus({}, root_.path());
  ASSERT_EQ(bus.pairs.size(), 2U);
  EXPECT_EQ(bus.pairs[0].gpu, kGpu);
  EXPECT_EQ(bus.pairs[1].distance, machine::PciDistance::node);
  expect_answer(named(bus.pairs[1].answers, "topology"), Health::warning, "NODE: host bridges of one NUMA node",
                "-m pinned");
  expect_answer(named(bus.pairs[1].answers, "acs"), Health::ok, "does not matter");
  expect_answer(named(bus.pairs[1].answers, "bar1"), Health::warning, "not known: sysfs does not show", "as root");
}

TEST_F(BusTest, AGpuThatOnlyCudaShows) {
  gpu::GpuFacts gpu;
  gpu.pci = "0000:77:00.0";
  gpu.gpudirect = true;
  const BusAnswers bus = examine_bus({gpu}, root_.path());
  ASSERT_EQ(bus.pairs.size(), 2U);
  EXPECT_EQ(bus.pairs[1].gpu, "0000:77:00.0");
  expect_answer(named(bus.pairs[1].answers, "topology"), Health::warning, "not known: sysfs does not show where",
                "host");
}

TEST_F(BusTest, MemoryOfTheGpu) {
  gpu::GpuFacts gpu;
  gpu.pci = kGpu;
  gpu.gpudirect = true;
  gpu.memory = Bytes{80ULL << 30};
  expect_answer(of_pair("bar1", {gpu}), Health::ok, "131072 MiB of 81920 MiB of memory");
  gpu.memory = Bytes{141ULL << 30};
  expect_answer(of_pair("bar1", {gpu}), Health::warning, "NICs reach no more", "Resizable BAR");
  write(kGpu, "resource", "0x00000000c0000000 0x00000000cfffffff 0x000000000014220c\n");
  expect_answer(of_pair("bar1"), Health::warning, "256 MiB", "Resizable BAR");
  gpu.gpudirect = false;
  expect_answer(of_pair("direct access", {gpu}), Health::warning, "does not open its memory", "-m pinned");
}

TEST_F(BusTest, WaysIntoTheGpusMemory) {
  expect_answer(of_pair("direct access"), Health::ok, "nvidia-peermem loaded");
  std::filesystem::remove_all(root_.path() / "sys/module/nvidia_peermem");
  expect_answer(of_pair("direct access"), Health::warning, "not loaded; dma-buf", "sudo modprobe nvidia-peermem");
  std::filesystem::remove(root_.path() / "proc/driver/nvidia/version");
  expect_answer(of_pair("direct access"), Health::warning, "not known: NVIDIA's kernel driver", "modprobe nvidia");
  write(kNic, "vendor", "0x8086\n");
  expect_answer(of_pair("direct access"), Health::warning, "reaches no GPU memory", "-m pinned");
}

TEST(Bus, AnEmptyMachineHasNoPorts) {
  const ScratchFolder root;
  const BusAnswers bus = examine_bus({}, root.path());
  EXPECT_TRUE(bus.ports.empty());
  EXPECT_TRUE(bus.pairs.empty());
}

}  // namespace
}  // namespace warpline::doctor
