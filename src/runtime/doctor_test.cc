// SPDX-License-Identifier: Apache-2.0
#include "runtime/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <rte_build_config.h>

#include "runtime/scratch_folder.h"

namespace warpline {
namespace {

using testing::HasSubstr;

/// A made-up machine, in a folder.
class DoctorTest : public testing::Test {
 protected:
  void pci(const std::string& address, const std::string& vendor, const std::string& kind, const std::string& driver) {
    const std::string device = "sys/bus/pci/devices/" + address;
    root_.write(device + "/vendor", vendor + "\n");
    root_.write(device + "/class", kind + "\n");
    if (driver.empty()) return;
    root_.write("sys/bus/pci/drivers/" + driver + "/bind", "");
    std::filesystem::create_symlink(root_.path() / "sys/bus/pci/drivers" / driver, root_.path() / device / "driver");
  }
  [[nodiscard]] const std::filesystem::path& root() const { return root_.path(); }

  ScratchFolder root_;
};

void expect(const Check& check, Health health, const std::string& found) {
  EXPECT_EQ(check.health, health) << check.name << ": " << check.found;
  EXPECT_THAT(check.found, HasSubstr(found));
  EXPECT_EQ(check.fix.empty(), health == Health::ok) << check.name << ": " << check.fix;
}

TEST_F(DoctorTest, AnEmptyMachineLacksMuchAndNeverFailsToSaySo) {
  std::set<std::string> names;
  for (const Check& check : examine_machine(root())) {
    EXPECT_TRUE(names.insert(check.name).second);
    EXPECT_FALSE(check.found.empty()) << check.name;
    EXPECT_EQ(check.fix.empty(), check.health == Health::ok) << check.name;
    EXPECT_EQ(check.found.find('\n'), std::string::npos);
  }
}

TEST_F(DoctorTest, ThisMachineCanRunTheLoopback) {
  for (const Check& check : examine_machine("/")) EXPECT_NE(check.health, Health::missing) << check.name;
}

TEST_F(DoctorTest, Hugepages) {
  expect(check_hugepages(root()), Health::warning, "the kernel has none");
  root_.write("sys/devices/system/node/online", "0\n");
  const std::string pages = "sys/devices/system/node/node0/hugepages/hugepages-2048kB/";
  root_.write(pages + "nr_hugepages", "0\n");
  root_.write(pages + "free_hugepages", "0\n");
  expect(check_hugepages(root()), Health::warning, "none reserved");
  EXPECT_THAT(check_hugepages(root()).fix, HasSubstr("echo 128 "));
  root_.write(pages + "nr_hugepages", "1024\n");
  root_.write(pages + "free_hugepages", "1000\n");
  expect(check_hugepages(root()), Health::ok, "node 0: 1024 of 2 MiB, 1000 free");
}

TEST_F(DoctorTest, Memory) {
  root_.write("proc/meminfo", "MemTotal:       16384 kB\nMemAvailable:   8192 kB\n");
  expect(check_memory(root()), Health::missing, "8 MiB available");
  root_.write("proc/meminfo", "MemAvailable:   8388608 kB\n");
  expect(check_memory(root()), Health::ok, "8192 MiB available");
}

TEST_F(DoctorTest, LockedMemory) {
  const std::string head = "Limit                     Soft Limit           Hard Limit           Units\n";
  root_.write("proc/self/limits", head + "Max locked memory         8388608              8388608              bytes\n");
  expect(check_locked_memory(root()), Health::warning, "8 MiB at most");
  root_.write("proc/self/limits", head + "Max locked memory         unlimited            unlimited            bytes\n");
  expect(check_locked_memory(root()), Health::ok, "unlimited");
}

TEST_F(DoctorTest, IsolationGovernorAndNuma) {
  expect(check_isolation(root()), Health::warning, "no processor is isolated");
  root_.write("sys/devices/system/cpu/isolated", "2-7\n");
  expect(check_isolation(root()), Health::ok, "2-7");
  expect(check_governor(root()), Health::ok, "not the kernel's");
  root_.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  expect(check_governor(root()), Health::ok, "performance");
  root_.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
  expect(check_governor(root()), Health::warning, "powersave");
  expect(check_numa(root()), Health::ok, "1 node");
  root_.write("sys/devices/system/node/online", "0-1\n");
  root_.write("proc/sys/kernel/numa_balancing", "1\n");
  expect(check_numa(root()), Health::warning, "2 nodes");
}

TEST_F(DoctorTest, CpuFeatures) {
  root_.write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse4_2 avx2 avx512f constant_tsc nonstop_tsc\n");
  expect(check_cpu_features(root()), Health::ok, "invariant TSC, AVX2, AVX-512");
  root_.write("proc/cpuinfo", "flags\t\t: fpu sse4_2 avx2\n");
  expect(check_cpu_features(root()), Health::warning, "no invariant TSC, AVX2, no AVX-512");
  root_.write("proc/cpuinfo", "flags\t\t: fpu\n");
  expect(check_cpu_features(root()), Health::missing, "SSE4.2");
}

TEST_F(DoctorTest, Drivers) {
  expect(check_drivers(root()), Health::ok, "linked into the program");
  const std::string folder = std::string(RTE_EAL_PMD_PATH).substr(1);
  root_.write(folder + "/librte_net_null.so.23", "");
  root_.write(folder + "/librte_net_null.so.23.0", "");
  root_.write(folder + "/librte_crypto_null.so.23", "");
  expect(check_drivers(root()), Health::missing, "1 for networks: null");
  root_.write(folder + "/librte_net_ring.so.23", "");
  expect(check_drivers(root()), Health::ok, "2 for networks: null ring");
  expect(check_dpdk(root()), Health::ok, "DPDK");
}

TEST_F(DoctorTest, NetworkDevices) {
  expect(check_network_devices(root()), Health::warning, "none on the PCI bus");
  pci("0000:01:00.0", "0x8086", "0x020000", "ice");
  pci("0000:02:00.0", "0x8086", "0x010802", "nvme");
  expect(check_network_devices(root()), Health::warning, "the kernel's: 0000:01:00.0 (ice)");
  EXPECT_THAT(check_network_devices(root()).fix, HasSubstr("--bind=vfio-pci 0000:01:00.0"));
  pci("0000:03:00.0", "0x15b3", "0x020000", "mlx5_core");
  expect(check_network_devices(root()), Health::ok, "for DPDK: 0000:03:00.0 (mlx5_core)");
}

TEST_F(DoctorTest, VfioTunAndPrivileges) {
  expect(check_vfio(root()), Health::warning, "not loaded");
  root_.write("dev/vfio/vfio", "");
  expect(check_vfio(root()), Health::warning, "without an IOMMU");
  root_.write("sys/class/iommu/dmar0/x", "");
  expect(check_vfio(root()), Health::ok, "with an IOMMU");
  expect(check_tun(root()), Health::warning, "net_tap");
  root_.write("dev/net/tun", "");
  expect(check_tun(root()), Health::ok, "/dev/net/tun");
  root_.write("proc/self/status", "CapEff:\t0000000000000000\n");
  expect(check_privileges(root()), Health::warning, "CAP_NET_RAW");
  root_.write("proc/self/status", "CapEff:\tffffffffffffffff\n");
  expect(check_privileges(root()), Health::ok, "all");
}

TEST_F(DoctorTest, Gpu) {
  expect(check_gpu(root()), Health::warning, "no NVIDIA GPU");
  pci("0000:0a:00.1", "0x10de", "0x040300", "snd_hda_intel");
  expect(check_gpu(root()), Health::warning, "no NVIDIA GPU");
  pci("0000:0a:00.0", "0x10de", "0x030200", "");
  expect(check_gpu(root()), Health::warning, "without a driver");
  root_.write("proc/driver/nvidia/version", "NVRM version: NVIDIA 580\n");
  expect(check_gpu(root()), Health::ok, "0000:0a:00.0, driver loaded");
}

}  // namespace
}  // namespace warpline
