// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/pci_config_space.h"

#include "warpline/base/files/read_file.h"

namespace warpline::machine {
namespace {

using Space = std::span<const std::uint8_t>;

// Offsets and bits as in the kernel's include/uapi/linux/pci_regs.h.
constexpr std::size_t kHeader = 64;         ///< what everybody may read
constexpr std::size_t kConventional = 256;  ///< extended capabilities begin behind it
constexpr std::size_t kWhole = 4096;

constexpr const char* kForRoot = "the kernel shows this part of the configuration space to root only";

std::uint16_t word(Space space, std::size_t at) {
  return at + 2 <= space.size() ? static_cast<std::uint16_t>(space[at] | space[at + 1] << 8) : std::uint16_t{0};
}

/// Offset of a capability; 0: there is none.
std::size_t find_capability(Space space, std::uint8_t id) {
  constexpr std::size_t kStatus = 0x06;
  constexpr std::size_t kFirst = 0x34;
  constexpr std::uint16_t kHasCapabilities = 0x10;
  if ((word(space, kStatus) & kHasCapabilities) == 0) return 0;
  std::size_t at = space[kFirst] & 0xfcU;
  for (std::size_t looked = 0; at >= kHeader && at + 2 <= space.size() && looked < kConventional / 4; ++looked) {
    if (space[at] == id) return at;
    at = space[at + 1] & 0xfcU;
  }
  return 0;
}

/// The same of an extended one.
std::size_t find_extended(Space space, std::uint16_t id) {
  std::size_t at = kConventional;
  for (std::size_t looked = 0; at >= kConventional && at + 4 <= space.size() && looked < kWhole / 4; ++looked) {
    if (word(space, at) == id) return at;
    at = word(space, at + 2) >> 4 & 0xffcU;
  }
  return 0;
}

}  // namespace

std::vector<std::uint8_t> read_config_space(const std::filesystem::path& root, const std::string& address) {
  const std::string bytes = read_file(root / "sys/bus/pci/devices" / address / "config", kWhole).text;
  return {bytes.begin(), bytes.end()};
}

Told<RequestControl> request_control(Space space) {
  constexpr std::uint8_t kExpress = 0x10;
  constexpr std::size_t kDeviceControl = 8;
  if (space.empty()) return {{}, "sysfs does not show its configuration space"};
  if (space.size() < kConventional) return {{}, kForRoot};
  const std::size_t at = find_capability(space, kExpress);
  if (at == 0 || at + kDeviceControl + 2 > space.size()) return {RequestControl{}, {}};
  const std::uint16_t control = word(space, at + kDeviceControl);
  return {RequestControl{.max_read_bytes = 128U << (control >> 12 & 7), .relaxed_ordering = (control & 0x10) != 0}, {}};
}

Told<bool> redirects_peers(Space space) {
  constexpr std::uint16_t kAccessControl = 0x0d;
  constexpr std::size_t kControl = 6;
  constexpr std::uint16_t kRedirects = 0x04 | 0x08;  // requests, completions
  if (space.empty()) return {{}, "sysfs does not show its configuration space"};
  if (space.size() < kConventional) return {{}, kForRoot};
  if (space.size() < kWhole) return {{}, "the platform does not show its extended configuration space"};
  const std::size_t at = find_extended(space, kAccessControl);
  return {at != 0 && (word(space, at + kControl) & kRedirects) != 0, {}};
}

}  // namespace warpline::machine
