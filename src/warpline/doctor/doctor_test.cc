// SPDX-License-Identifier: Apache-2.0
#include "warpline/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <rte_build_config.h>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::doctor {
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

TEST_F(DoctorTest, WithoutSysfsDpdkFindsNoProcessor) {
  expect(check_cores(root()), Health::missing, "topology/core_id is missing");
  EXPECT_THAT(check_cores(root()).fix, HasSubstr("mount -t sysfs"));
}

TEST_F(DoctorTest, LimitsOfTheContainer) {
  root_.write("proc/self/cgroup", "0::/\n");
  root_.write("proc/meminfo", "MemAvailable: 8388608 kB\n");
  root_.write("sys/fs/cgroup/memory.max", "67108864\n");
  root_.write("sys/fs/cgroup/memory.current", "33554432\n");
  expect(check_memory(root()), Health::missing, "32 MiB within the container's limit");
  root_.write("sys/fs/cgroup/memory.max", "max\n");
  expect(check_memory(root()), Health::ok, "8192 MiB available");
  for (int cpu = 0; cpu < 1024; ++cpu) {
    root_.write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/core_id", "0\n");
  }
  root_.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  expect(check_cores(root()), Health::warning, "may use the time of 0.5");
}

TEST_F(DoctorTest, Hugepages) {
  expect(check_hugepages(root()), Health::warning, "the kernel has none");
  root_.write("sys/devices/system/node/online", "0\n");
  const std::string pages = "sys/devices/system/node/node0/hugepages/hugepages-2048kB/";
  root_.write(pages + "nr_hugepages", "0\n");
  root_.write(pages + "free_hugepages", "0\n");
  expect(check_hugepages(root()), Health::warning, "none reserved");
  EXPECT_THAT(check_hugepages(root()).fix, HasSubstr("setup hugepages --memory 256Mi"));
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
  // All capabilities but CAP_IPC_LOCK (bit 14), and that one alone.
  root_.write("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffbfff\n");
  expect(check_locked_memory(root()), Health::warning, "8 MiB at most: too little");
  root_.write("proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n");
  expect(check_locked_memory(root()), Health::ok, "8 MiB at most without CAP_IPC_LOCK");
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
  expect(check_vnic(root()), Health::warning, "--loopback runs on rings");  // unit tests are built without it
  expect(check_dpdk(root()), Health::ok, "DPDK");
}

TEST_F(DoctorTest, NetworkDevices) {
  expect(check_network_devices(root()), Health::warning, "none on the PCI bus");
  pci("0000:01:00.0", "0x8086", "0x020000", "ice");
  pci("0000:02:00.0", "0x8086", "0x010802", "nvme");
  expect(check_network_devices(root()), Health::warning, "the kernel's: 0000:01:00.0 (ice)");
  EXPECT_THAT(check_network_devices(root()).fix, HasSubstr("setup nic --pci 0000:01:00.0"));
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
  root_.write("dev/nvidiactl", "");
  expect(check_gpu(root()), Health::ok, "0000:0a:00.0, driver loaded");
  root_.write("proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (root@host)\n");
  expect(check_gpu(root()), Health::ok, "0000:0a:00.0, driver 580.82.07");
}

gpu::GpuFacts good_gpu() {
  gpu::GpuFacts gpu;
  gpu.name = "NVIDIA H200";
  gpu.pci = "0000:0a:00.0";
  gpu.multiprocessors = 132;
  gpu.memory = Bytes{140ULL << 30};
  gpu.compute_major = 9;
  gpu.driver_version = 13000;
  gpu.link_now = gpu.link_most = {32, 16};
  gpu.host_pointers_usable = gpu.gpudirect = gpu.dma_buf = true;
  return gpu;
}

const Check& named(const std::vector<Check>& checks, const std::string& name) {
  static const Check none{.name = "none", .found = "there is no such check", .fix = {}};
  const auto found = std::find_if(checks.begin(), checks.end(), [&](const Check& check) { return check.name == name; });
  return found == checks.end() ? none : *found;
}

