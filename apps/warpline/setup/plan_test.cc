// SPDX-License-Identifier: Apache-2.0
#include "setup/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "setup/made_machine_testing.h"

namespace warpline::setup {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SetupPlanTest : public testing::Test {
 protected:
  std::vector<std::string> lines(const Plan& plan) {
    std::vector<std::string> all = plan.beforehand;
    for (const Change& change : plan.changes) {
      for (const std::string& line : commands(machine_, change)) all.push_back(line);
    }
    return all;
  }
  void expect_error(const Result<Plan>& plan, ErrorKind kind, const std::string& part) {
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.error().kind, kind);
    EXPECT_THAT(plan.error().message(), HasSubstr(part));
    EXPECT_FALSE(plan.error().fix.empty());
  }

  ScratchFolder root_;
  MadeMachine machine_{root_.path()};
};

TEST_F(SetupPlanTest, ANicOfTheKernelGoesToVfio) {
  machine_.add_driver("vfio-pci");
  machine_.add_function(kNic, "e1000e");
  const Result<Plan> plan = plan_nic(machine_, kNic);
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  EXPECT_THAT(lines(*plan), ElementsAre("echo vfio-pci | sudo tee /sys/bus/pci/devices/0000:01:00.0/driver_override",
                                        "echo 0000:01:00.0 | sudo tee /sys/bus/pci/devices/0000:01:00.0/driver/unbind",
                                        "echo 0000:01:00.0 | sudo tee /sys/bus/pci/drivers_probe"));
  EXPECT_THAT(plan->notes, IsEmpty());
}

TEST_F(SetupPlanTest, WithoutItsModuleThatIsFirst) {
  machine_.add_function(kNic, "");
  const Result<Plan> plan = plan_nic(machine_, kNic);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(lines(*plan),
              ElementsAre("sudo modprobe vfio-pci", HasSubstr("driver_override"), HasSubstr("drivers_probe")));
}

TEST_F(SetupPlanTest, NothingIsToBeDoneForWhatVfioHas) {
  machine_.add_function(kNic, "vfio-pci");
  EXPECT_THAT(plan_nic(machine_, kNic)->changes, IsEmpty());
}

TEST_F(SetupPlanTest, MellanoxStaysWithItsDriver) {
  machine_.add_function(kNic, "mlx5_core", "0x020000", "0x15b3");
  const Result<Plan> plan = plan_nic(machine_, kNic);
  EXPECT_THAT(plan->changes, IsEmpty());
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("mlx5_core")));
}

TEST_F(SetupPlanTest, WhatIsNoNicIsRefused) {
  machine_.add_function("0000:02:00.0", "nvme", "0x010802");
  expect_error(plan_nic(machine_, kNic), ErrorKind::usage, "there is no such PCI function");
  expect_error(plan_nic(machine_, "0000:02:00.0"), ErrorKind::usage, "not a network's");
}

TEST_F(SetupPlanTest, ANicBelowAnotherInterfaceIsRefused) {
  machine_.add_function(kNic, "e1000e");
  machine_.write("sys/bus/pci/devices/0000:01:00.0/net/eth1/operstate", "up\n");
  machine_.write("proc/net/route", "Iface\tDestination\nbr0\t00000000\n");
  EXPECT_TRUE(plan_nic(machine_, kNic).ok());
  machine_.put_on("eth1", "br0", true);
  expect_error(plan_nic(machine_, kNic), ErrorKind::environment, "eth1 is below br0");
  EXPECT_THAT(plan_nic(machine_, kNic).error().fix, HasSubstr("sudo ip link set eth1 nomaster"));

  machine_.add_function("0000:01:00.1", "e1000e");
  machine_.write("sys/bus/pci/devices/0000:01:00.1/net/eth2/operstate", "up\n");
  machine_.put_on("eth2", "eth2.100", false);
  expect_error(plan_nic(machine_, "0000:01:00.1"), ErrorKind::environment, "eth2 is below eth2.100");
  EXPECT_THAT(plan_nic(machine_, "01:00.1").error().fix, HasSubstr("sudo ip link delete eth2.100"));
}

TEST_F(SetupPlanTest, ANicWithAnAddressIsRefusedWhateverTableHasItsRoutes) {
  machine_.add_function(kNic, "e1000e");
  machine_.write("sys/bus/pci/devices/0000:01:00.0/net/eth1/operstate", "up\n");
  machine_.set_addressed("eth1");
  expect_error(plan_nic(machine_, kNic), ErrorKind::environment, "addresses or routes on eth1");
}

