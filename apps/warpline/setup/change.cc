// SPDX-License-Identifier: Apache-2.0
#include "setup/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace warpline::setup {
namespace {

namespace fs = std::filesystem;

const fs::path kProbe = "/sys/bus/pci/drivers_probe";

std::string first_line_of(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

unsigned number(const std::string& text) {
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Text in single quotes, for a shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string tell(const std::string& text, const fs::path& path) {
  return fmt::format("echo {} | sudo tee {}", text, path.native());
}

/// Has the kernel give a function to `driver`, or with an empty name to the one that asks for it.
Result<void> bind(MachineFiles& machine, const fs::path& function, const std::string& driver) {
  const std::string address = function.filename();
  WARPLINE_CHECK(machine.tell_kernel(function / "driver_override", driver.empty() ? "\n" : driver));
  if (machine.exists(function / "driver")) WARPLINE_CHECK(machine.tell_kernel(function / "driver/unbind", address));
  return machine.tell_kernel(kProbe, address);
}

Result<void> change_driver(MachineFiles& machine, const Change& change, const std::string& before) {
  if (before == change.value) return {};
  const Result<void> bound = bind(machine, change.path, change.value);
  if (bound.ok() && machine.link_name(fs::path(change.path) / "driver") == change.value) return {};
  const Result<void> back = bind(machine, change.path, "");
  const std::string address = fs::path(change.path).filename();
  const std::string after = back.ok() ? machine.link_name(fs::path(change.path) / "driver") : "";
  return environment_error(
      fmt::format("cannot give {} to {}", address, change.value),
      bound.ok() ? "the driver does not take it" : bound.error().why,
      fmt::format("`dmesg` has the kernel's reason; its driver is {} now", after.empty() ? "none" : after));
}

Result<void> put_driver_back(MachineFiles& machine, const fs::path& function, const std::string& driver) {
  WARPLINE_CHECK(machine.tell_kernel(function / "driver_override", "\n"));
  if (machine.link_name(function / "driver") == driver) return {};
  if (machine.exists(function / "driver")) {
    WARPLINE_CHECK(machine.tell_kernel(function / "driver/unbind", function.filename().native()));
  }
  if (driver.empty()) return {};
  WARPLINE_CHECK(machine.tell_kernel(kProbe, function.filename().native()));
  const std::string now = machine.link_name(function / "driver");
  if (now == driver) return {};
  return environment_error(fmt::format("cannot give {} back to {}", function.filename().native(), driver),
                           now.empty() ? "no driver takes it" : "it went to " + now,
                           fmt::format("sudo modprobe {}, and --undo once more", driver));
}

}  // namespace

std::vector<std::string> commands(const MachineFiles& machine, const Change& change) {
  const fs::path path = change.path;
  switch (change.kind) {
    case ChangeKind::number:
      return {tell(change.value, path)};
    case ChangeKind::driver: {
      const std::string address = path.filename();
      std::vector<std::string> lines = {tell(change.value, path / "driver_override")};
      if (machine.exists(path / "driver")) lines.push_back(tell(address, path / "driver/unbind"));
      lines.push_back(tell(address, kProbe));
      return lines;
    }
    case ChangeKind::file:
      return {fmt::format("echo {} | sudo tee {}", quoted(first_line_of(change.value)), path.native())};
    case ChangeKind::owner:
      return {fmt::format("sudo chown {} {}", change.value, path.native())};
  }
  return {};
}

Result<std::string> current(const MachineFiles& machine, const Change& change) {
  switch (change.kind) {
    case ChangeKind::number:
      return first_line_of(machine.read(change.path));
    case ChangeKind::driver:
      return machine.link_name(fs::path(change.path) / "driver");
    case ChangeKind::file:
      return machine.read(change.path);
    case ChangeKind::owner: {
      WARPLINE_TRY(const unsigned user, machine.owner(change.path));
      return std::to_string(user);
    }
  }
  return std::string();
}

Result<void> apply(MachineFiles& machine, const Change& change) {
  WARPLINE_TRY(const std::string before, current(machine, change));
  switch (change.kind) {
    case ChangeKind::number: {
      WARPLINE_CHECK(machine.tell_kernel(change.path, change.value));
      WARPLINE_TRY(const std::string after, current(machine, change));
      if (after == change.value) return {};
      WARPLINE_CHECK(machine.tell_kernel(change.path, before));
      return environment_error(fmt::format("cannot set {} to {}", change.path, change.value),
                               fmt::format("the kernel found memory for {}", after),
                               "free memory, or reserve them when it starts: hugepages=N on its command line");
    }
    case ChangeKind::driver:
      return change_driver(machine, change, before);
    case ChangeKind::file:
      return machine.write_file(change.path, change.value);
    case ChangeKind::owner:
      return machine.give_to(change.path, number(change.value));
  }
  return {};
}

Result<void> put_back(MachineFiles& machine, const Before& before) {
  const fs::path path = before.change.path;
  switch (before.change.kind) {
    case ChangeKind::number:
      return machine.tell_kernel(path, before.value);
    case ChangeKind::driver:
      // A function that is no more there needs nothing.
      return machine.exists(path) ? put_driver_back(machine, path, before.value) : Result<void>();
    case ChangeKind::file:
      return before.value.empty() ? machine.remove_file(path) : machine.write_file(path, before.value);
    case ChangeKind::owner:
      return machine.exists(path) ? machine.give_to(path, number(before.value)) : Result<void>();
  }
  return {};
}

}  // namespace warpline::setup
