// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace warpline::machine {

/// A fact, or why it is not known.
template <class T>
struct Told {
  std::optional<T> value;
  std::string why_not;  ///< empty where there is a value
};

/// What a function puts into the requests that it sends: register Device Control (PCI Express Base Specification 6.0,
/// section 7.5.3.4).
struct RequestControl {
  unsigned max_read_bytes = 0;  ///< MaxReadReq; 0: it is not a PCI Express function, and has neither
  bool relaxed_ordering = false;
  auto operator<=>(const RequestControl&) const = default;
};

/// Reads `root`/sys/bus/pci/devices/`address`/config. The kernel shows 64 bytes of it without CAP_SYS_ADMIN, else 256
/// or 4096. Empty if it cannot be read.
[[nodiscard]] std::vector<std::uint8_t> read_config_space(const std::filesystem::path& root,
                                                          const std::string& address);

/// Finds Device Control in the bytes, whatever they are: it reads nothing beyond them, and ends where a chain of
/// capabilities turns back.
[[nodiscard]] Told<RequestControl> request_control(std::span<const std::uint8_t> space);

/// Whether a bridge sends requests or completions between the devices below it up to the root complex: P2P Request and
/// Completion Redirect of Access Control Services (the same, section 7.7.11). False for a bridge without ACS.
[[nodiscard]] Told<bool> redirects_peers(std::span<const std::uint8_t> space);

}  // namespace warpline::machine
