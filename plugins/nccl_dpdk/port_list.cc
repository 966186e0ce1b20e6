// SPDX-License-Identifier: Apache-2.0
#include "nccl_dpdk/port_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "warpline/base/units.h"
#include "warpline/runtime/port_spec.h"

namespace warpline::nccl {
namespace {

using Get = const char* (*)(const char* name);

constexpr std::string_view kPorts = "WARPLINE_NCCL_DPDK_PORT";
constexpr std::string_view kAddresses = "WARPLINE_NCCL_DPDK_ADDRESS";
constexpr std::string_view kMtu = "WARPLINE_NCCL_DPDK_MTU";
constexpr std::string_view kGateway = "WARPLINE_NCCL_DPDK_GATEWAY";

constexpr std::uint16_t kEthernetMtu = 1500;
constexpr std::uint64_t kLeastMtu = 1280;
constexpr std::uint64_t kMostMtu = 60'000;
constexpr std::uint16_t kMemifMtu = 16'384;
constexpr std::uint32_t kMemifRingBytes = 2 << 20;  ///< frames are copied there and back: in the processor's caches
constexpr std::uint16_t kVnicMtu = 9000;
constexpr std::uint32_t kFrameBytes = 18;  ///< beside the MTU

/// A variable's name and value.
struct Variable {
  std::string name;
  std::string_view value;
};

/// The rank's own, or everybody's; the value is empty if neither is there.
Variable variable(Get get, std::string_view name) {
  if (const char* const rank = get("LOCAL_RANK"); rank != nullptr && *rank != '\0') {
    std::string own = fmt::format("{}_{}", name, rank);
    if (const char* const value = get(own.c_str()); value != nullptr && *value != '\0') return {std::move(own), value};
  }
  const char* const value = get(std::string(name).c_str());
  return {std::string(name), value == nullptr ? std::string_view() : value};
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (!one.empty()) parts.emplace_back(one);
  }
  return parts;
}

Error named(const Variable& variable, Error error) {
  error.what = fmt::format("{}={}: {}", variable.name, variable.value, error.what);
  return error;
}

std::string_view argument(const runtime::PortSpec& spec, const std::string& name) {
  const auto found = spec.arguments.find(name);
  return found == spec.arguments.end() ? std::string_view() : std::string_view(found->second);
}

/// net_memif's buffers and rings, unless its spec says them: a frame that takes several buffers may be damaged.
Result<void> fit_memif(const Variable& from, const runtime::PortSpec& spec, PortChoice& port) {
  const std::uint32_t needed = port.mtu + kFrameBytes;
  if (const std::string_view said = argument(spec, "bsize"); said.empty()) {
    port.spec += fmt::format(",bsize={}", needed);
  } else if (const auto bytes = parse_bytes(said); !bytes || bytes->value < needed) {
    return usage_error(fmt::format("{}={}", from.name, port.spec),
                       fmt::format("a frame of MTU {} does not fit into a buffer of {} bytes", port.mtu, said),
                       fmt::format("leave bsize away, or set {}", kMtu));
  }
  if (argument(spec, "rsize").empty()) {
    port.ring = std::min(port.ring, static_cast<std::uint16_t>(std::bit_floor(kMemifRingBytes / needed)));
    port.spec += fmt::format(",rsize={}", std::bit_width(port.ring) - 1);
  }
  port.waits = argument(spec, "role") != "server";
  return {};
}

Result<PortChoice> port_of(const Variable& specs, std::string spec, const Variable& addresses, std::string_view address,
                           std::optional<std::uint16_t> mtu) {
  PortChoice port;
  auto parsed = runtime::parse_port_spec(spec);
  if (!parsed) return named(specs, std::move(parsed).error());
  port.spec = std::move(spec);
  auto own = parse_interface_address(address);
  if (!own) return named(addresses, std::move(own).error());
  port.address = *own;
  const bool memif = parsed->driver == "net_memif";
  const bool vnic = parsed->driver == "net_vnic";
  port.local = memif || vnic;
  port.mtu = mtu.value_or(memif ? kMemifMtu : vnic ? kVnicMtu : kEthernetMtu);
  port.device_mtu = port.mtu;
  if (memif) {
    port.device_mtu = std::min(port.mtu, kEthernetMtu);
    WARPLINE_CHECK(fit_memif(specs, *parsed, port));
  }
  return port;
}

}  // namespace

Result<PortList> read_port_list(Get get) {
  const Variable specs = variable(get, kPorts);
  const Variable addresses = variable(get, kAddresses);
  std::vector<std::string> all = parts_of(specs.value);
  const std::vector<std::string> own = parts_of(addresses.value);
  if (all.empty()) {
    return usage_error(
        specs.name, "it names no port",
        "set it to PCI addresses or vdevs, with ; between them, or NCCL_NET_PLUGIN=warpline for sockets");
  }
  if (own.size() != all.size()) {
    return usage_error(fmt::format("{}={}", addresses.name, addresses.value),
                       fmt::format("{} addresses for {} ports", own.size(), all.size()),
                       "give each port one, such as 10.0.0.1/24, with ; between them");
  }
  PortList list;
  std::optional<std::uint16_t> mtu;
  if (const Variable said = variable(get, kMtu); !said.value.empty()) {
    auto bytes = parse_bytes(said.value);
    if (!bytes) return named(said, std::move(bytes).error());
    if (bytes->value < kLeastMtu || bytes->value > kMostMtu) {
      return usage_error(fmt::format("{}={}", said.name, said.value), "out of range",
                         fmt::format("use {} to {}", kLeastMtu, kMostMtu));
    }
    mtu = static_cast<std::uint16_t>(bytes->value);
  }
  if (const Variable said = variable(get, kGateway); !said.value.empty()) {
    auto gateway = parse_ip(said.value);
    if (!gateway) return named(said, std::move(gateway).error());
    list.gateway = *gateway;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    WARPLINE_TRY(PortChoice port, port_of(specs, std::move(all[i]), addresses, own[i], mtu));
    list.ports.push_back(std::move(port));
  }
  return list;
}

}  // namespace warpline::nccl
