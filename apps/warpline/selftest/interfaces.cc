// SPDX-License-Identifier: Apache-2.0
#include "selftest/interfaces.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <system_error>

namespace warpline::selftest {
namespace {

namespace fs = std::filesystem;

/// The value of `key=` in a vdev's arguments; "" if it is not there.
std::string argument(std::string_view spec, std::string_view key) {
  const std::string wanted = fmt::format(",{}=", key);
  const auto at = spec.find(wanted);
  if (at == std::string_view::npos) return "";
  spec.remove_prefix(at + wanted.size());
  return std::string(spec.substr(0, spec.find(',')));
}

std::optional<std::string> read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

/// "02:00.0" as sysfs has it.
std::string pci_address(const std::string& spec) {
  const std::string address = spec.substr(0, spec.find(','));
  return address.find(':') == address.rfind(':') ? "0000:" + address : address;
}

void add_interface(KernelState& state, const fs::path& root, const fs::path& folder) {
  for (const char* file : {"mtu", "flags"}) {
    if (const auto line = read_line(root / folder / file)) state[(folder / file).string()] = *line;
  }
}

}  // namespace

KernelState kernel_state(const std::vector<std::string>& ports, const fs::path& root) {
  KernelState state;
  for (const std::string& spec : ports) {
    if (const std::string name = argument(spec, "iface"); !name.empty()) {
      add_interface(state, root, fs::path("sys/class/net") / name);
      continue;
    }
    const fs::path device = fs::path("sys/bus/pci/devices") / pci_address(spec);
    std::error_code error;
    const fs::path driver = fs::read_symlink(root / device / "driver", error);
    if (!error) state[(device / "driver").string()] = driver.filename().string();
    for (const fs::directory_entry& interface : fs::directory_iterator(root / device / "net", error)) {
      add_interface(state, root, fs::path("sys/class/net") / interface.path().filename());
    }
  }
  return state;
}

StepResult put_back(const KernelState& before, const std::vector<std::string>& ports, const fs::path& root) {
  StepResult result{.name = "ports as they were", .stage = Stage::left, .outcome = Outcome::ok};
  KernelState now = kernel_state(ports, root);
  for (const auto& [path, value] : before) {
    if (now[path] == value) continue;
    if (!path.ends_with("/driver")) {
      std::ofstream file(root / path);
      file << value << '\n';
    }
  }
  now = kernel_state(ports, root);
  for (const auto& [path, value] : before) {
    if (now[path] == value) continue;
    result.outcome = Outcome::failed;
    result.why += fmt::format("{}/{} was {} and is {}", result.why.empty() ? "" : "; ", path, value,
                              now[path].empty() ? "gone" : now[path]);
  }
  return result;
}

}  // namespace warpline::selftest
