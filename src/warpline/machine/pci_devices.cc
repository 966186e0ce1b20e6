// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/pci_devices.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <system_error>

#include "warpline/base/files/read_file.h"

namespace warpline::machine {

namespace fs = std::filesystem;

std::vector<PciDevice> pci_devices(const fs::path& root) {
  std::vector<PciDevice> devices;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "sys/bus/pci/devices", ignored)) {
    devices.push_back({entry.path().filename(), first_line(entry.path() / "vendor"), first_line(entry.path() / "class"),
                       fs::read_symlink(entry.path() / "driver", ignored).filename()});
  }
  std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return devices;
}

std::string gpu_driver(const fs::path& root) {
  std::istringstream words(first_line(root / "proc/driver/nvidia/version"));
  for (std::string word; words >> word;) {
    const bool is_version = std::isdigit(static_cast<unsigned char>(word.front())) != 0 && word.find('.') != word.npos;
    if (is_version) return word;
  }
  std::error_code ignored;
  const bool is_there = fs::exists(root / "proc/driver/nvidia/version", ignored) || fs::exists(root / "dev/nvidiactl");
  return is_there ? "loaded" : "";
}

}  // namespace warpline::machine