TEST_F(DoctorTest, AGoodGpu) {
  gpu::GpuFacts gpu = good_gpu();
  gpu.link_now = {2.5, 16};
  gpu.node = 1;
  const std::vector<Check> checks = examine_gpus(std::vector{gpu}, root());
  expect(named(checks, "gpu 0"), Health::ok,
         "NVIDIA H200 at 0000:0a:00.0, 140 GiB, 132 SMs, compute 9.0, CUDA 13.0, PCIe Gen5 x16, node 1 (Gen1 now, as "
         "when idle)");
  expect(named(checks, "gpu paths"), Health::ok, "no NIC for DPDK");
  expect(named(checks, "gpu direct"), Health::ok, "nvidia-peermem not loaded, dma-buf supported by the GPU");
}

TEST_F(DoctorTest, AGpuOnFewLanesOrTooOld) {
  gpu::GpuFacts gpu = good_gpu();
  gpu.link_now = {32, 8};
  expect(named(examine_gpus(std::vector{gpu}, root()), "gpu 0"), Health::warning,
         "only 8 of 16 lanes are in use, 252 Gbit/s each way");
  gpu.compute_major = 7;
  gpu.compute_minor = 5;
  expect(named(examine_gpus(std::vector{gpu}, root()), "gpu 0"), Health::warning, "older than what");
  EXPECT_THAT(named(examine_gpus(std::vector{gpu}, root()), "gpu 0").fix, HasSubstr("ARCHITECTURES=75"));
  gpu = good_gpu();
  gpu.host_pointers_usable = false;
  expect(named(examine_gpus(std::vector{gpu}, root()), "gpu 0"), Health::warning, "-m pinned needs");
}

TEST_F(DoctorTest, GpusThatAreFarFromTheNics) {
  const auto place = [&](const std::string& address, const std::string& bridge, const std::string& node) {
    const std::string real = "sys/devices/pci0000:00/" + bridge + "/" + address;
    root_.write(real + "/numa_node", node + "\n");
    std::filesystem::create_directories(root_.path() / "sys/bus/pci/devices");
    std::filesystem::create_directory_symlink(root_.path() / real, root_.path() / "sys/bus/pci/devices" / address);
  };
  place("0000:0a:00.0", "0000:00:01.0", "0");
  place("0000:0b:00.0", "0000:00:01.0", "0");
  place("0000:0c:00.0", "0000:00:02.0", "0");
  place("0000:0d:00.0", "0000:00:03.0", "1");
  const auto nic = [&](const std::string& address) { pci(address, "0x15b3", "0x020000", "mlx5_core"); };
  const auto paths = [&] { return named(examine_gpus(std::vector{good_gpu()}, root()), "gpu paths"); };
  nic("0000:0b:00.0");
  expect(paths(), Health::ok, "each NIC for DPDK has a GPU near it");
  nic("0000:0c:00.0");
  expect(paths(), Health::warning, "0000:0c:00.0 and GPU 0 are behind different root ports");
  nic("0000:0d:00.0");
  expect(paths(), Health::warning, "0000:0d:00.0 is on node 1, GPU 0 on node 0");
  const auto direct = [&](const gpu::GpuFacts& gpu) {
    return named(examine_gpus(std::vector{gpu}, root()), "gpu direct");
  };
  expect(direct(good_gpu()), Health::warning, "needed for -m device");
  EXPECT_EQ(direct(good_gpu()).fix, "sudo modprobe nvidia-peermem");
  root_.write("sys/module/nvidia_peermem/refcnt", "0\n");
  expect(direct(good_gpu()), Health::ok, "nvidia-peermem loaded");
  gpu::GpuFacts closed = good_gpu();
  closed.gpudirect = false;
  expect(direct(closed), Health::warning, "does not open its memory");
}

TEST_F(DoctorTest, GpusThatCudaDoesNotShow) {
  const Result<std::vector<gpu::GpuFacts>> none =
      environment_error("no GPU can be used", "the driver knows CUDA 12.0", "install a driver for CUDA 13.0");
  EXPECT_TRUE(examine_gpus(none, root()).empty()) << "without a driver the other check says all";
  pci("0000:0a:00.0", "0x10de", "0x030200", "nvidia");
  root_.write("proc/driver/nvidia/version", "NVRM version: NVIDIA 525.60.13\n");
  const std::vector<Check> checks = examine_gpus(none, root());
  ASSERT_EQ(checks.size(), 1U);
  expect(checks.front(), Health::warning, "the driver knows CUDA 12.0");
  EXPECT_EQ(checks.front().fix, "install a driver for CUDA 13.0");
}

}  // namespace
}  // namespace warpline::doctor
