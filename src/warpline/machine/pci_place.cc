// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/pci_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

#include "warpline/base/files/read_file.h"

namespace warpline::machine {
namespace {

namespace fs = std::filesystem;

fs::path device_folder(const fs::path& root, const std::string& address) {
  return root / "sys/bus/pci/devices" / address;
}

/// "0000:17:00.0", with a domain of four digits or more.
bool is_address(const std::string& text) {
  return text.size() >= 12 && text[text.size() - 2] == '.' && std::ranges::count(text, ':') == 2;
}

/// How many bridges both have in common, from the host bridge on.
std::size_t shared_bridges(const PciPlace& one, const PciPlace& other) {
  const auto [end, ignored] = std::ranges::mismatch(one.bridges, other.bridges);
  return static_cast<std::size_t>(end - one.bridges.begin());
}

bool is_below_one_bridge(const PciPlace& one, const PciPlace& other) {
  return !one.host_bridge.empty() && one.host_bridge == other.host_bridge && shared_bridges(one, other) != 0;
}

}  // namespace

std::string_view name(PciDistance distance) {
  switch (distance) {
    case PciDistance::pix:
      return "PIX";
    case PciDistance::pxb:
      return "PXB";
    case PciDistance::phb:
      return "PHB";
    case PciDistance::node:
      return "NODE";
    case PciDistance::sys:
      return "SYS";
    case PciDistance::unknown:
      return "unknown";
  }
  return "";
}

PciPlace pci_place(const fs::path& root, const std::string& address) {
  PciPlace place;
  const fs::path folder = device_folder(root, address);
  const std::string node = first_line(folder / "numa_node");
  if (!node.empty()) place.node = std::atoi(node.c_str());
  std::error_code problem;
  // .../pci0000:16/0000:16:01.0/0000:17:00.0
  const fs::path way = fs::canonical(folder, problem);
  if (problem) return place;
  for (const fs::path& step : way) {
    const std::string text = step.string();
    if (text.starts_with("pci") && text.find(':') != text.npos) {
      place.host_bridge = text;
      place.bridges.clear();
    } else if (!place.host_bridge.empty() && is_address(text) && text != way.filename()) {
      place.bridges.push_back(text);
    }
  }
  return place;
}

PciDistance distance_between(const PciPlace& one, const PciPlace& other) {
  if (is_below_one_bridge(one, other)) {
    // Each switch is two bridges on the way: its upstream port, which both share, and the downstream port of each.
    const std::size_t shared = shared_bridges(one, other);
    const std::size_t furthest = std::max(one.bridges.size(), other.bridges.size()) - shared;
    return furthest <= 1 ? PciDistance::pix : PciDistance::pxb;
  }
  if (one.host_bridge.empty() || other.host_bridge.empty()) {
    const bool apart = one.node >= 0 && other.node >= 0 && one.node != other.node;
    return apart ? PciDistance::sys : PciDistance::unknown;
  }
  if (one.host_bridge == other.host_bridge) return PciDistance::phb;
  if (one.node < 0 || other.node < 0) return PciDistance::unknown;
  return one.node == other.node ? PciDistance::node : PciDistance::sys;
}

std::vector<std::string> bridges_between(const PciPlace& one, const PciPlace& other) {
  if (!is_below_one_bridge(one, other)) return {};
  const auto shared = static_cast<std::ptrdiff_t>(shared_bridges(one, other));
  std::vector<std::string> between(one.bridges.begin() + shared, one.bridges.end());
  between.insert(between.end(), other.bridges.begin() + shared, other.bridges.end());
  return between;
}

std::string physical_function(const fs::path& root, const std::string& address) {
  std::error_code problem;
  const fs::path physical = fs::read_symlink(device_folder(root, address) / "physfn", problem);
  return problem ? address : physical.filename().string();
}

Told<Bytes> largest_memory_region(const fs::path& root, const std::string& address) {
  // Flags of the kernel's include/linux/ioport.h.
  constexpr unsigned long long kMemory = 0x200;
  constexpr unsigned long long kPrefetchable = 0x2000;
  constexpr int kRegions = 6;
  std::ifstream file(device_folder(root, address) / "resource");
  if (!file) return {{}, "sysfs does not show its memory regions"};
  Bytes largest{0};
  std::string line;
  for (int region = 0; region < kRegions && std::getline(file, line); ++region) {
    std::istringstream fields(line);
    unsigned long long first = 0;
    unsigned long long last = 0;
    unsigned long long flags = 0;
    fields >> std::hex >> first >> last >> flags;
    const bool counts = (flags & kMemory) != 0 && (flags & kPrefetchable) != 0 && last > first;
    if (counts) largest = std::max(largest, Bytes{last - first + 1});
  }
  if (largest.value == 0) return {{}, "the kernel gave it no prefetchable memory region"};
  return {largest, {}};
}

Told<std::vector<GroupMate>> iommu_group_mates(const fs::path& devices, const std::string& address) {
  std::error_code problem;
  std::vector<GroupMate> mates;
  for (const fs::directory_entry& entry : fs::directory_iterator(devices / address / "iommu_group/devices", problem)) {
    const std::string mate = entry.path().filename();
    if (mate == address || first_line(devices / mate / "class").starts_with("0x0604")) continue;
    std::error_code none;
    mates.push_back({mate, fs::read_symlink(devices / mate / "driver", none).filename()});
  }
  if (problem) return {{}, "it is in no IOMMU group: the IOMMU is off, or there is none"};
  std::ranges::sort(mates, {}, &GroupMate::address);
  return {mates, {}};
}

std::string list_in_the_way(const std::vector<GroupMate>& mates) {
  std::string list;
  for (const GroupMate& mate : mates) {
    if (mate.in_the_way()) list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", mate.address, mate.driver);
  }
  return list;
}

}  // namespace warpline::machine