TEST_F(SetupPlanTest, ANicWithRoutesIsRefused) {
  machine_.add_function(kNic, "e1000e");
  machine_.write("sys/bus/pci/devices/0000:01:00.0/net/eth1/operstate", "up\n");
  machine_.write("proc/net/route", "Iface\tDestination\neth10\t00000000\n");
  machine_.write("proc/net/ipv6_route", "fe800000000000000000000000000000 40 0 00 0 100 1 0 1 eth1\n");
  EXPECT_TRUE(plan_nic(machine_, kNic).ok());
  machine_.write("proc/net/route", "Iface\tDestination\neth1\t00000000\n");
  expect_error(plan_nic(machine_, kNic), ErrorKind::environment, "routes on eth1");
  machine_.write("proc/net/route", "");
  machine_.write("proc/net/ipv6_route", "20010db8000000000000000000000000 40 0 00 0 100 1 0 1     eth1\n");
  expect_error(plan_nic(machine_, kNic), ErrorKind::environment, "routes on eth1");
}

TEST_F(SetupPlanTest, AnInterfaceOfVirtioCountsToo) {
  machine_.add_function(kNic, "virtio-pci", "0x020000", "0x1af4");
  machine_.write("sys/bus/pci/devices/0000:01:00.0/virtio3/net/eth1/operstate", "up\n");
  machine_.write("proc/net/route", "eth1\t00000000\n");
  expect_error(plan_nic(machine_, kNic), ErrorKind::environment, "routes on eth1");
}

TEST_F(SetupPlanTest, WithoutAnIommuThereMustBeLeave) {
  machine_.add_function(kNic, "e1000e");
  std::filesystem::remove_all(root_.path() / "sys/bus/pci/devices/0000:01:00.0/iommu_group");
  expect_error(plan_nic(machine_, kNic), ErrorKind::environment, "no IOMMU");
  machine_.write("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
  EXPECT_THAT(plan_nic(machine_, kNic)->notes, ElementsAre(HasSubstr("no IOMMU")));
}

TEST_F(SetupPlanTest, OthersOfTheGroupAreNamed) {
  machine_.add_function(kNic, "e1000e");
  machine_.add_function("0000:01:00.1", "e1000e");
  machine_.write("sys/bus/pci/devices/0000:01:00.0/iommu_group/devices/0000:01:00.1", "");
  EXPECT_THAT(plan_nic(machine_, kNic)->notes, ElementsAre(HasSubstr("0000:01:00.1 (e1000e)")));
}

TEST_F(SetupPlanTest, PagesAreReservedBesideThoseInUse) {
  machine_.add_hugepages(kPool, 100, 30);
  const Result<Plan> plan = plan_hugepages(machine_, {.memory = Bytes{(64U << 20) - 1}});
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  EXPECT_THAT(lines(*plan), ElementsAre("echo 102 | sudo tee /" + kPool + "/nr_hugepages"));
  EXPECT_THAT(plan_hugepages(machine_, {.memory = Bytes{60U << 20}})->changes, IsEmpty());
}

TEST_F(SetupPlanTest, PagesOfANodeAndOfASize) {
  machine_.add_hugepages("sys/devices/system/node/node1/hugepages/hugepages-1048576kB", 0, 0);
  const HugepageRequest request{.node = 1, .page = Bytes{1U << 30}, .memory = Bytes{3U << 30}};
  EXPECT_THAT(lines(*plan_hugepages(machine_, request)),
              ElementsAre(HasSubstr("echo 3 | sudo tee /sys/devices/system/node/node1")));
  expect_error(plan_hugepages(machine_, {.node = 1}), ErrorKind::usage, "hugepages-1048576kB");
  expect_error(plan_hugepages(machine_, {.node = 2}), ErrorKind::usage, "no NUMA node 2");
  expect_error(plan_hugepages(machine_, {}), ErrorKind::usage, "the kernel has none");
}

TEST_F(SetupPlanTest, AUserGetsVfioAndLockedMemory) {
  machine_.write("dev/vfio/vfio", "");
  machine_.write("dev/vfio/12", "");
  const Result<Plan> plan = plan_user(machine_, "nobody");
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  EXPECT_THAT(
      lines(*plan),
      ElementsAre(
          "echo 'SUBSYSTEM==\"vfio\", OWNER=\"nobody\", MODE=\"0600\"' | sudo tee /etc/udev/rules.d/60-warpline.rules",
          "echo 'nobody - memlock unlimited' | sudo tee /etc/security/limits.d/warpline.conf",
          "sudo chown 65534 /dev/vfio/12"));
}

TEST_F(SetupPlanTest, WhoIsNoOrdinaryUserIsRefused) {
  for (const char* const name : {"", "root", "no such user", "nobody\"", "there-is-none-of-this-name"}) {
    EXPECT_EQ(plan_user(machine_, name).error().kind, ErrorKind::usage) << name;
  }
  machine_.write("etc/udev/rules.d/60-warpline.rules", "SUBSYSTEM==\"vfio\", OWNER=\"daemon\", MODE=\"0600\"\n");
  expect_error(plan_user(machine_, "nobody"), ErrorKind::usage, "gives VFIO to another");
}

}  // namespace
}  // namespace warpline::setup
