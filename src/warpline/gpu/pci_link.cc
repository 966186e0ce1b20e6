// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/pci_link.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <system_error>

#include "warpline/base/files/read_file.h"

namespace warpline::gpu {
namespace {

namespace fs = std::filesystem;

/// By generation, from 1 (PCI Express Base Specification 6.0, section 8.1).
constexpr double kSpeeds[] = {2.5, 5, 8, 16, 32, 64};

/// "32.0 GT/s PCIe" and "16"; "Unknown" and a width of 0 or 255 mean that the device does not tell.
PciLink read_link(const fs::path& device, const std::string& which) {
  PciLink link;
  link.gigatransfers = std::strtod(first_line(device / (which + "_link_speed")).c_str(), nullptr);
  const unsigned long lanes = std::strtoul(first_line(device / (which + "_link_width")).c_str(), nullptr, 10);
  if (lanes > 0 && lanes <= 32) link.lanes = static_cast<unsigned>(lanes);
  return link;
}

/// The path of a device leads through its bridges: .../pci0000:16/0000:16:01.0/0000:17:00.0
std::string find_root_port(const fs::path& device) {
  std::error_code problem;
  const fs::path real = fs::canonical(device, problem);
  if (problem) return {};
  const auto root =
      std::find_if(real.begin(), real.end(), [](const fs::path& part) { return part.string().starts_with("pci"); });
  if (root == real.end() || std::next(root) == real.end()) return {};
  const auto first = std::next(root);
  return std::next(first) == real.end() ? std::string() : first->string();
}

}  // namespace

int PciLink::generation() const {
  const auto* const found = std::find(std::begin(kSpeeds), std::end(kSpeeds), gigatransfers);
  return found == std::end(kSpeeds) ? 0 : static_cast<int>(found - std::begin(kSpeeds)) + 1;
}

double PciLink::gigabit_per_s() const {
  // 8b/10b up to Gen2, 128b/130b up to Gen5; Gen6 packs 236 of 256 bytes of a flit with packets.
  const double coding = gigatransfers < 8 ? 0.8 : gigatransfers < 64 ? 128.0 / 130 : 236.0 / 256;
  return gigatransfers * coding * lanes;
}

PciFacts read_pci_facts(const std::string& address, const fs::path& sys) {
  std::string lower = address;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const fs::path device = sys / "bus/pci/devices" / lower;
  const std::string node = first_line(device / "numa_node");
  return {.link_now = read_link(device, "current"),
          .link_most = read_link(device, "max"),
          .node = node.empty() ? -1 : std::atoi(node.c_str()),
          .root_port = find_root_port(device)};
}

}  // namespace warpline::gpu
