// SPDX-License-Identifier: Apache-2.0
// Doctor's checks of GPUs, and of the ways between them and NICs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "warpline/doctor/doctor.h"
#include "warpline/machine/pci_devices.h"
#include "warpline/runtime/port_spec.h"

namespace warpline::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kGibibyte = 1 << 30;
/// The oldest that the program has code for, unless it was built for others.
constexpr int kLeastCompute = 8;

std::string describe(const gpu::PciLink& link) {
  if (link.lanes == 0) return "PCIe link unknown";
  return link.generation() == 0 ? fmt::format("PCIe x{}", link.lanes)
                                : fmt::format("PCIe Gen{} x{}", link.generation(), link.lanes);
}

Check check_one(const gpu::GpuFacts& gpu) {
  Check check{.name = fmt::format("gpu {}", gpu.ordinal), .found = {}, .fix = {}};
  check.found = fmt::format("{} at {}, {} GiB, {} SMs, compute {}.{}, CUDA {}.{}, {}{}", gpu.name, gpu.pci,
                            gpu.memory.value / kGibibyte, gpu.multiprocessors, gpu.compute_major, gpu.compute_minor,
                            gpu.driver_version / 1000, gpu.driver_version % 1000 / 10, describe(gpu.link_most),
                            gpu.node < 0 ? "" : fmt::format(", node {}", gpu.node));
  if (gpu.link_now.generation() != 0 && gpu.link_now.generation() < gpu.link_most.generation()) {
    check.found += fmt::format(" (Gen{} now, as when idle)", gpu.link_now.generation());
  }
  if (gpu.compute_major < kLeastCompute) {
    check.health = Health::warning;
    check.found += ": older than what the program has code for";
    check.fix = fmt::format("build with -DCMAKE_CUDA_ARCHITECTURES={}{}", gpu.compute_major, gpu.compute_minor);
  } else if (!gpu.host_pointers_usable) {
    check.health = Health::warning;
    check.found += ": it does not share the CPU's addresses, which -m pinned needs";
    check.fix = "use a GPU of compute capability 6.0 or later, on Linux, outside WSL";
  } else if (gpu.link_now.lanes != 0 && gpu.link_now.lanes < gpu.link_most.lanes) {
    check.health = Health::warning;
    check.found +=
        fmt::format(": only {} of {} lanes are in use, {:.0f} Gbit/s each way", gpu.link_now.lanes, gpu.link_most.lanes,
                    gpu::PciLink{gpu.link_most.gigatransfers, gpu.link_now.lanes}.gigabit_per_s());
    check.fix = "seat it in a slot of all lanes, and see what the firmware gives the slot";
  }
  return check;
}

/// What lies between a GPU and a NIC that DPDK has; empty: nothing but a switch.
std::string obstacle(const gpu::GpuFacts& gpu, const machine::PciDevice& nic, const fs::path& sys) {
  const gpu::PciFacts ours = gpu::read_pci_facts(gpu.pci, sys);
  const gpu::PciFacts its = gpu::read_pci_facts(nic.address, sys);
  if (ours.node >= 0 && its.node >= 0 && ours.node != its.node) {
    return fmt::format("{} is on node {}, GPU {} on node {}", nic.address, its.node, gpu.ordinal, ours.node);
  }
  if (!ours.root_port.empty() && !its.root_port.empty() && ours.root_port != its.root_port) {
    return fmt::format("{} and GPU {} are behind different root ports", nic.address, gpu.ordinal);
  }
  return {};
}

/// A NIC is well placed if one GPU is near it.
Check check_paths(const std::vector<gpu::GpuFacts>& gpus, const std::vector<machine::PciDevice>& nics,
                  const fs::path& root) {
  Check check{.name = "gpu paths", .found = "no NIC for DPDK beside the GPUs", .fix = {}};
  if (nics.empty()) return check;
  std::vector<std::string> obstacles;
  for (const machine::PciDevice& nic : nics) {
    std::vector<std::string> found;
    for (const gpu::GpuFacts& gpu : gpus) {
      std::string between = obstacle(gpu, nic, root / "sys");
      if (!between.empty()) found.push_back(std::move(between));
    }
    if (found.size() == gpus.size()) obstacles.push_back(found.front());
  }
  check.found = "each NIC for DPDK has a GPU near it";
  if (obstacles.empty()) return check;
  check.health = Health::warning;
  check.found = fmt::format("{}", fmt::join(obstacles, "; "));
  check.fix = "put NIC and GPU under one PCIe switch or root port, or use -m pinned";
  return check;
}

/// Whether NICs can read and write the memory of GPUs.
Check check_direct(const std::vector<gpu::GpuFacts>& gpus, const std::vector<machine::PciDevice>& nics,
                   const fs::path& root) {
  Check check{.name = "gpu direct", .found = {}, .fix = {}};
  const auto is_verbs = [](const machine::PciDevice& nic) { return nic.driver.starts_with("mlx"); };
  const bool wanted = std::any_of(nics.begin(), nics.end(), is_verbs);
  const bool opens = std::all_of(gpus.begin(), gpus.end(), [](const gpu::GpuFacts& gpu) { return gpu.gpudirect; });
  const bool dma_buf = std::all_of(gpus.begin(), gpus.end(), [](const gpu::GpuFacts& gpu) { return gpu.dma_buf; });
  std::error_code ignored;
  const bool peermem = fs::exists(root / "sys/module/nvidia_peermem", ignored);
  check.found = fmt::format("nvidia-peermem {}, dma-buf {}", peermem ? "loaded" : "not loaded",
                            dma_buf ? "supported by the GPU, not by DPDK" : "not supported");
  if (!wanted) {
    check.found += ": no NIC here would use it; net_vnic copies to -m device";
  } else if (!opens) {
    check.health = Health::warning;
    check.found += ": a GPU does not open its memory to NICs";
    check.fix = "use -m pinned, or a data-center or professional GPU";
  } else if (!peermem) {
    check.health = Health::warning;
    check.found += ": needed for -m device on NICs";
    check.fix = "sudo modprobe nvidia-peermem";
  }
  return check;
}

}  // namespace

std::vector<Check> examine_gpus(const Result<std::vector<gpu::GpuFacts>>& gpus, const fs::path& root) {
  const std::vector<machine::PciDevice> devices = machine::pci_devices(root);
  if (!gpus.ok()) {
    const bool has_gpu = std::any_of(devices.begin(), devices.end(), [](const auto& d) { return d.is_gpu(); });
    if (machine::gpu_driver(root).empty() || (!gpu::built_with_cuda() && !has_gpu)) return {};
    return {{.name = "cuda", .health = Health::warning, .found = gpus.error().why, .fix = gpus.error().fix}};
  }
  std::vector<machine::PciDevice> nics;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(nics), [](const machine::PciDevice& device) {
    return device.is_nic() && runtime::works_with_dpdk(device.driver);
  });
  std::vector<Check> checks;
  for (const gpu::GpuFacts& gpu : *gpus) checks.push_back(check_one(gpu));
  checks.push_back(check_paths(*gpus, nics, root));
  checks.push_back(check_direct(*gpus, nics, root));
  return checks;
}

}  // namespace warpline::doctor
