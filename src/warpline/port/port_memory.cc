// SPDX-License-Identifier: Apache-2.0
// Memory that is not EAL's, opened to a port's device.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>

#include "warpline/base/units.h"
#include "warpline/port/port.h"
#include "warpline/runtime/dpdk_log.h"
#include "warpline/runtime/setup_step.h"

namespace warpline::port {
namespace {

std::uint64_t address_of(std::span<std::byte> memory) { return reinterpret_cast<std::uintptr_t>(memory.data()); }

bool has_peermem() {
  std::error_code ignored;
  return std::filesystem::exists("/sys/module/nvidia_peermem", ignored);
}

/// The bus of software devices takes every mapping; of their drivers only our own does not read with the CPU. These of
/// PCI devices do: headers pushed into the device (ena), frames copied (gve, vmxnet3), headers parsed (virtio).
bool copies_with_cpu(const rte_device* device, const std::string& driver) {
  constexpr std::string_view kTouching[] = {"net_ena", "net_gve", "net_virtio", "net_vmxnet3"};
  if (std::ranges::find(kTouching, driver) != std::end(kTouching)) return true;
  return std::string_view(rte_bus_name(rte_dev_bus(device))) == "vdev" && driver != "net_vnic";
}

}  // namespace

Result<void> Port::map(std::span<std::byte> memory) {
  const runtime::SetupStep step(fmt::format("mapping GPU memory for port {}", name_));
  const runtime::CapturedLog log;
  const bool of_verbs = driver_.starts_with("mlx");
  // Addresses of devices are the program's own: EAL runs so wherever a device can reach more than its memory.
  const bool unreachable = copies_with_cpu(device_, driver_);
  if (unreachable || rte_dev_dma_map(device_, memory.data(), address_of(memory), memory.size()) != 0) {
    const int code = unreachable ? ENOTSUP : rte_errno;
    const std::string what = fmt::format("port {}: {} MiB of GPU memory", name_, memory.size() / kMebibyte);
    if (code == ENOTSUP) {
      return environment_error(what, fmt::format("{} ports cannot reach it", driver_),
                               "use -m pinned, or a port such as net_vnic0 or a ConnectX");
    }
    const std::string why = log.reason(rte_strerror(code));
    if (of_verbs && !has_peermem()) {
      return environment_error(what, fmt::format("{}, and nvidia-peermem is not loaded", why),
                               "sudo modprobe nvidia-peermem, or use -m pinned");
    }
    return environment_error(what, why, "use -m pinned");
  }
  mapped_.push_back(memory);
  // DPDK has no registration by dma-buf up to 25.11.
  setup_.device_access = of_verbs && has_peermem() ? "through nvidia-peermem" : fmt::format("as {} maps it", driver_);
  return {};
}

void Port::unmap() {
  for (const std::span<std::byte> memory : mapped_) {
    (void)rte_dev_dma_unmap(device_, memory.data(), address_of(memory), memory.size());
  }
  mapped_.clear();
}

}  // namespace warpline::port
