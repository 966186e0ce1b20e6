// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace warpline::machine {

/// A function on the PCI bus, as sysfs has it.
struct PciDevice {
  std::string address;
  std::string vendor;  ///< "0x15b3"
  std::string kind;    ///< "0x020000": class, subclass, interface
  std::string driver;  ///< of the kernel; may be empty

  [[nodiscard]] bool is_nic() const { return kind.starts_with("0x02"); }
  /// NVIDIA's display (0x0300) and 3D (0x0302) controllers; its audio and switches are others.
  [[nodiscard]] bool is_gpu() const { return vendor == "0x10de" && kind.starts_with("0x03"); }
};

/// All of them, by address.
[[nodiscard]] std::vector<PciDevice> pci_devices(const std::filesystem::path& root);

/// The version of NVIDIA's kernel driver, such as "580.82.07"; "loaded" where it does not tell, empty without one.
[[nodiscard]] std::string gpu_driver(const std::filesystem::path& root);

}  // namespace warpline::machine
